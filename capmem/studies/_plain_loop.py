"""The benchmark's sweep as a careful researcher writes it: plain NumPy, a loop nest, one row after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.floating]

MAP_STREAM = 3
NUM_FEATURES = 256


class Cell(NamedTuple):
    """One row of the table."""

    key_dim: int
    feature_map: str
    correlation: float
    num_pairs: int
    trial: int


class Measured(NamedTuple):
    """What the row holds."""

    relative_squared_error: float
    scale_optimal_error: float
    cosine_similarity: float
    top1_accuracy: float


def plain_loop(
    key_dims: tuple[int, ...],
    feature_maps: tuple[str, ...],
    correlations: tuple[float, ...],
    num_pairs: tuple[int, ...],
    trials: int,
    value_dim: int,
    seed: int,
    dtype: str,
) -> Iterator[tuple[Cell, Measured]]:
    """Yield every row of the sweep; draws are those of capmem, so that results can be compared number by number."""
    for d in key_dims:
        for name in feature_maps:
            for c in correlations:
                for n in num_pairs:
                    for trial in range(trials):
                        keys, values = draw(d, c, n, trial, value_dim, seed, dtype)
                        features = MAPS[name](d**0.5 * keys, seed, trial)
                        yield Cell(d, name, c, n, trial), measure(features, values)


def draw(d: int, c: float, n: int, trial: int, v: int, seed: int, dtype: str) -> tuple[Rows, Rows]:
    """Return unit keys (n, d) that share a direction, and values (n, v) of norm sqrt(v)."""
    rng = np.random.default_rng([seed, trial, 0])
    common = rng.standard_normal(d) / np.sqrt(d)
    keys = np.sqrt(c) * common + np.sqrt((1 - c) / d) * rng.standard_normal((n, d))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    values = np.random.default_rng([seed, trial, 1]).standard_normal((n, v))
    values *= np.sqrt(v) / np.linalg.norm(values, axis=1, keepdims=True)
    return keys.astype(dtype, copy=False), values.astype(dtype, copy=False)


def measure(features: Rows, values: Rows) -> Measured:
    """Write all pairs, read all of them, and compare what comes back with what was stored."""
    state = features.T @ values
    retrieved = features @ state
    power = np.sum(values**2)
    overlap = np.sum(retrieved * values)
    gain = overlap / np.sum(retrieved**2)
    norms = np.linalg.norm(retrieved, axis=1) * np.linalg.norm(values, axis=1)
    norms[norms == 0] = 1  # a key without features retrieves nothing: its cosine counts as 0
    best = np.argmax(retrieved @ values.T, axis=1)
    return Measured(
        float(np.sum((retrieved - values) ** 2) / power),
        float(np.sum((gain * retrieved - values) ** 2) / power),
        float(np.mean(np.sum(retrieved * values, axis=1) / norms)),
        float(np.mean(best == np.arange(len(values)))),
    )


def relu(x: Rows, seed: int, trial: int) -> Rows:
    """Return max(x, 0)."""
    return np.maximum(x, 0)


def elu_plus_one(x: Rows, seed: int, trial: int) -> Rows:
    """Return ELU(x) + 1."""
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def dpfp(x: Rows, seed: int, trial: int) -> Rows:
    """Return products of neighbours among max([x, -x], 0)."""
    r = np.maximum(np.concatenate([x, -x], axis=1), 0)
    features: Rows = r * np.roll(r, 1, axis=1)
    return features


def favor(x: Rows, seed: int, trial: int) -> Rows:
    """Return positive random features of exp(x . y / sqrt(d)), with directions of the trial's own."""
    d = x.shape[1]
    u = x / x.dtype.type(d**0.25)
    w = directions(d, seed, trial).astype(x.dtype, copy=False)
    features: Rows = np.exp(u @ w.T - np.sum(u**2, axis=1, keepdims=True) / 2) / x.dtype.type(NUM_FEATURES**0.5)
    return features


@lru_cache(maxsize=1024)
def directions(d: int, seed: int, trial: int) -> Rows:
    """Return directions (m, d), orthogonal in blocks, with chi-distributed lengths; drawn once a trial and d."""
    own_seed = np.random.default_rng([seed, trial, MAP_STREAM, 0]).integers(2**31)
    rng = np.random.default_rng(own_seed)
    q, r = np.linalg.qr(rng.standard_normal((-(-NUM_FEATURES // d), d, d)))
    blocks = np.swapaxes(q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :], 1, 2)
    rows: Rows = blocks.reshape(-1, d)[:NUM_FEATURES] * np.sqrt(rng.chisquare(d, size=(NUM_FEATURES, 1)))
    return rows


MAPS: dict[str, Callable[[Rows, int, int], Rows]] = {
    "identity": lambda x, seed, trial: x,
    "relu": relu,
    "elu_plus_one": elu_plus_one,
    "dpfp": dpfp,
    "positive_random_features": favor,
}
