"""What can be said on loading, checked: heads, tokens, padding, scale, mask."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from capmem.heads.container import Metadata, Rotary
from capmem.heads.stored import stored
from capmem.heads.widen import Numbers
from capmem.schema import coerce, require, unknown

HINTS: dict[str, Any] = {
    "heads": int | None,
    "key_heads": int | None,
    "sequence": int | None,
    "dtype": str | None,
    "confirm": bool,
    "tolerance": float | None,
}

TOKEN_OPTIONS = ("mask", "ids", "tokens", "special")


@dataclass(frozen=True, eq=False)
class Options:
    """The options of :func:`capmem.heads.from_arrays`, which says what they are."""

    heads: int | None = None
    key_heads: int | None = None
    sequence: int | None = None
    mask: Any = None
    ids: Any = None
    tokens: Any = None
    special: Any = None
    dtype: str | None = None
    confirm: bool = True
    tolerance: float | None = None
    scale: float | None = None
    causal: bool | None = None
    rotary: Rotary | None = None
    model: str | None = None
    licence: str | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        for name, hint in HINTS.items():
            coerce(getattr(self, name), hint, name)
        for name, least in (("heads", 1), ("key_heads", 1), ("sequence", 0)):
            given = getattr(self, name)
            require(given is None or given >= least, name, given, f"an integer of at least {least}")
        object.__setattr__(self, "tokens", None if self.tokens is None else [str(t) for t in self.tokens])
        self.metadata()  # it checks its fields
        for name in ("mask", "ids", "special"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else stored(given, name).read())
        if self.num_tokens is not None and len(set(self._lengths().values())) > 1:
            raise ValueError(f"mask, ids, tokens and special must be of the same tokens, there are {self._lengths()}")

    @property
    def num_tokens(self) -> int | None:
        """How many tokens there are, padding included, where anything says so."""
        return next(iter(self._lengths().values()), None)

    def metadata(self) -> Metadata:
        """Return what is said of the heads."""
        said = ("scale", "causal", "rotary", "model", "licence", "text")
        return Metadata(**{name: getattr(self, name) for name in said})

    def kept(self, sequence: int) -> Numbers | None:
        """Return which tokens of a sequence are no padding (T,), or None for all."""
        if self.mask is None:
            return None
        kept = _of(self.mask, sequence)
        require(
            bool(np.isin(kept, (0, 1)).all()) and bool(kept.any()), "mask", kept.tolist(), "1 for tokens, 0 for padding"
        )
        return kept.astype(bool)

    def of_tokens(self, sequence: int) -> dict[str, tuple[Any, ...]]:
        """Return number, text and kind of every token of a sequence that is no padding, as Metadata takes them."""
        kept = self.kept(sequence)
        told: dict[str, Any] = {"tokens": self.tokens}
        told |= {
            name: _of(array, sequence).tolist()
            for name in ("ids", "special")
            if (array := getattr(self, name)) is not None
        }
        told["special"] = None if told.get("special") is None else [bool(s) for s in told["special"]]
        return {
            name: tuple(x for i, x in enumerate(given) if kept is None or kept[i])
            for name, given in told.items()
            if given is not None
        }

    def _lengths(self) -> dict[str, int]:
        given = {name: getattr(self, name) for name in TOKEN_OPTIONS if getattr(self, name) is not None}
        return {name: int(np.shape(held)[-1]) for name, held in given.items()}


def options_from(given: Mapping[str, Any]) -> Options:
    """Return options by name.

    Raises
    ------
    ValueError
        For one that does not exist, or a value that is not allowed.
    """
    allowed = [field.name for field in dataclasses.fields(Options)]
    for name in given:
        if name not in allowed:
            raise ValueError(unknown("option", name, ["names", "layout", *allowed]))
    return Options(**given)


def _of(array: Numbers, sequence: int) -> Numbers:
    """Return the row of a sequence, of an array (B, T) or (T,)."""
    require(array.ndim in (1, 2), "mask, ids or special", array.shape, "(T,) or (B, T)")
    row: Numbers = array[sequence if len(array) > 1 else 0] if array.ndim == 2 else array
    return row
