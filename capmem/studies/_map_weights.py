"""What a feature map attends to: its row-normalised kernel against softmax's weights, and how sharp both are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

import numpy as np

from capmem.ensembles import Ensemble
from capmem.ensembles.base import Rows
from capmem.feature_maps import FeatureMap
from capmem.studies._map_dimension import quiet_features, redrawn
from capmem.trial import CUE_STREAM, KEY_STREAM, Record

QUERIES = 64  # rows of weights that are looked at in each trial
BASELINES = ("softmax", "uniform")

Cues = Literal["stored", "independent"]


def softmax_weights(queries: Rows, keys: Rows) -> Rows:
    """Return softmax(q . k / sqrt(d)) over the keys (..., M, N)."""
    scores = queries @ keys.swapaxes(-1, -2) / keys.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return cast(Rows, weights / weights.sum(axis=-1, keepdims=True))


def kernel_weights(phi: FeatureMap, queries: Rows, keys: Rows) -> Rows:
    """Return phi(q) . phi(k) over its sum along the keys (M, N); signed features can make it negative, or inf.

    Queries are taken to stand at the first M places, which only maps that depend on the place see.
    """
    kernel = quiet_features(phi, queries) @ quiet_features(phi, keys).swapaxes(-1, -2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return cast(Rows, kernel / kernel.sum(axis=-1, keepdims=True))


def weight_rows(
    maps: Mapping[str, FeatureMap],
    law: Ensemble,
    key_dim: int,
    counts: Sequence[int],
    cues: Cues,
    draws: tuple[int, int],
) -> Iterator[Record]:
    """Yield a row for each map, "softmax" and "uniform", and N; `draws` is (trials, seed).

    Columns: fit_error, median over queries of |w - p|^2 / |u - p|^2 with softmax's weights p and uniform ones u (0:
    softmax itself, 1: no closer than uniform); weight_error, that of |w - p|^2 / |p|^2; negative_weights, their share;
    entropy, mean over queries in units of ln N, and largest_weight, both nan where a weight is negative.
    """
    trials, seed = draws
    for n in sorted(set(counts)):
        pairs = [_drawn(law, key_dim, n, cues, (seed, trial)) for trial in range(trials)]
        softmax = np.concatenate([softmax_weights(*pair) for pair in pairs])
        uniform = np.full_like(softmax, 1 / n)
        told = {"num_pairs": n, "num_queries": len(softmax)}
        for name, weights in zip(BASELINES, (softmax, uniform), strict=True):
            yield told | {"feature_map": name} | compared(weights, softmax)
        for name, phi in maps.items():
            drawn = [kernel_weights(redrawn(phi, seed, t), *pair) for t, pair in enumerate(pairs)]
            yield told | {"feature_map": name} | compared(np.concatenate(drawn), softmax)


def compared(weights: Rows, softmax: Rows) -> Record:
    """Return fit and sharpness of weights (M, N); see :func:`weight_rows`."""
    n = softmax.shape[-1]
    away = ((weights - softmax) ** 2).sum(axis=-1)
    uniform = ((1 / n - softmax) ** 2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = float(np.median(away / uniform))  # nan or inf where softmax itself is uniform
    found: Record = {
        "fit_error": fit,
        "weight_error": float(np.median(away / (softmax**2).sum(axis=-1))),
        "negative_weights": float((weights < 0).mean()),
    }
    if n < 2 or not (weights >= 0).all():
        return found | {"entropy": math.nan, "largest_weight": math.nan}
    logs = np.log(np.where(weights > 0, weights, 1))
    entropy = -(weights * logs).sum(axis=-1) / math.log(n)
    return found | {"entropy": float(entropy.mean()), "largest_weight": float(weights.max(axis=-1).mean())}


def _drawn(law: Ensemble, key_dim: int, count: int, cues: Cues, place: tuple[int, int]) -> tuple[Rows, Rows]:
    """Return queries and keys of a trial; stored queries are the first keys themselves."""
    keys = law.sample(np.random.default_rng([*place, KEY_STREAM]), count, key_dim)
    if cues == "stored":
        return keys[:QUERIES], keys
    return law.sample(np.random.default_rng([*place, CUE_STREAM]), min(count, QUERIES), key_dim), keys
