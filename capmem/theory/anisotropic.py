"""Kernel moments of keys with independent coordinates that are no N(0, s^2) alike: power-law spectra, random signs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from capmem.ensembles import PowerLawKeys
from capmem.feature_maps import ElementwiseMap, Identity
from capmem.theory.base import Floats, Moments, TheoryUnavailable, TrialMoments, single
from capmem.theory.case import Case
from capmem.theory.elementwise import scalar_function
from capmem.theory.polynomial import COEFFICIENTS
from capmem.theory.quadrature import normal_split
from capmem.theory.refusals import require_seen
from capmem.theory.structured import (
    independent_coordinates,
    linear_memory,
    memory_scale,
    normed,
    pair_averages,
    require_steps,
)

SPECTRUM = "m2 = sum_a s_a^2, M2 = 1 + 2 m2, s_a the variance of coordinate a"
UNIT_SPECTRUM = "m2 = sum_a p_a^2, p_a = E k_a^2/|k|^2 = int_0^inf s_a/(1 + 2 t s_a) prod_b (1 + 2 t s_b)^(-1/2) dt"
COORDINATES = "m1 = sum_a E f_a^2, mu = sum_a (E f_a)^2, m2 = sum_ab (E f_a f_b)^2, coordinates being independent"
SIGNS = "m2 = 1/d"
SIGN_KERNEL = "kappa a function of k . k' = 1 - 2 j/d, j binomial"


def power_law_moments(case: Case) -> TrialMoments:
    """Return the moments of Gaussian keys whose coordinates have the variances i^-s / sum_j j^-s."""
    keys = case.keys
    assert isinstance(keys, PowerLawKeys)
    spectrum = keys.variances(case.key_dim)
    if type(linear_memory(case).feature_map) is not Identity:
        return _coordinates(case, *normal_split(np.zeros(case.key_dim), spectrum**0.5))
    require_steps(case)
    if normed(case):
        shares = _unit_shares(float(keys.exponent), case.key_dim)
        return pair_averages(case, 0.0, float(shares @ shares), UNIT_SPECTRUM)
    square = float(spectrum @ spectrum)
    return pair_averages(case, 0.0, square, SPECTRUM, own_square=1 + 2 * square)


@lru_cache(maxsize=64)
def _unit_shares(exponent: float, dim: int) -> Floats:
    """Return p_a (d,), by the trapezoidal rule in log t."""
    spectrum = PowerLawKeys(exponent).variances(dim)
    t = np.exp(np.linspace(-40.0, 80.0, 1201))[:, None]
    log = -0.5 * sum(np.log1p(2 * t * s) for s in spectrum)
    shares = np.array([float(np.sum(t * s / (1 + 2 * t * s) * np.exp(log))) for s in spectrum])
    return np.asarray(shares / shares.sum())


def rademacher_moments(case: Case) -> TrialMoments:
    """Return the moments of keys of random signs, 1/sqrt(d) each."""
    d, feature_map = case.key_dim, linear_memory(case).feature_map
    if type(feature_map) is Identity:
        require_steps(case)
        return pair_averages(case, 0.0, 1 / d, SIGNS)
    if type(feature_map) in COEFFICIENTS:
        return _sign_kernel(case)
    points = np.array([-1.0, 1.0]) / d**0.5
    return _coordinates(case, np.tile(points, (d, 1)), np.full((d, 2), 0.5))


def _coordinates(case: Case, x: Floats, weights: Floats) -> TrialMoments:
    """Return the moments of an elementwise map, coordinate a having the nodes x[a] (d, K)."""
    memory, law = linear_memory(case), type(case.keys).__name__
    feature_map = memory.feature_map
    own = type(feature_map).__call__ is not ElementwiseMap.__call__
    if own or not isinstance(feature_map, ElementwiseMap):
        raise TheoryUnavailable(f"no formula for the map {type(feature_map).__name__} of {law}")
    if memory.feature_norm != "none" or memory.key_norm == "sum" or (memory.key_norm == "l2" and x.shape[1] > 2):
        raise TheoryUnavailable(f"no formula for {law} under such a map once keys or features are normed")
    if case.query_cosine != 1:
        raise TheoryUnavailable(f"no formula for cues of cosine {case.query_cosine} to {law} under such a map")
    y = scalar_function(feature_map)(memory_scale(case) * x)  # the map itself would warn of features out of range
    with np.errstate(over="ignore", invalid="ignore"):
        if x.shape[1] > 2:
            for values, chances in zip(y, weights, strict=True):
                require_seen(chances, chances * values**4, "E f^4 of a coordinate")
        if memory.feature_center == "mean":
            y = y - np.sum(weights * y, axis=1, keepdims=True)
        powers = np.stack([np.sum(weights * y**p, axis=1) for p in (1, 2, 4)])
    return single(independent_coordinates(powers), True, COORDINATES)


def _sign_kernel(case: Case) -> TrialMoments:
    """Return the moments of a kernel of k . k' alone, from its values at all numbers of unequal signs."""
    memory, d = linear_memory(case), case.key_dim
    if memory.feature_center != "none" or "sum" in (memory.key_norm, memory.feature_norm) or case.query_cosine != 1:
        raise TheoryUnavailable("no formula for RademacherKeys under such a map once centred, or with noisy cues")
    flips = np.arange(d + 1)
    steps = np.log((d - flips[:-1]) / (flips[:-1] + 1))
    chances = np.exp(np.concatenate([[0.0], np.cumsum(steps)]) - d * np.log(2))
    dots = memory_scale(case) ** 2 * (1 - 2 * flips / d)
    coefficients = COEFFICIENTS[type(memory.feature_map)](memory.feature_map, d)
    kappa = np.polynomial.polynomial.polyval(dots, coefficients)
    if memory.feature_norm == "l2":
        kappa = kappa / kappa[0]
    own = float(kappa[0])
    return single(Moments(own, own**2, float(chances @ kappa), float(chances @ kappa**2)), True, SIGN_KERNEL)
