"""Keys that resemble some others more than the rest: drifting, clustered, repeated."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from capmem.ensembles import AutoregressiveKeys, ClusteredKeys, DuplicatedKeys
from capmem.theory.base import Floats, TheoryUnavailable, TrialMoments
from capmem.theory.case import Case
from capmem.theory.special import hyp2f1
from capmem.theory.structured import normed, pair_averages, require_steps

UNIT = "R2(c) = 1 - ((d-1)/d)(1-c^2) 2F1(1, 1; d/2+1; c^2)"
AUTOREGRESSIVE = f"m2 = mean over lags m of R2(a^m), {UNIT}; without norm R2(c) = c^2 + (1+c^2)/d"
CLUSTERED = f"m2 = R2(c)/K + (1 - 1/K)/d, {UNIT}"
DUPLICATED = "r - 1 others have the same key, r = (1-f^N)/(1-f): sum_j kappa_ij^2 = (r-1) M2 + (N-r) m2"
MAX_LAGS = 20_000
FORGOTTEN = 1e-8  # a correlation whose square is below rounding


def unit_square(correlation: Floats, dim: int) -> Floats:
    """Return R2, the mean squared cosine of two N(0, I) vectors whose coordinates have this correlation."""
    if dim == 1:
        return np.ones_like(correlation)
    c2 = np.minimum(correlation**2, 1)
    whole = (1 - c2) * hyp2f1(1, 1, dim / 2 + 1, np.minimum(c2, 1 - 1e-12))
    return np.asarray(1 - (dim - 1) / dim * whole)


def unit_mean(correlation: Floats, dim: int) -> Floats:
    """Return the mean cosine of the same two vectors."""
    ratio = np.exp(2 * (gammaln((dim + 1) / 2) - gammaln(dim / 2))) * 2 / dim
    c2 = np.minimum(correlation**2, 1)
    return np.asarray(correlation * ratio * hyp2f1(0.5, 0.5, dim / 2 + 1, c2))


def autoregressive_moments(case: Case) -> TrialMoments:
    """Return the moments of a stationary sequence, averaged over all pairs of places."""
    keys, d, n = case.keys, case.key_dim, case.num_pairs
    assert isinstance(keys, AutoregressiveKeys)
    require_steps(case, centred=abs(keys.correlation) < 1)
    unit = keys.unit_norm or normed(case)
    cross, square, product = _lag_averages(float(keys.correlation), d, n, unit)
    return pair_averages(case, cross, square, AUTOREGRESSIVE, 1.0 if unit else 1 + 2 / d, product)


def _lag_averages(a: float, dim: int, num_pairs: int, unit: bool) -> tuple[float, float, float]:
    """Return the means of k_i . k_j, its square and |k_i|^2 |k_j|^2 over i != j."""
    if num_pairs == 1:
        return 0.0, 0.0, 1.0
    sums = _lag_sums(a, dim, unit)
    lags = min(num_pairs - 1, sums.shape[1] - 1)
    if lags < num_pairs - 1 and abs(a) ** (lags + 1) > FORGOTTEN:
        raise TheoryUnavailable(f"no formula for more than {MAX_LAGS} keys of correlation {a}")
    # sum over lags of (N - m) f(m): sums holds the running sums of f and m f, both above the limit at long lags
    totals = num_pairs * sums[:3, lags] - sums[3:, lags]
    far = np.array([0.0, 1 / dim, 1.0])
    return tuple(map(float, far + 2 * totals / (num_pairs * (num_pairs - 1.0))))  # type: ignore[return-value]


@lru_cache(maxsize=64)
def _lag_sums(a: float, dim: int, unit: bool) -> Floats:
    """Return running sums over lags m = 0.. (6, lags + 1) of what the three means have above uncorrelated keys."""
    enough = MAX_LAGS if abs(a) >= 1 else int(np.log(FORGOTTEN) / np.log(abs(a))) + 1 if a else 1
    lag = np.arange(1.0, min(enough, MAX_LAGS) + 1)
    c = a**lag
    if unit:
        rows = np.stack([unit_mean(c, dim), unit_square(c, dim) - 1 / dim, np.zeros_like(c)])
    else:
        rows = np.stack([c, c**2 * (1 + 1 / dim), 2 * c**2 / dim])
    sums = np.cumsum(np.concatenate([rows, lag * rows]), axis=1)
    return np.concatenate([np.zeros((6, 1)), sums], axis=1)


def clustered_moments(case: Case) -> TrialMoments:
    """Return the moments of keys in clusters: two are of the same one with chance 1/K."""
    keys, d = case.keys, case.key_dim
    assert isinstance(keys, ClusteredKeys)
    require_steps(case, centred=False)
    share, c = 1 / keys.num_clusters, np.array(float(keys.correlation))
    square = share * float(unit_square(c, d)) + (1 - share) / d
    return pair_averages(case, share * float(unit_mean(c, d)), square, CLUSTERED)


def duplicated_moments(case: Case, distinct: TrialMoments) -> TrialMoments:
    """Return the moments over the pairs that are scored, the latest of each key, from those of distinct keys.

    Notes
    -----
    With n_d different keys among N, n_d - 1 ~ Binomial(N - 1, 1 - f), a scored key was written N/n_d times in the
    mean, and E 1/n_d = (1 - f^N) / (N (1 - f)).
    """
    keys, n = case.keys, case.num_pairs
    assert isinstance(keys, DuplicatedKeys)
    m1, M2, mu, m2 = distinct.columns
    same = expected_copies(keys, n) - 1
    mixed = [(same * s + (n - 1 - same) * o) / max(n - 1, 1) for s, o in ((m1, mu), (M2, m2))]
    columns = np.stack([m1, M2, *mixed])
    return distinct._replace(columns=columns, formula=f"{DUPLICATED}; {distinct.formula}")


def expected_copies(keys: DuplicatedKeys, num_pairs: int) -> float:
    """Return how often a scored key was written in the mean: E N / (number of different keys)."""
    f = float(keys.fraction)
    return float(num_pairs) if f == 1 else (1 - f**num_pairs) / (1 - f)


def copies(keys: DuplicatedKeys, num_pairs: int) -> tuple[Floats, Floats]:
    """Return how often a key was written, and the chances: geometric, as in a long sequence, of the exact mean."""
    mean = expected_copies(keys, num_pairs)
    if keys.fraction == 1:
        return np.array([mean]), np.ones(1)
    count = np.arange(1.0, min(num_pairs, int(20 * mean) + 1, MAX_LAGS) + 1)
    chances = (1 - 1 / mean) ** (count - 1)
    return count, chances / chances.sum()
