"""Reports: what was loaded, in words, and what the keys of every head are like, with and without odd tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capmem import geometry
from capmem.heads.container import Heads
from capmem.heads.layer import Layer
from capmem.heads.widen import Numbers

OUTLIER_FACTOR, OUTLIER_DEVIATIONS = 2.0, 6.0
NORMAL_MAD = 1.4826  # standard deviations in a median absolute deviation of normal numbers


def outliers(keys: Numbers) -> NDArray[np.bool_]:
    """Return which keys (..., T, d) have an outlying norm (..., T): attention sinks, most often.

    The log norm is 6 robust standard deviations (from the median absolute deviation) from the median, and the
    norm is more than twice the median, or less than half of it.
    """
    norms = np.linalg.norm(np.asarray(keys, np.float64), axis=-1)
    logs = np.log(np.maximum(norms, np.finfo(np.float64).tiny))
    distance = np.abs(logs - np.median(logs, axis=-1, keepdims=True))
    spread = NORMAL_MAD * np.median(distance, axis=-1, keepdims=True)
    found: NDArray[np.bool_] = distance > np.maximum(np.log(OUTLIER_FACTOR), OUTLIER_DEVIATIONS * spread)
    return found


def summary(heads: Heads) -> list[dict[str, Any]]:
    """Return a record for every key head and choice of tokens: all, and, if there are any, without odd ones.

    Fields: layer, head, choice ("all", "without special", "without outliers"), tokens, distinct (ids),
    outliers (the tokens of outlying norm), norm (median), mean_cosine, effective_dim = 1 / mean cos^2 over pairs of
    keys, and effective_dim_centred, the same once their mean is subtracted; the mean is that of these very keys,
    which makes the last one somewhat too small.
    """
    records = []
    for index in heads.layers:
        layer = heads.layer(index)
        for j, number in enumerate(layer.key_heads):
            odd = outliers(layer.keys[j])
            for choice, kept in _choices(heads, odd):
                if kept.sum() >= 2:
                    records.append({"layer": index, "head": number, "choice": choice} | _of(heads, layer, j, kept, odd))
    return records


def _choices(heads: Heads, odd: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield "all", np.ones(len(odd), bool)
    if heads.metadata.special is not None and any(heads.metadata.special):
        yield "without special", ~np.array(heads.metadata.special)
    if odd.any():
        yield "without outliers", ~odd


def _of(heads: Heads, layer: Layer, j: int, kept: NDArray[np.bool_], odd: NDArray[np.bool_]) -> dict[str, Any]:
    keys = layer.keys[j, kept].astype(np.float64)
    ids = heads.metadata.ids if heads.metadata.ids is not None else heads.metadata.tokens
    return {
        "tokens": len(keys),
        "distinct": None if ids is None else len({ids[i] for i in np.flatnonzero(kept)}),
        "outliers": tuple(int(i) for i in np.flatnonzero(odd & kept)),
        "norm": float(np.median(np.linalg.norm(keys, axis=-1))),
        "mean_cosine": _mean_cosine(keys),
        "effective_dim": _effective_dim(keys),
        "effective_dim_centred": _effective_dim(keys - keys.mean(axis=0)),
    }


def _effective_dim(keys: Numbers) -> float:
    squared = float(geometry.mean_squared_coherence(keys))
    return 1 / squared if squared else float("inf")


def _mean_cosine(keys: Numbers) -> float:
    norms = np.linalg.norm(keys, axis=-1, keepdims=True)
    unit = keys / np.where(norms > 0, norms, 1)
    return float(((unit.sum(axis=0) ** 2).sum() - (unit**2).sum()) / (len(unit) * (len(unit) - 1)))


def describe(heads: Heads) -> str:
    """Return a few lines on heads: source, shapes, number format, scale, mask, and what was guessed or confirmed."""
    held, layer = heads.metadata, heads.layer(heads.layers[0])
    count, dim = layer.keys.shape[1:]
    sizes = (
        f"{len(layer.query_heads)} query heads on {len(layer.key_heads)} key heads, {count} tokens, key dimension {dim}"
    )
    mask = {True: "causal", False: "not causal", None: "mask not known"}[held.causal]
    scale = "1 / sqrt(d)" if held.scale is None else f"{held.scale:.6g}"
    rotary = {None: "rotary not known", "none": "no rotary embedding"}.get(
        held.rotary, f"{held.rotary} rotary embedding"
    )
    lines = [
        f"{held.model or 'heads'}: layers {', '.join(map(str, heads.layers))}; {sizes}",
        f"stored as {held.dtype or layer.keys.dtype}, scale {scale}, {mask}, {rotary}",
    ]
    odd = outliers(layer.keys).any(axis=0)
    if held.special is not None and any(held.special):
        lines.append(f"{sum(held.special)} special tokens (in all numbers, unless left out)")
    if odd.any():
        named = [repr(held.tokens[i]) if held.tokens else f"token {i}" for i in np.flatnonzero(odd)[:5]]
        lines.append(
            f"keys of outlying norm in layer {layer.index}: {', '.join(named)}" + (", ..." if odd.sum() > 5 else "")
        )
    return "\n".join([*lines, *held.notes])
