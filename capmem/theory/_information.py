"""Information that linear memories hold, and what no memory of their size can do; information is in bits."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.special import log_ndtr, ndtr, xlogy

from capmem import geometry
from capmem.schema import require, unknown


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
    if load > 1:  # 1 - H2((1 - t) / 2) as a series: as a difference it cancels
        n, t = np.arange(1, 100), math.erf(1 / math.sqrt(2 * load))
        return float(load / (2 * math.log(2)) * np.sum(t ** (2 * n) / (n * (2 * n - 1))))
    p, right = float(ndtr(-1 / math.sqrt(load))), float(ndtr(1 / math.sqrt(load)))
    return float(load * (1 + (xlogy(p, p) + xlogy(right, right)) / math.log(2)))


def _gaussian_bits(load: float) -> float:
    return load / 2 * math.log1p(1 / load) / math.log(2)


_BITS = {"sign": _sign_bits, "gaussian": _gaussian_bits}


def _string_bits(length: int, alphabet: int) -> float:
    require(length >= 1, "length", length, "an integer of at least 1")
    require(alphabet >= 2, "alphabet", alphabet, "an integer of at least 2")
    return length * math.log2(alphabet)
