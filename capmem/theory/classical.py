"""The classical capacities: what associative memories of other kinds hold, as lines to compare with.

Loads are patterns a neuron (or an input), information is in bits.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, wrightomega, xlogy

from capmem import geometry
from capmem.schema import require, unknown


class HopfieldLimit(NamedTuple):
    """The Hopfield network at its critical load: patterns a neuron, overlap and share of wrong bits there."""

    load: float
    overlap: float
    error: float


class ExponentialCapacity(NamedTuple):
    """Random patterns that one softmax update stores: their number, the base c, and whether c is large enough."""

    patterns: float
    base: float
    valid: bool


def hopfield_limit() -> HopfieldLimit:
    """Return the largest load at which the Hopfield network still retrieves: alpha_c = 0.1379, replica symmetric.

    alpha_c = max over y of [(erf(y) / y - (2 / sqrt pi) exp(-y^2)) / sqrt 2]^2; the overlap there is erf(y).
    Replica symmetry breaking makes it 0.1382.

    References
    ----------
    Amit, Gutfreund, Sompolinsky 1985, Phys. Rev. Lett. 55:1530.
    """

    from scipy.optimize import minimize_scalar  # slow to import, and used here only

    def root_load(y: float) -> float:
        return (math.erf(y) / y - 2 / math.sqrt(math.pi) * math.exp(-y * y)) / math.sqrt(2)

    best = minimize_scalar(lambda y: -root_load(y), bounds=(0.5, 4.0), method="bounded", options={"xatol": 1e-10})
    overlap = math.erf(best.x)
    return HopfieldLimit(root_load(best.x) ** 2, overlap, (1 - overlap) / 2)


def willshaw_capacity() -> float:
    """Return ln 2, the bits a synapse of clipped binary weights, sparse patterns of the best activity.

    References
    ----------
    Willshaw, Buneman, Longuet-Higgins 1969, Nature 222:960.
    """
    return math.log(2)


def sparse_hebbian_capacity() -> float:
    """Return 1 / (2 ln 2), the bits a synapse of additive Hebbian weights in the limit of sparse patterns.

    References
    ----------
    Palm, Sommer 1996, in Models of Neural Networks III.
    """
    return 1 / (2 * math.log(2))


def gardner_capacity(margin: float = 0.0) -> float:
    """Return the most patterns an input that any weights of a perceptron classify, unbiased random patterns: 2.

    With a margin kappa, alpha_c = 1 / int_{-kappa}^inf Dt (t + kappa)^2
    = 1 / ((1 + kappa^2) Phi(kappa) + kappa phi(kappa)).

    References
    ----------
    Gardner 1988, J. Phys. A 21:257.
    """
    require(0 <= margin < math.inf, "margin", margin, "a number of at least 0")
    density = math.exp(-margin * margin / 2) / math.sqrt(2 * math.pi)
    return 1 / ((1 + margin * margin) * float(ndtr(margin)) + margin * density)


def mceliece_capacity(num_neurons: int, every_pattern: bool = False) -> float:
    """Return the patterns that a Hopfield network recalls without error: N / (2 ln N) for most of them.

    N / (4 ln N) where every one of them must be a fixed point.

    References
    ----------
    McEliece, Posner, Rodemich, Venkatesh 1987, IEEE Trans. Inf. Theory 33:461.
    """
    require(num_neurons >= 2, "num_neurons", num_neurons, "an integer of at least 2")
    return num_neurons / ((4 if every_pattern else 2) * math.log(num_neurons))


def welch_bound(num_vectors: int, dim: int, order: int = 1) -> float:
    """Return the least possible largest |cosine| of N unit vectors in d dimensions, by the bound of order p.

    max |kappa|^(2p) >= [N / C(d+p-1, p) - 1] / (N - 1); 0 where that is negative. Order 1 is
    :func:`capmem.geometry.welch_bound`; a higher one is sharper where N is far above d.

    References
    ----------
    Welch 1974, IEEE Trans. Inf. Theory 20:397.
    """
    require(order >= 1, "order", order, "an integer of at least 1")
    if order == 1:
        return geometry.welch_bound(num_vectors, dim)
    require(num_vectors >= 1 and dim >= 1, "num_vectors, dim", (num_vectors, dim), "at least 1")
    excess = num_vectors / math.comb(dim + order - 1, order) - 1
    return (excess / (num_vectors - 1)) ** (1 / (2 * order)) if excess > 0 else 0.0


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


def superposition_accuracy(signal: float, alphabet: int) -> float:
    """Return the chance to decode one item of a superposition of random vectors.

    p = int phi(h) Phi(h + s)^(D - 1) dh.

    Parameters
    ----------
    signal : float
        s = sqrt(neurons / items), at least 0.
    alphabet : int
        D, the number of symbols that an item can be.

    References
    ----------
    Frady, Kleyko, Sommer 2018, Neural Computation 30:1449, arXiv 1803.00412.
    """
    require(0 <= signal < math.inf, "signal", signal, "a number of at least 0")
    require(alphabet >= 2, "alphabet", alphabet, "an integer of at least 2")
    step = 1 / 64  # for an analytic integrand that dies out at both ends, the trapezoid rule is exact to rounding
    h = np.arange(-12, 12 + step, step)
    chance = step / math.sqrt(2 * math.pi) * np.exp(-h * h / 2 + (alphabet - 1) * log_ndtr(h + signal)).sum()
    return min(float(chance), 1.0)


def superposition_bits(signal: float, alphabet: int) -> float:
    """Return the bits a neuron of a superposition: [p log2(p D) + (1 - p) log2(D (1 - p) / (D - 1))] / s^2.

    Arguments, p and source as in :func:`superposition_accuracy`; the signal must be above 0.
    """
    require(signal > 0, "signal", signal, "a number above 0")
    p = superposition_accuracy(signal, alphabet)
    wrong = 1 - p
    nats = xlogy(p, p * alphabet) + xlogy(wrong, alphabet * wrong / (alphabet - 1))
    return float(nats) / math.log(2) / signal**2


def hebbian_bits(load: float, values: Literal["sign", "gaussian"] = "sign") -> float:
    """Return the bits a parameter of a Hebbian state, random keys, load alpha = N / d.

    Values +-1, decoded by their sign: alpha (1 - H2(p)) with p = Phi(-1 / sqrt alpha), at most 1 / (pi ln 2).
    Gaussian values: (alpha / 2) log2(1 + 1 / alpha), at most 1 / (2 ln 2).

    Notes
    -----
    A reading is the value plus independent normal noise of variance alpha; the information is that of one such
    channel a value.
    """
    require(0 < load < math.inf, "load", load, "a number above 0")
    if values not in _BITS:
        raise ValueError(unknown("values", values, _BITS))
    return _BITS[values](load)


def rank_floor(num_pairs: int, feature_dim: int) -> float:
    """Return max(0, 1 - D / N): no state of D feature dimensions reads N orthonormal values with less mean error.

    It holds for every map, write rule and choice of keys, where the read is linear in the state: the readings
    are a matrix A V with rank A <= D, and |I - A|_F^2 >= N - D (Eckart, Young 1936). Tight frames and the
    pseudo-inverse reach it.
    """
    require(num_pairs >= 1, "num_pairs", num_pairs, "an integer of at least 1")
    require(feature_dim >= 1, "feature_dim", feature_dim, "an integer of at least 1")
    return max(0.0, 1 - feature_dim / num_pairs)


def copy_error_bound(state_bits: float, length: int, alphabet: int) -> float:
    """Return the least error of copying a uniform string of L symbols out of D with b state bits.

    max(0, 1 - 2^b / D^L): a recurrent model can give 2^b different outputs.

    References
    ----------
    Jelassi et al. 2024, arXiv 2402.01032.
    """
    require(state_bits >= 0, "state_bits", state_bits, "a number of at least 0")
    missing = _string_bits(length, alphabet) - state_bits
    return -math.expm1(-missing * math.log(2)) if missing > 0 else 0.0


def copy_bits_needed(length: int, alphabet: int) -> float:
    """Return the state bits that copying with an error below 1/2 takes: L log2 D - 1; see :func:`copy_error_bound`."""
    return _string_bits(length, alphabet) - 1


def _sign_bits(load: float) -> float:
    p, right = float(ndtr(-1 / math.sqrt(load))), float(ndtr(1 / math.sqrt(load)))
    return float(load * (1 + (xlogy(p, p) + xlogy(right, right)) / math.log(2)))


def _gaussian_bits(load: float) -> float:
    return load / 2 * math.log1p(1 / load) / math.log(2)


_BITS = {"sign": _sign_bits, "gaussian": _gaussian_bits}


def _string_bits(length: int, alphabet: int) -> float:
    require(length >= 1, "length", length, "an integer of at least 1")
    require(alphabet >= 2, "alphabet", alphabet, "an integer of at least 2")
    return length * math.log2(alphabet)


def _check_patterns(num_patterns: int, beta: float, norm: float, what: str = "norm") -> None:
    require(num_patterns >= 1, "num_patterns", num_patterns, "an integer of at least 1")
    require(0 < beta < math.inf, "beta", beta, "a number above 0")
    require(0 < norm < math.inf, what, norm, "a number above 0")
