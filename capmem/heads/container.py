"""Heads: keys, queries and values of the attention heads of one sequence, read layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from capmem.heads.layer import Layer, check_finite
from capmem.heads.widen import Numbers
from capmem.schema import check_fields, require, unknown

Rotary = Literal["none", "before", "after"]


@dataclass(frozen=True)
class Metadata:
    """What is known of heads besides their numbers; None where it is not known.

    Parameters
    ----------
    model, licence, text : str, optional
        Where they come from: the model, its licence, the text that it read.
    scale : float, optional
        What scores q . k are multiplied by; None: 1 / sqrt(d).
    causal : bool, optional
        Whether a token sees only itself and what came before.
    rotary : {"none", "before", "after"}, optional
        Whether queries and keys are rotated by their position, and taken before or after that.
    layout : str, optional
        The axes that the arrays had where they came from.
    dtype : str, optional
        The format that the numbers had there; what fp16 or bf16 rounded away does not come back.
    error : float, optional
        The relative Frobenius error with which the layers' own outputs were reproduced, the worst of all layers.
    tokens, ids, special : tuple, optional
        Text and number of every token, and whether it is none of the text: [CLS], [SEP], BOS.
    notes : tuple of str
        What was guessed, dropped or found on loading.
    """

    model: str | None = None
    licence: str | None = None
    text: str | None = None
    scale: float | None = None
    causal: bool | None = None
    rotary: Rotary | None = None
    layout: str | None = None
    dtype: str | None = None
    error: float | None = None
    tokens: tuple[str, ...] | None = None
    ids: tuple[int, ...] | None = None
    special: tuple[bool, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        require(self.scale is None or 0 < self.scale < float("inf"), "scale", self.scale, "a positive number")


class Head(NamedTuple):
    """One query head with the key head that it uses.

    Attributes
    ----------
    layer, head, key_head : int
        Their numbers.
    keys, values, queries, output : array (T, d), (T, v), (T, d), (T, v)
        None where not there. One head for each key head (``by="key"``): queries (G, T, d), output (G, T, v).
    scale : float
        What scores are multiplied by.
    causal : bool or None
        None if not known.
    """

    layer: int
    head: int
    key_head: int
    keys: Numbers
    values: Numbers | None
    queries: Numbers | None
    output: Numbers | None
    scale: float
    causal: bool | None


@dataclass(frozen=True, eq=False)
class Heads:
    """Attention heads of one sequence, of one or more layers, which are read when they are asked for.

    Parameters
    ----------
    layers : tuple of int
        The numbers of the layers.
    reader : callable
        Returns the :class:`Layer` of a number.
    metadata : Metadata
        What is known besides.
    """

    layers: tuple[int, ...]
    reader: Callable[[int], Layer] = field(repr=False)
    metadata: Metadata = Metadata()

    def layer(self, index: int) -> Layer:
        """Read a layer.

        Raises
        ------
        ValueError
            If there is no such layer, or it holds nan or inf; the message names head and token.
        """
        if index not in self.layers:
            raise ValueError(unknown("layer", index, map(str, self.layers)))
        layer = self.reader(index)
        for name, tokens in (("tokens", self.metadata.tokens), ("ids", self.metadata.ids)):
            if tokens is not None and len(tokens) != layer.keys.shape[1]:
                raise ValueError(
                    f"{name}: there are {len(tokens)}, the keys of layer {index} are {layer.keys.shape[1]}"
                )
        check_finite(layer, self.metadata.tokens)
        return layer

    def each(self, by: Literal["query", "key"] = "query") -> Iterator[Head]:
        """Yield every query head with its keys, or every key head with the queries (G, T, d) that share it."""
        require(by in ("query", "key"), "by", by, "'query' or 'key'")
        for index in self.layers:
            yield from (_by_query if by == "query" else _by_key)(self.layer(index), self.metadata)

    def take(self, tokens: Any, note: str | None = None) -> Heads:
        """Return the heads with some of their tokens, a mask or indices (T,).

        The outputs stay away: attention saw all tokens, and cannot be reproduced from fewer.
        """
        held = self.metadata
        kept: dict[str, Any] = {name: _taken(getattr(held, name), tokens) for name in ("tokens", "ids", "special")}
        notes = held.notes + ((note,) if note else ())
        return Heads(
            self.layers,
            lambda index: replace(self.layer(index).take(tokens), output=None),
            replace(held, **kept, notes=notes),
        )

    def noting(self, note: str) -> Heads:
        """Return the heads with one note more."""
        return replace(self, metadata=replace(self.metadata, notes=(*self.metadata.notes, note)))

    def without_special(self) -> Heads:
        """Return the heads without special tokens, such as [CLS], [SEP] and BOS.

        Raises
        ------
        ValueError
            If it is not known which they are.
        """
        special = self.metadata.special
        if special is None:
            raise ValueError("special must be given on loading: a mask of the special tokens (T,)")
        return self.take(~np.array(special), f"{sum(special)} special tokens left out")

    def save(self, path: str | Path) -> None:
        """Write all to an .npz or .safetensors file, which :func:`capmem.heads.load` reads back identically."""
        from capmem.heads.saving import save

        save(self, path)

    def __str__(self) -> str:
        from capmem.heads.report import describe

        return describe(self)


def _by_query(layer: Layer, held: Metadata) -> Iterator[Head]:
    for i, number in enumerate(layer.query_heads):
        j = i // layer.group_size
        yield Head(
            layer.index,
            number,
            layer.key_heads[j],
            layer.keys[j],
            _at(layer.values, j),
            _at(layer.queries, i),
            _at(layer.output, i),
            scale_of(held, layer),
            held.causal,
        )


def _by_key(layer: Layer, held: Metadata) -> Iterator[Head]:
    size = layer.group_size
    for j, number in enumerate(layer.key_heads):
        shared = slice(j * size, (j + 1) * size)
        yield Head(
            layer.index,
            number,
            number,
            layer.keys[j],
            _at(layer.values, j),
            _at(layer.queries, shared),
            _at(layer.output, shared),
            scale_of(held, layer),
            held.causal,
        )


def scale_of(held: Metadata, layer: Layer) -> float:
    """Return what scores are multiplied by: what is known, or 1 / sqrt(d)."""
    return float(layer.keys.shape[-1]) ** -0.5 if held.scale is None else held.scale


def _at(array: Numbers | None, index: Any) -> Any:
    return None if array is None else array[index]


def _taken(given: tuple[Any, ...] | None, tokens: Any) -> tuple[Any, ...] | None:
    return None if given is None else tuple(given[i] for i in np.arange(len(given))[tokens])
