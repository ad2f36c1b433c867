"""Confirmation: the layer's own output has to come out of its queries, keys and values, or nothing is right."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from capmem.heads.layer import Layer
from capmem.heads.widen import Numbers

TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2}  # relative error: outputs of 11 and 8 bits, from rounded weights
DEFAULT_TOLERANCE = 1e-5
PROBES = 128  # queries that decide between variants
ROUNDING = 1e-12  # errors below are equal
BLOCK = 512  # rows of scores held at once

BLOCKS, CYCLES = "h // (H_q / H_kv)", "h % H_kv"


class Variant(NamedTuple):
    """One reading of a layer.

    Attributes
    ----------
    scale : float
        What scores are multiplied by.
    causal : bool
        Whether a token sees only itself and what came before.
    grouping : str
        Which key head query head h uses.
    layout : str
        The axes of the arrays.
    """

    scale: float
    causal: bool
    grouping: str = BLOCKS
    layout: str = ""

    def __str__(self) -> str:
        mask = "causal" if self.causal else "not causal"
        layout = f"layout {self.layout}, " if self.layout else ""
        return f"{layout}scale {self.scale:.4g}, {mask}, key head {self.grouping}"


class Trial(NamedTuple):
    """A variant, and the relative Frobenius error with which it reproduces the output."""

    variant: Variant
    error: float

    def __str__(self) -> str:
        return f"{self.variant}: error {self.error:.2g}"


class Confirmation(NamedTuple):
    """The variant that reproduces a layer's output.

    Attributes
    ----------
    variant : Variant
        That one.
    error : float
        Its relative Frobenius error over all tokens and heads, in float64.
    tried : tuple of Trial
        All variants, on the tokens that decided between them.
    also : tuple of Trial
        Others that fit as well: what the output cannot tell apart.
    """

    variant: Variant
    error: float
    tried: tuple[Trial, ...]
    also: tuple[Trial, ...]


def confirm(
    layer: Layer, scale: float | None = None, causal: bool | None = None, tolerance: float = DEFAULT_TOLERANCE
) -> Confirmation:
    """Find how a layer's output comes out of its queries, keys and values: o = softmax(scale q k^T) v.

    Parameters
    ----------
    layer : Layer
        With queries, values and output.
    scale, causal : optional
        What is said of it; nothing else is accepted then. None: 1 / sqrt(d), 1, 1 / d, and both masks are tried.
    tolerance : float
        The largest relative error that counts as reproduced.

    Returns
    -------
    Confirmation
        Grouping is found too; where it is h % H_kv, see :func:`regrouped`.

    Raises
    ------
    ValueError
        If no variant that agrees with what is said reproduces the output; all that were tried are listed.
    """
    return choose([("", layer)], scale, causal, tolerance)


def choose(
    readings: Iterable[tuple[str, Layer]], scale: float | None, causal: bool | None, tolerance: float
) -> Confirmation:
    """Find the layout too: `readings` are a layer in each layout that its shapes allow; see :func:`confirm`."""
    read = dict(readings)
    tried = [trial for layout, layer in read.items() for trial in _trials(layout, layer, scale, causal)]
    fitting = [trial for trial in tried if trial.error <= tolerance]
    said = [trial for trial in fitting if _agrees(trial.variant, scale, causal)]
    name = f"layer {next(iter(read.values())).index}"
    if not said:
        raise ValueError(_refusal(name, tried, fitting, scale, causal))
    best = min(said, key=lambda trial: float(f"{trial.error + ROUNDING:.1e}")).variant  # of equals, the most usual
    error = reproduction_error(read[best.layout], best)
    if error > tolerance:
        raise ValueError(f"{name}: {best} reproduces the output of {PROBES} tokens, but not of all: error {error:.2g}")
    return Confirmation(best, error, tuple(tried), tuple(trial for trial in fitting if trial.variant != best))


def reproduction_error(layer: Layer, variant: Variant, rows: Numbers | None = None) -> float:
    """Return |made - output| / |output| (Frobenius norm, float64) of a layer read as a variant says."""
    if layer.queries is None or layer.values is None or layer.output is None:
        raise ValueError(f"layer {layer.index} needs queries, values and output to be confirmed")
    rows = np.arange(layer.keys.shape[1]) if rows is None else rows
    wrong, whole = 0.0, 0.0
    for head in range(len(layer.queries)):
        j = head // layer.group_size if variant.grouping == BLOCKS else head % len(layer.keys)
        keys, values = layer.keys[j].astype(np.float64), layer.values[j].astype(np.float64)
        for part in np.split(rows, range(BLOCK, len(rows), BLOCK)):
            given = layer.output[head, part].astype(np.float64)
            made = _attention(layer.queries[head, part].astype(np.float64), keys, values, part, variant)
            wrong += float(((made - given) ** 2).sum())
            whole += float((given**2).sum())
    return float((wrong / whole) ** 0.5) if whole else float("inf" if wrong else 0.0)


def regrouped(layer: Layer) -> Layer:
    """Return a layer whose query head h uses key head h % H_kv with its query heads in the order h // G."""
    order = [g * len(layer.keys) + j for j in range(len(layer.keys)) for g in range(layer.group_size)]
    assert layer.queries is not None
    return replace(
        layer,
        queries=layer.queries[order],
        output=None if layer.output is None else layer.output[order],
        query_heads=tuple(layer.query_heads[i] for i in order),
    )


def _attention(queries: Numbers, keys: Numbers, values: Numbers, rows: Numbers, variant: Variant) -> Numbers:
    scores = variant.scale * (queries @ keys.T)
    if variant.causal:
        scores[np.arange(len(keys)) > rows[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    made: Numbers = (weights @ values) / weights.sum(axis=1, keepdims=True)
    return made


def _trials(layout: str, layer: Layer, scale: float | None, causal: bool | None) -> list[Trial]:
    """Return the error of every variant, what was said and what is usual first."""
    dim, count = layer.keys.shape[-1], layer.keys.shape[1]
    scales = list(dict.fromkeys(([] if scale is None else [scale]) + [dim**-0.5, 1.0, 1 / dim]))
    masks = [False, True] if causal is None else [causal, not causal]
    groupings = [BLOCKS, CYCLES] if 1 < len(layer.keys) < len(layer.query_heads) else [BLOCKS]
    rows = np.unique(np.linspace(0, count - 1, PROBES).astype(int))
    variants = [Variant(s, m, g, layout) for g, s, m in itertools.product(groupings, scales, masks)]
    return [Trial(variant, reproduction_error(layer, variant, rows)) for variant in variants]


def _agrees(variant: Variant, scale: float | None, causal: bool | None) -> bool:
    return (scale is None or variant.scale == scale) and (causal is None or variant.causal == causal)


def _refusal(name: str, tried: list[Trial], fitting: list[Trial], scale: float | None, causal: bool | None) -> str:
    listed = "; ".join(map(str, sorted(tried, key=lambda trial: trial.error)[:12]))
    if not fitting:
        hint = "is it taken before the output projection? confirm=False leaves it unchecked"
        return f"{name}: no variant reproduces its output ({hint}). Tried, best first: {listed}"
    said = [f"{key}={given}" for key, given in (("scale", scale), ("causal", causal)) if given is not None]
    return f"{name}: its output contradicts {', '.join(said)}. Tried, best first: {listed}"
