"""Means over trials of ratios of a read: the scale-optimal error and the signal-to-noise ratio of any write rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats

FORMULA = (
    "x = |Y|^2 |V|^2 / <Y,V>^2 - 1 of a trial as a gamma variable of mean P/(g^2 + s/N + f T/(N v)) - 1 and variance "
    "(2 f T^2/(N (N-1)) + 2 s^2/(N-1))/g^4: g the mean gain, P the power, T its crosstalk, s the spread of own "
    "weights, f = 1 + c^2 g^2/E w_ii^2"
)
MOST_SPREAD = 0.5  # of x, variance over squared mean


class ReadMoments(NamedTuple):
    """Means over all pairs of a read, in units of E|v|^2; each (R,).

    Attributes
    ----------
    gain, power : array (R,)
        E w_ii and E|y|^2, y_i = sum_j w_ij v_j.
    own, spread : array (R,)
        E w_ii^2, and the mean over ages of its variance at one age.
    """

    gain: Floats
    power: Floats
    own: Floats
    spread: Floats


def trial_ratios(read: ReadMoments, num_pairs: int, value_dim: int, cosine: float) -> tuple[Floats, Floats]:
    """Return E x/(1+x), the scale-optimal error, and E 1/x, the signal-to-noise ratio: :data:`FORMULA`.

    Both are nan where N is so small that a gamma variable is no picture of x. A single pair is read without error up
    to scale.
    """
    n, g2 = num_pairs, read.gain**2
    noise = np.maximum(read.power - read.own, 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        both = 1 + cosine**2 * np.nan_to_num(g2 / read.own)
        signal = g2 + read.spread / n + both * noise / (n * value_dim)
        x = np.maximum(read.power / signal - 1, 0) * (n > 1)
        others = max(n - 1, 1)
        variance = 2 * both * noise**2 / (n * others) + 2 * read.spread**2 / others
        ratio = np.nan_to_num(variance / signal**2 / x**2).clip(max=2)
        odds = np.where(x > 1e-14, 1 / (x * (1 - ratio)), np.inf)
    silent = ~(signal > 0)
    wild = ratio > MOST_SPREAD
    optimal, odds = (np.where(wild, np.nan, each) for each in (_mean_share(x, ratio), odds))
    return np.where(silent, 1.0, optimal), np.where(silent, 0.0, odds)


def _mean_share(x: Floats, ratio: Floats) -> Floats:
    """Return E x/(1+x) of a gamma variable by its Gauss rule of two nodes, exact for cubic functions."""
    reach = np.sqrt(ratio + ratio**2)
    upper, lower = _share(x * (1 + ratio + reach)), _share(x * (1 + ratio - reach))
    weight = (1 - np.sqrt(ratio / (1 + ratio))) / 2
    return np.asarray(weight * upper + (1 - weight) * lower)


def _share(x: Floats) -> Floats:
    return np.asarray(np.where(np.isinf(x), 1.0, x / (1 + np.where(np.isinf(x), 0, x))))
