"""Whether a measured mean and a predicted one agree: by standard errors, or by the stated error of an approximation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

LEVEL = 0.01  # chance that any number of a table of right ones fails
LEAST_LIMIT = 4.0
HEAVY = 0.25  # of the sum of squares in one trial: the mean of so few trials has no t law
ROUNDING = 1e-9
INFINITE = 1e10  # what an infinite ratio comes to in float64

AGREES, FAILS, UNTESTED = "agrees", "fails", "cannot tell"


class Verdict(NamedTuple):
    """A measured mean against a predicted one.

    Attributes
    ----------
    measured, standard_error : float
        Over trials.
    z : float
        (measured - predicted) / standard error.
    deviation : float
        predicted / measured - 1.
    verdict : str
        "agrees", "fails", or "cannot tell": one trial decides the mean, or no error is stated.
    """

    measured: float
    standard_error: float
    z: float
    deviation: float
    verdict: str


def limit(numbers: int, trials: int) -> float:
    """Return how many standard errors are allowed: the two-sided t quantile for so many numbers, not below 4."""
    return max(LEAST_LIMIT, float(stdtrit(max(trials - 1, 1), 1 - LEVEL / (2 * max(numbers, 1)))))


def verdict(values: NDArray[np.float64], predicted: float, bound: float, least_error: float, allowed: float) -> Verdict:
    """Judge the trials of one number.

    Parameters
    ----------
    values : array (trials,)
        What was measured.
    predicted : float
        The prediction.
    bound : float
        The stated error, relative to the true value; 0 for an exact formula, infinite where none is stated.
    least_error : float
        The standard error is at least that: trials that all agree do not show how far others may be.
    allowed : float
        Standard errors allowed.
    """
    if math.isinf(predicted):
        return Verdict(float(values.mean()), 0.0, 0.0, 0.0, AGREES if values.min() > INFINITE else FAILS)
    mean = float(values.mean())
    squares = (values - mean) ** 2
    error = max(float(squares.sum() / max(len(values) - 1, 1) / len(values)) ** 0.5, least_error)
    gap = mean - predicted
    if abs(gap) <= ROUNDING * max(abs(predicted), ROUNDING):
        return Verdict(mean, error, 0.0, 0.0, AGREES)
    z = gap / error if error > 0 else math.copysign(math.inf, gap)
    deviation = predicted / mean - 1 if mean else math.inf
    beyond = max(abs(gap) - bound * abs(mean), 0.0) / error if error > 0 else math.inf
    if math.isinf(bound):
        told = UNTESTED
    elif abs(unskewed(math.copysign(beyond, gap), values)) <= allowed:
        told = AGREES
    else:
        told = UNTESTED if squares.max() > max(HEAVY, 12 / len(values)) * squares.sum() else FAILS
    return Verdict(mean, error, z, deviation, told)


def unskewed(z: float, values: NDArray[np.float64]) -> float:
    """Return a t statistic less what the skewness of its trials does to it: z + g z^2/3 + g^2 z^3/27 + g/6.

    g = skewness / sqrt(n). Monotone in z (Hall 1992, On the removal of skewness by transformation, JRSS B 54).
    """
    spread = float(values.std())
    if z == 0 or spread == 0 or math.isinf(z):
        return z
    g = float(np.mean((values - values.mean()) ** 3)) / spread**3 / len(values) ** 0.5
    return float(z + g * z**2 / 3 + g**2 * z**3 / 27 + g / 6)
