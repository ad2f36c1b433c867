"""Means over trials of ratios: the scale-optimal error and the signal-to-noise ratio, where N is small too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats, TrialMoments
from capmem.theory.quadrature import normal_rule
from capmem.theory.values import ValueLaw

OPTIMAL = (
    "e_opt = E x/(1+x), SNR = E 1/x, x = |Y|^2 |V|^2 / <Y,V>^2 - 1 of a trial as a gamma variable: about "
    "x = (M2 + (N-1) m2)/m1^2 - 1, with the mean and variance that second moments of <Y,V>, |Y|^2 give it"
)
MOST_SPREAD = 0.5  # of x, variance over squared mean: above it the mean of 1/x is decided by rare trials
MOST_SIGNAL_SPREAD = 0.5  # of <Y,V>: above it there is no signal to expand about


class Spread(NamedTuple):
    """Variances and the covariance (R,) of <Y,V> and |Y|^2 over their means, and of |V|^2 with them."""

    signal: Floats
    both: Floats
    power: Floats
    values: float


def optimal_errors(
    moments: TrialMoments,
    num_pairs: int,
    values: ValueLaw,
    fresh: float = 1.0,
    fourth: float | None = None,
) -> tuple[float, float]:
    """Return the expected scale-optimal error and signal-to-noise ratio (nan where it has no stable mean).

    Parameters
    ----------
    moments : TrialMoments
        Of the kernel.
    num_pairs : int
        N.
    values : ValueLaw
        Values add a variance of order 1/(v N).
    fresh : float
        How much of the variance of independent keys these keys have: 0 where all trials store the same ones.
    fourth : float, optional
        E kappa_ij^4 / m2^2 (default: that of a normal variable).

    Notes
    -----
    A single pair is read without error up to scale. Where the signal is lost in its own spread (cues at right
    angles), the explained share is taken as the ratio of the means of <Y,V>^2 and |Y|^2 |V|^2.
    """
    m1, M2, _, m2 = moments.columns
    if num_pairs == 1:
        read = min(float(moments.weights @ (m1 != 0)), 1.0)  # weights add up to 1 but for rounding
        return 1.0 - read, np.inf if np.all(m1 != 0) else (0.0 if read == 0 else np.nan)
    power = M2 + (num_pairs - 1) * m2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = _spread(moments.columns, power, num_pairs, values, fresh, fourth)
        weak = ~(spread.signal < MOST_SIGNAL_SPREAD)
        mean, variance = _noise(power / m1**2, spread)
        explained = 1 - _error(mean, variance)
        share = np.nan_to_num(m1**2 * (1 + spread.signal) / power).clip(0, 1)
        odds = 1 / (mean * (1 - variance / mean**2))
    odds = np.where(variance > MOST_SPREAD * mean**2, np.nan, odds)
    odds = np.where(mean <= 1e-14, np.inf, odds)
    explained = np.where(weak, share, explained)
    odds = np.where(weak, np.nan, odds)
    return max(float(moments.weights @ (1 - explained)), 0.0), float(moments.weights @ odds)


def _noise(plain: Floats, spread: Spread) -> tuple[Floats, Floats]:
    """Return mean and variance of x = |Y|^2 |V|^2 / <Y,V>^2 - 1, the three taken as jointly log-normal."""
    signal, both, power = 1 + spread.signal, 1 + spread.both, 1 + spread.power
    values = 1 + spread.values  # also 1 + the covariance of |V|^2 with either
    whole = plain * signal**3 / both**2 / values
    relative = signal**4 * power / both**4 / values - 1
    return np.maximum(whole - 1, 0), whole**2 * np.maximum(relative, 0)


def _error(mean: Floats, variance: Floats) -> Floats:
    """Return E x/(1+x) of a gamma variable (Wilson, Hilferty 1931, at seven nodes)."""
    z, weights = normal_rule(7)
    ratio = np.where(mean > 0, variance / np.where(mean > 0, mean, 1) ** 2, 0).clip(max=2)
    x = mean[:, None] * np.maximum(1 - ratio[:, None] / 9 + np.sqrt(ratio)[:, None] / 3 * z, 0) ** 3
    x = x * (mean / np.where(mean > 0, x @ weights, 1))[:, None]
    return np.asarray((x / (1 + x)) @ weights)


def _spread(
    columns: Floats, power: Floats, num_pairs: int, values: ValueLaw, fresh: float, given: float | None
) -> Spread:
    """Return the spread over trials of <Y,V> and |Y|^2, from the keys and from the values.

    kappa_ii = m1 a_i with a_i a gamma variable, kappa_ij^2 = m2 a_i a_j t_ij with t_ij that of a normal variable,
    and G = E phi phi^T has one eigenvalue mu, all others equal.
    """
    m1, M2, mu, m2 = columns
    n, others, more = num_pairs, num_pairs - 1, num_pairs - 2
    a2 = M2 / m1**2
    excess = a2 - 1
    a3 = a2 * (1 + 2 * excess)
    a4 = a3 * (1 + 3 * excess)
    own = np.maximum(m2 - mu**2, 0)
    normal = (mu**4 + 6 * mu**2 * own + 3 * own**2) / np.where(m2 > 0, m2, 1) ** 2
    fourth = normal if given is None else np.full_like(m2, given)
    rest = np.where(m1 > mu, m1 - mu, np.inf)
    cube, quartic = mu**3 + own**2 / rest, mu**4 + own**3 / rest**2

    by_key = m1**2 * (a3 - a2) + 2 * others * m2 * excess
    pairs = 2 * others * m2**2 * (fourth * a2**2 - 1) + 4 * others * more * m2**2 * excess
    keys_power = m1**4 * (a4 - a2**2) + 4 * others * m1**2 * m2 * (a3 - a2) + pairs

    square = others * m2
    triple = others * (2 * m1 * m2 * a2 + more * cube)
    row = m2 * m1**2 * (2 * a3 + 2 * a2**2) + 4 * more * m1 * cube * a2 + more * m2**2 * a2
    four = others * (row + more * (more - 1) * quartic)
    if not values.fixed_norm:
        square = square + M2
        triple = triple + m1**3 * a3 + others * m1 * m2 * a2
        own_rows = 2 * m1**2 * m2 * a3 + m2**2 * (fourth * a2**2 + more * a2)
        four = four + m1**4 * a4 + others * own_rows
    share = 2 * values.overlap / n
    return Spread(
        fresh * excess / n + share * square / m1**2,
        fresh * by_key / (n * power) + share * triple / (m1 * power),
        fresh * keys_power / (n * power**2) + share * four / power**2,
        0.0 if values.fixed_norm else share,
    )
