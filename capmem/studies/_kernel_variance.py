"""FAVOR+ against key norm: how much its estimate of kappa(k, k) varies over draws of its directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from capmem.ensembles.base import Rows
from capmem.feature_maps import PositiveRandomFeatures
from capmem.trial import KEY_STREAM, MAP_STREAM, Record


def self_kernel_variance(scaled_square: float, num_features: int) -> float:
    """Return the relative variance of phi(k).phi(k) over independent directions: (exp(4 |x|^2) - 1) / m.

    x = k / d^(1/4), so |x|^2 = |k|^2 / sqrt(d): 1 / sqrt(d) for unit keys, sqrt(d) for keys from N(0, I).

    References
    ----------
    Choromanski et al. 2021, arXiv 2009.14794 (Lemma 2, at y = x).
    """
    return float(np.expm1(4 * scaled_square)) / num_features


def variance_rows(
    scaled_squares: Sequence[float], key_dim: int, num_features: int, draws: int, seed: int
) -> Iterator[Record]:
    """Yield a row for each |x|^2 and kind of directions: relative variance and median of kappa(k, k) / exp(|x|^2).

    Columns relative_variance_low, _high: a bootstrap interval over draws. Where the closed form is far above it,
    the draws miss the rare directions that make the variance.
    """
    squares = np.array(sorted(set(scaled_squares)))
    direction = np.random.default_rng([seed, KEY_STREAM]).standard_normal(key_dim)
    lengths = squares**0.5 * key_dim**0.25
    keys = lengths[:, None] * direction / np.linalg.norm(direction)
    seeds = np.random.default_rng([seed, MAP_STREAM]).integers(2**31, size=draws)
    for orthogonal in (False, True):
        ratios = np.empty((draws, len(squares)))
        for i, drawn in enumerate(seeds):
            features = PositiveRandomFeatures(num_features, orthogonal=orthogonal, seed=int(drawn))(keys)
            ratios[i] = (features**2).sum(axis=-1) / np.exp(squares)
        low, high = _interval(ratios, seed)
        for j, square in enumerate(squares):
            told: Record = {"part": "favor", "directions": "orthogonal" if orthogonal else "independent"}
            told |= {"key_square": float(square), "num_features": num_features, "draws": draws}
            yield told | {
                "relative_variance": float(np.mean((ratios[:, j] - 1) ** 2)),
                "relative_variance_low": float(low[j]),
                "relative_variance_high": float(high[j]),
                "theory_relative_variance": self_kernel_variance(square, num_features),
                "median_ratio": float(np.median(ratios[:, j])),
            }


def _interval(ratios: Rows, seed: int, resamples: int = 200) -> tuple[Rows, Rows]:
    """Return 95% bootstrap limits of the mean squared deviation from 1."""
    rng = np.random.default_rng([seed, 1])
    squares = (ratios - 1) ** 2
    means = [squares[rng.integers(len(squares), size=len(squares))].mean(axis=0) for _ in range(resamples)]
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low, high
