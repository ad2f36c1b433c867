"""Kernel moments of random feature maps, over the keys and over the draw of the map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.polynomial import chebyshev

from capmem.memory import LinearMemory
from capmem.theory.axial import axial_keys
from capmem.theory.base import Floats, Moments, TheoryUnavailable, TrialMoments, single
from capmem.theory.kernels import KERNELS, RandomKernel
from capmem.theory.known import Known, by_dim
from capmem.theory.laws import KeyLaw
from capmem.theory.quadrature import legendre_rule
from capmem.theory.random_centred import centred_moments
from capmem.theory.refusals import require_plain, require_seen
from capmem.theory.zonal import ZonalKeys, zonal_keys

FORMULA = (
    "over the map's draw too: E kappa^2 = sum over directions r, s of E kappa_r kappa_s / m^2: equal, orthogonal "
    "(1F1(d; d/2; |x+y|^2/2) for exp features) or independent ones"
)
KNOWN_ERROR = Known("quadrature only: below 1e-6 for d >= 8", by_dim(0.005, 8, 1e-6))
DEGREE = 24
SEEN, UNSEEN_SHARE = 5.0, 0.1  # standard deviations of w . k, and the share of M2 that may lie beyond


def random_moments(memory: LinearMemory, law: KeyLaw, key_dim: int, cosine: float = 1.0) -> TrialMoments:
    """Return the moments of kappa for a random map, for cues of this cosine; see :data:`FORMULA`.

    Notes
    -----
    MSE of one kernel value: Choromanski et al. 2020, arXiv 2009.14794, for independent directions; arc-cosine
    kernels: Cho, Saul 2009. Experiments redraw the map in every trial, which is the mean taken here.

    Raises
    ------
    TheoryUnavailable
        For normed features, correlated keys that are not unit keys, or moments that no sample shows.
    """
    require_plain(law)
    kernel = KERNELS[type(memory.feature_map)](memory.feature_map, key_dim)
    law = _as_mapped(law, kernel)
    centred = memory.feature_center == "mean"
    if memory.feature_norm != "none" and (memory.feature_norm == "sum" or centred or not kernel.unit):
        raise TheoryUnavailable(f"no formula for random features divided by their {memory.feature_norm} norm")
    if not law.independent and (centred or not law.unit or (law.centred and not law.renormed)):
        raise TheoryUnavailable("no formula for a random map of correlated keys, but for unit keys, not centred")
    keys = zonal_keys(law, key_dim)
    _check_seen(kernel, keys)
    if not law.independent:
        return _about_common_key(kernel, law, key_dim)
    plain = _plain_moments(kernel, keys, cosine)
    found = centred_moments(kernel, keys, key_dim, cosine) if centred else plain
    return single(found, True, FORMULA, KNOWN_ERROR)


def _as_mapped(law: KeyLaw, kernel: RandomKernel) -> KeyLaw:
    """Return the law of what the directions are multiplied by."""
    if not kernel.unit:
        return replace(law, scale=law.scale * kernel.scale)
    return replace(law, renormed=law.centred, unit=True, scale=1.0)


def _plain_moments(kernel: RandomKernel, keys: ZonalKeys, cosine: float) -> Moments:
    x, t = keys.norms, np.full(1, cosine)
    return Moments(
        keys.of_key(kernel.mean(x, x, t)),
        keys.of_key(kernel.total(x, x, t)),
        keys.of_pair(keys.pairs(kernel.mean)),
        keys.of_pair(keys.pairs(kernel.total)),
    )


def _about_common_key(kernel: RandomKernel, law: KeyLaw, key_dim: int) -> TrialMoments:
    """Return the moments given |u| for keys of one norm, from polynomials in k . k'."""
    x, one = np.full(1, law.scale), np.ones(1)
    keys = axial_keys(replace(law, scale=1.0), key_dim)
    columns = []
    for function in (kernel.mean, kernel.total):
        own = np.full(len(keys.along), function(x, x, one)[0])
        columns.append((own, keys.series(_polynomial(partial(function, x, x)))))
    (m1, mu), (M2, m2) = columns
    return TrialMoments(keys.trial_weights, np.stack([m1, M2, mu, m2]), False, FORMULA + ", given |u|", KNOWN_ERROR)


def _polynomial(function: Callable[[Floats], Floats]) -> Floats:
    """Return the coefficients of the polynomial through a function of [-1, 1] at the Chebyshev nodes."""
    nodes = chebyshev.chebpts1(DEGREE + 1)
    return np.asarray(chebyshev.cheb2poly(chebyshev.chebfit(nodes, function(nodes), DEGREE)), dtype=np.float64)


def _check_seen(kernel: RandomKernel, keys: ZonalKeys) -> None:
    """Raise TheoryUnavailable where M2 is decided by directions that no draw has: exp features of large keys."""
    unit, weights = legendre_rule(400)
    z = 60 * unit - 30
    chances = weights * np.exp(-z * z / 2)
    chances /= chances.sum()
    x = keys.norms[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        fourth = np.sum(kernel.features(x * z, x) ** 2, axis=0) ** 2
        own_square = kernel.total(keys.norms, keys.norms, np.ones(1))
    unseen = keys.of_key(fourth[:, np.abs(z) > SEEN] @ chances[np.abs(z) > SEEN]) / kernel.directions
    if not (np.isfinite([unseen, *own_square]).all() and unseen <= UNSEEN_SHARE * keys.of_key(own_square)):
        raise TheoryUnavailable(
            f"E kappa^2 of {kernel.directions} directions is decided beyond {SEEN:g} standard deviations of w . k, "
            "unseen: use unit keys, or a smaller key_scale"
        )
    require_seen(keys.weights, keys.weights * own_square, "E kappa(k, k)^2")
