"""One layer: the keys, queries, values and output of its heads, and what must hold of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capmem.heads.widen import Numbers

PARTS = ("keys", "queries", "values", "output")


@dataclass(frozen=True, eq=False)
class Layer:
    """The heads of one layer, float32 or float64.

    Query head h uses key head h // (H_q / H_kv).

    Attributes
    ----------
    index : int
        The layer's number.
    keys : array (H_kv, T, d)
        The keys.
    queries : array (H_q, T, d), optional
        The queries.
    values : array (H_kv, T, v), optional
        The values.
    output : array (H_q, T, v), optional
        What the layer's own attention gave, before any projection.
    key_heads, query_heads : tuple of int
        The numbers of the heads, where not all of a layer are there; () for 0, 1, 2, ...
    """

    index: int
    keys: Numbers
    queries: Numbers | None = None
    values: Numbers | None = None
    output: Numbers | None = None
    key_heads: tuple[int, ...] = ()
    query_heads: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        asked = self.keys if self.queries is None else self.queries
        for name, heads in (("key_heads", len(self.keys)), ("query_heads", len(asked))):
            object.__setattr__(self, name, tuple(getattr(self, name)) or tuple(range(heads)))
        _check_shapes(self)

    @property
    def group_size(self) -> int:
        """How many query heads share a key head."""
        return len(self.query_heads) // len(self.key_heads)

    def parts(self) -> dict[str, Numbers]:
        """Return the arrays that are there, by name."""
        return {name: array for name in PARTS if (array := getattr(self, name)) is not None}

    def take(self, tokens: Any) -> Layer:
        """Return the layer with some of its tokens, a mask or indices (T,)."""
        some: dict[str, Any] = {name: array[:, tokens] for name, array in self.parts().items()}
        return replace(self, **some)


def _check_shapes(layer: Layer) -> None:
    shapes = {name: array.shape for name, array in layer.parts().items()}
    heads, count, dim = layer.keys.shape
    asked = shapes.get("queries", (heads, count, dim))
    held = shapes.get("values", (heads, count, dim))
    given = shapes.get("output", (asked[0], count, held[2]))
    fits = asked[1:] == (count, dim) and heads and asked[0] % heads == 0 and held[:2] == (heads, count)
    if not fits or given != (asked[0], count, held[2]) or not count:
        raise ValueError(f"layer {layer.index}: the shapes (heads, tokens, dimension) do not fit: {shapes}")
    if len(layer.key_heads) != heads or len(layer.query_heads) != asked[0]:
        raise ValueError(f"layer {layer.index}: {heads} key heads are numbered {layer.key_heads}")


def check_finite(layer: Layer, tokens: tuple[str, ...] | None) -> None:
    """Raise ValueError for nan or inf, naming part, layer, head and token."""
    for part, array in layer.parts().items():
        bad = np.logical_not(np.all(np.isfinite(array), axis=-1))
        if bad.any():
            head, token = (int(i) for i in np.argwhere(bad)[0])
            numbers = layer.query_heads if part in ("queries", "output") else layer.key_heads
            kind = "nan" if np.isnan(array[head, token]).any() else "inf"
            text = f" ({tokens[token]!r})" if tokens else ""
            raise ValueError(
                f"{part} of layer {layer.index} hold {kind} in head {numbers[head]} at token {token}{text}; "
                f"{int(bad.sum())} of {bad.size} rows are not finite"
            )
