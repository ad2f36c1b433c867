"""Kernel moments of elementwise maps on independent keys: Gaussian, or uniform on a sphere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from capmem.feature_maps import ElementwiseMap
from capmem.memory import LinearMemory
from capmem.theory.base import Floats, Moments, TheoryUnavailable, TrialMoments, single
from capmem.theory.correlated import require_dims
from capmem.theory.cue_rows import cue_rows
from capmem.theory.known import Known, by_dim
from capmem.theory.laws import KeyLaw, axial_nodes
from capmem.theory.quadrature import gamma_rule, normal_split, sphere_split
from capmem.theory.shared import shared_moments

Function = Callable[[Floats], Floats]

GAUSSIAN = "m1 = d f2, M2 = d f4 + d(d-1) f2^2, mu = d f1^2, m2 = d f2^2 + d(d-1) f1^4, fp = E f(x)^p"
SPHERE = "as for Gaussian keys, with E f(x_a) f(x_b) and E f(x_a)^2 f(x_b)^2 of a vector on the sphere"
CUE = "E kappa(q, k)^2 = d E h_a^2 + d(d-1) E h_a h_b, h_a = f(k_a) f(q_a), over rows of a random 2-frame"
CUE_ERROR = Known("M2 of cues: quadrature within 0.02% at d >= 16, 0.1% at d = 4", by_dim(0.001, 16, 0.0002))
SEEN, UNSEEN_SHARE = 6.0, 0.1  # moments that lie where no sample goes are no prediction of one
CENTRED_ERROR = Known("moments within 0.7% (measured at d = 16, 64; c = .3, .6, .9)", 0.007)


def elementwise_moments(memory: LinearMemory, law: KeyLaw, key_dim: int) -> TrialMoments:
    """Return the moments of kappa = sum_a f(k_a) f(k'_a), for any function f of one coordinate."""
    if memory.feature_norm != "none":
        raise TheoryUnavailable(f"no formula for features divided by their {memory.feature_norm} norm")
    assert isinstance(memory.feature_map, ElementwiseMap)
    f = scalar_function(memory.feature_map)
    centred = memory.feature_center == "mean"
    if law.centred:
        return _centred_moments(f, law, key_dim, centred)
    if not law.independent:
        if not law.unit:
            _tabulate(f, law.scale / key_dim**0.5)  # refuses what no sample shows
        return shared_moments(f, law, key_dim, centred)
    if law.unit:
        return single(_shell_moments(f, key_dim, np.full(1, law.scale), np.ones(1), centred), True, SPHERE)
    return single(gaussian_moments(f, key_dim, law.scale / key_dim**0.5, centred), True, GAUSSIAN)


def elementwise_cue(memory: LinearMemory, law: KeyLaw, key_dim: int, cosine: float) -> tuple[float, float]:
    """Return E kappa(q, k) and its mean square for cues q of this cosine, independent keys: :data:`CUE`."""
    assert isinstance(memory.feature_map, ElementwiseMap)
    f = scalar_function(memory.feature_map)
    rows = cue_rows(key_dim, cosine, law.scale, law.unit)
    shift = 0.0
    if memory.feature_center == "mean":
        shift = rows.one(lambda key, cue: f(key))

    def product(key: Floats, cue: Floats) -> Floats:
        return np.asarray((f(key) - shift) * (f(cue) - shift))

    d = key_dim
    square = d * rows.one(lambda key, cue: product(key, cue) ** 2) + d * (d - 1) * rows.two(product, product)
    return d * rows.one(product), square


def scalar_function(feature_map: ElementwiseMap) -> Function:
    """Return f of a float64 array."""
    return lambda x: np.asarray(feature_map.function(x, np), dtype=np.float64)


def gaussian_moments(f: Function, key_dim: int, spread: float, centred: bool) -> Moments:
    """Return the moments for d independent coordinates N(0, spread^2).

    Raises
    ------
    TheoryUnavailable
        If E f^4 is decided so far out that no sample ever shows it.
    """
    y, weights = _tabulate(f, spread)
    if centred:
        y = y - weights @ y
    first, second, fourth = weights @ y, weights @ y**2, weights @ y**4
    d = key_dim
    return Moments(
        float(d * second),
        float(d * fourth + d * (d - 1) * second**2),
        float(d * first**2),
        float(d * second**2 + d * (d - 1) * first**4),
    )


def _tabulate(f: Function, spread: float) -> tuple[Floats, Floats]:
    """Return f at nodes of N(0, spread^2) and their weights, far enough out for E f^4."""
    for reach in (13.0, 37.0):
        x, weights = normal_split(np.zeros(()), spread, int(12 * reach), reach)
        with np.errstate(over="ignore", invalid="ignore"):
            y = f(x)
            mass = weights * y**4
        if np.isfinite(mass).all() and max(mass[0], mass[-1]) <= 1e-9 * mass.max():
            if mass[np.abs(x) > SEEN * spread].sum() > UNSEEN_SHARE * mass.sum():
                break
            return y, weights
    raise TheoryUnavailable(f"E f^4 of coordinates N(0, {spread:g}^2) lies beyond {SEEN:g} standard deviations, unseen")


def _centred_moments(f: Function, law: KeyLaw, key_dim: int, centred: bool) -> TrialMoments:
    """Return the moments given |u| for unit keys less their mean, taken as isotropic."""
    require_dims(law, key_dim)
    trial_weights, key_weights, along, across = axial_nodes(law, key_dim)
    square = along**2 + across**2
    mean, fourth = square @ key_weights, square**2 @ key_weights
    columns = [
        _shell_moments(f, key_dim, *_shells(m, max(v, 0.0)), centred)
        for m, v in zip(mean, fourth - mean**2, strict=True)
    ]
    return TrialMoments(trial_weights, np.array(columns).T, False, SPHERE + ", given |u| and |k|", CENTRED_ERROR)


def _shells(mean: float, variance: float) -> tuple[Floats, Floats]:
    """Return radii and weights, the squared radius being a gamma variable of this mean and variance."""
    if variance < 1e-12 * mean**2:
        return np.full(1, mean**0.5), np.ones(1)
    nodes, weights = gamma_rule(mean**2 / variance, 6)
    return np.sqrt(nodes * variance / mean), weights


def _shell_moments(f: Function, key_dim: int, radii: Floats, weights: Floats, centred: bool) -> Moments:
    """Return the moments for keys of uniform direction and the given norms.

    The second coordinate of a unit vector is sqrt(1 - t^2) times a coordinate of one in d - 1 dimensions.
    """
    d = key_dim
    t, t_weights = sphere_split(d)
    y = f(radii[:, None] * t)
    shift = weights @ (y @ t_weights) if centred else 0.0
    y = y - shift
    first, second, fourth = (float(weights @ (y**p @ t_weights)) for p in (1, 2, 4))
    product = product_square = 0.0
    if d > 1:
        s, s_weights = sphere_split(d - 1)
        other = f(radii[:, None, None] * np.sqrt(1 - t * t)[:, None] * s) - shift
        product = float(weights @ ((y * (other @ s_weights)) @ t_weights))
        product_square = float(weights @ ((y**2 * (other**2 @ s_weights)) @ t_weights))
    return Moments(
        d * second,
        d * fourth + d * (d - 1) * product_square,
        d * first**2,
        d * second**2 + d * (d - 1) * product**2,
    )
