"""Classical results on one softmax update over stored patterns: how far it errs, and how many patterns it stores."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.special import wrightomega

from capmem.schema import require


class ExponentialCapacity(NamedTuple):
    """Random patterns that one softmax update stores: their number, the base c, and whether c is large enough."""

    patterns: float
    base: float
    valid: bool


def ramsauer_error_bound(
    num_patterns: int, beta: float, separation: float, norm: float, distance: float = 0.0
) -> float:
    """Return the bound on |x_new - x_i| after one softmax update of a cue near pattern i.

    2 (N - 1) exp(-beta (Delta - 2 r M)) M.

    Parameters
    ----------
    num_patterns : int
        N.
    beta : float
        Inverse temperature.
    separation : float
        Delta = x_i . x_i - max_{j != i} x_i . x_j.
    norm : float
        M, the largest norm of a pattern.
    distance : float
        r, the larger of the distances of x_i to the cue and to its fixed point.

    References
    ----------
    Ramsauer et al. 2021, arXiv 2008.02217, Theorem 5.
    """
    _check_patterns(num_patterns, beta, norm)
    require(distance >= 0, "distance", distance, "a number of at least 0")
    exponent = -beta * (separation - 2 * distance * norm)
    # A bound beyond all floats says no more than inf.
    return 2 * (num_patterns - 1) * norm * math.exp(exponent) if exponent < 700 else math.inf


def ramsauer_separation(num_patterns: int, beta: float, norm: float) -> float:
    """Return the separation from which a pattern has a fixed point of its own.

    Delta >= 2 / (beta N) + ln(2 (N - 1) N beta M^2) / beta; arguments as in :func:`ramsauer_error_bound`.

    References
    ----------
    Ramsauer et al. 2021, arXiv 2008.02217.
    """
    _check_patterns(num_patterns, beta, norm)
    require(num_patterns >= 2, "num_patterns", num_patterns, "an integer of at least 2")
    inside = 2 * (num_patterns - 1) * num_patterns * beta * norm**2
    return 2 / (beta * num_patterns) + math.log(inside) / beta


def ramsauer_capacity(dim: int, beta: float, radius: float, failure: float) -> ExponentialCapacity:
    """Return how many random patterns of norm K sqrt(d - 1) a softmax update stores, but for probability p.

    N = sqrt(p) c^((d-1)/4) with c = b / W0(exp(a + ln b)), a = 2 / (d-1) (1 + ln(2 beta K^2 p (d-1))),
    b = 2 K^2 beta / 5. The theorem needs c >= (2 / sqrt p)^(4 / (d-1)): `valid`.

    Parameters
    ----------
    dim : int
        d, at least 2.
    beta : float
        Inverse temperature.
    radius : float
        K.
    failure : float
        p, above 0 and below 1.

    References
    ----------
    Ramsauer et al. 2021, arXiv 2008.02217, Theorem 3.
    """
    require(dim >= 2, "dim", dim, "an integer of at least 2")
    _check_patterns(1, beta, radius, "radius")
    require(0 < failure < 1, "failure", failure, "a probability above 0 and below 1")
    a = 2 / (dim - 1) * (1 + math.log(2 * beta * radius**2 * failure * (dim - 1)))
    b = 2 * radius**2 * beta / 5
    base = b / float(wrightomega(a + math.log(b)))  # omega(x) = W0(exp(x)), without forming exp(x)
    log_patterns = math.log(failure) / 2 + (dim - 1) / 4 * math.log(base)
    patterns = math.exp(log_patterns) if log_patterns < 700 else math.inf
    return ExponentialCapacity(patterns, base, base >= (2 / math.sqrt(failure)) ** (4 / (dim - 1)))


def _check_patterns(num_patterns: int, beta: float, norm: float, what: str = "norm") -> None:
    require(num_patterns >= 1, "num_patterns", num_patterns, "an integer of at least 1")
    require(0 < beta < math.inf, "beta", beta, "a number above 0")
    require(0 < norm < math.inf, what, norm, "a number above 0")
