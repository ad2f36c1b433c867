"""Kernel moments of maps whose kernel is a polynomial of k . k': Taylor features and monomials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval

from capmem.feature_maps import FeatureMap, Polynomial, Taylor
from capmem.memory import LinearMemory
from capmem.theory.axial import AxialKeys, axial_keys
from capmem.theory.base import Floats, TheoryUnavailable, TrialMoments
from capmem.theory.known import Known, by_dim
from capmem.theory.laws import KeyLaw
from capmem.theory.quadrature import gamma_rule, sphere_rule
from capmem.theory.refusals import require_plain, require_seen

FORMULA = (
    "kappa = sum_n c_n (k . k')^n with k = a u/|u| + b w: E (k . k')^n = sum_j C(n, j) (E a^(n-j) b^j)^2 E t^j, "
    "t a coordinate on the sphere in d - 1 dimensions, given |u|"
)
KNOWN_ERROR = Known("quadrature only: below 1e-6 for d >= 8", by_dim(0.005, 8, 1e-6))
ROUNDING = 1e-9  # of the moment before centring, below which what is left of it means nothing
MAX_DEGREE = 19  # above it, 40 nodes are no longer exact


def _taylor(feature_map: Any, key_dim: int) -> Floats:
    return np.array([1, key_dim**-0.5, 0.5 / key_dim][: feature_map.order + 1])


def _monomials(feature_map: Any, key_dim: int) -> Floats:
    return np.array([0.0] * feature_map.degree + [1.0])


COEFFICIENTS: dict[type[FeatureMap], Callable[[Any, int], Floats]] = {Taylor: _taylor, Polynomial: _monomials}


def polynomial_moments(memory: LinearMemory, law: KeyLaw, key_dim: int, cosine: float = 1.0) -> TrialMoments:
    """Return the moments of a kernel sum_n c_n (q . k)^n, for cues q of this cosine; see :data:`FORMULA`.

    Notes
    -----
    Taylor features of order 2 on N(0, 1) keys have m2 = 3.75 + 1.5 / d; (k . k')^p on the unit sphere has
    m2 = E t^(2p) = (2p-1)!! / (d (d+2) ... (d+2p-2)). Cues have the law of keys only where keys are independent.

    Raises
    ------
    TheoryUnavailable
        For features divided by their sum, degrees above 19, or moments that no sample shows.
    """
    require_plain(law)
    if memory.feature_norm == "sum":
        raise TheoryUnavailable("no formula for polynomial features divided by their sum, which has no mean")
    coefficients = COEFFICIENTS[type(memory.feature_map)](memory.feature_map, key_dim)
    if len(coefficients) > MAX_DEGREE + 1:
        raise TheoryUnavailable(f"no formula for polynomials of a degree above {MAX_DEGREE}")
    if memory.feature_norm == "none" and law.independent:
        _check_seen(coefficients, law, key_dim)
    keys = axial_keys(law, key_dim)
    columns = _moments(keys, coefficients, memory.feature_center == "mean", memory.feature_norm == "l2", cosine)
    return TrialMoments(keys.trial_weights, columns, True, FORMULA, KNOWN_ERROR)


def _moments(keys: AxialKeys, coefficients: Floats, centred: bool, normed: bool, cosine: float) -> Floats:
    """Return m1, M2, mu, m2 (4, R) of (kappa(k, k') - h(k) - h(k') + E h) s(k) s(k').

    h(k) = E_k' kappa(k, k') where features are centred, else 0; s(k) makes kappa(k, k) = 1 where they are normed.
    """
    if centred:  # which takes the constant term away, here before anything is rounded
        coefficients = np.concatenate([[0.0], coefficients[1:]])
    shift = keys.given_key(coefficients) if centred else np.zeros(keys.along.shape)
    level = keys.mean(shift)
    offset = level[:, None] - 2 * shift
    own = polyval(keys.square, coefficients) + offset
    scale = np.divide(1, own, out=np.zeros_like(own), where=own > 0) if normed else np.ones_like(own)
    asked = (polyval(cosine * keys.square, coefficients) + offset) * scale
    root = np.sqrt(scale)
    cross = keys.series(coefficients, root)
    cross += level * keys.mean(root) ** 2 - 2 * keys.mean(shift * root) * keys.mean(root)
    square = _cross_square(keys, coefficients, shift, scale)
    return np.stack([keys.mean(asked), keys.mean(asked**2), cross, square])


def _cross_square(keys: AxialKeys, coefficients: Floats, shift: Floats, scale: Floats) -> Floats:
    """Return E (kappa(k, k') - h(k) - h(k') + E h)^2 scale(k) scale(k') (R,), for h = shift (R, K)."""
    whole = keys.series(np.convolve(coefficients, coefficients), scale)
    if not shift.any():
        return whole
    level = keys.mean(shift)
    total, first, second = (keys.mean(shift**p * scale) for p in (0, 1, 2))
    square = whole + 2 * second * total + 2 * first**2 + level**2 * total**2 - 4 * level * first * total
    square = square + 2 * level * keys.series(coefficients, scale) - 4 * keys.series(coefficients, shift * scale, scale)
    if not np.all(square > ROUNDING * whole):
        raise TheoryUnavailable("centring leaves nothing of the features of these keys but rounding")
    return np.asarray(square)


def _check_seen(coefficients: Floats, law: KeyLaw, key_dim: int) -> None:
    """Raise TheoryUnavailable where M2 or m2 is decided by keys, or pairs of keys, that are not met."""
    half, weights = (np.full(1, key_dim / 2), np.ones(1)) if law.unit else gamma_rule(key_dim / 2, 40)
    norms = law.scale * np.sqrt(2 * half / key_dim)
    own = polyval(norms**2, coefficients)
    require_seen(weights, weights * own**2, "E kappa(k, k)^2")
    t, t_weights = sphere_rule(key_dim, 48)
    dots = norms[:, None, None] * norms[:, None] * t
    chances = weights[:, None, None] * weights[:, None] * t_weights
    cross = polyval(dots, coefficients)
    require_seen(chances, chances * cross**2, "E kappa(k, k')^2")
