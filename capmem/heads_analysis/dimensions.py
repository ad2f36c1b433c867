"""How many dimensions the keys of a head use: effective dimension, participation ratio, effective rank, spectrum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capmem import geometry
from capmem.heads_analysis.arrays import Floats, both_ways, unit
from capmem.heads_analysis.halves import of_rows
from capmem.heads_analysis.task import ALL, Analysed, Record


def _centred(keys: Floats) -> Floats:
    return unit(keys - keys.mean(axis=-2, keepdims=True))


STEPS = {"as they are": unit, "centred": _centred}  # the mean is part of the statistic: each half has its own
DIMENSIONS = {
    "effective_dim": geometry.effective_dimension,
    "participation_ratio": geometry.participation_ratio,
    "effective_rank": geometry.effective_rank,
}


def mean_cosine(units: Floats) -> Floats:
    """Return the mean over pairs i != j of cos(x_i, x_j), for unit vectors (..., N, D)."""
    count = units.shape[-2]
    total = (units.sum(axis=-2) ** 2).sum(axis=-1) - (units**2).sum(axis=(-2, -1))
    found: Floats = total / (count * (count - 1))
    return found


def dimensions(head: Analysed, seed: int) -> Iterator[Record]:
    """Yield a row for each choice of tokens, keys as they are and centred; all of keys divided by their norms.

    effective_dim = 1 / mean over i != j of cos^2, unbiased in the mean: random keys of so many dimensions have the
    same crosstalk. participation_ratio and effective_rank count the directions that these T keys fill, and are no more
    than T. The mean that is taken is that of these very keys, which makes the centred numbers somewhat too small.
    """
    for choice, kept in head.choices():
        keys = head.keys[kept]
        for name, step in STEPS.items():
            row = {"choice": choice, "keys": name, "tokens": len(keys), "key_dim": keys.shape[1]}
            row |= {"value_dim": head.values.shape[1], "distinct": len(set(head.labels[kept].tolist()))}
            row |= of_rows(mean_cosine, step, keys, seed, False).columns("mean_cosine")
            for column, statistic in DIMENSIONS.items():
                row |= of_rows(statistic, step, keys, seed).columns(column)
            yield head.columns() | row


def spectrum(head: Analysed) -> Iterator[Record]:
    """Yield the shares of the eigenvalues of sum k k^T, keys divided by their norms, all tokens."""
    for name, keys in both_ways(head.keys):
        power = np.linalg.svd(unit(keys), compute_uv=False) ** 2
        for index, share in enumerate(power / max(float(power.sum()), np.finfo(float).tiny), start=1):
            yield head.columns() | {"choice": ALL, "keys": name, "index": index, "share": float(share)}
