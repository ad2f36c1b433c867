"""Key laws as the theory sees them: a common direction plus isotropic noise, after a memory's steps on keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capmem.ensembles import (
    AutoregressiveKeys,
    ClusteredKeys,
    DuplicatedKeys,
    Ensemble,
    EquicorrelatedKeys,
    GaussianKeys,
    PowerLawKeys,
    SphereKeys,
)
from capmem.memory import LinearMemory
from capmem.theory.base import Floats, TheoryUnavailable
from capmem.theory.quadrature import gamma_rule, normal_rule, sphere_rule


@dataclass(frozen=True)
class KeyLaw:
    """k = sqrt(c) u + sqrt(1 - c) g with u, g from N(0, I/d), and what is done to k afterwards.

    Attributes
    ----------
    correlation : float
        c; at 0 the keys of a trial are independent.
    unit : bool
        Keys are divided by their norm.
    fixed_mean : bool
        u has norm 1.
    centred : bool
        E(k | u) is taken from the unit keys.
    renormed : bool
        Centred keys are divided by their norm again.
    scale : float
        Keys are multiplied by it at the end.
    """

    correlation: float = 0.0
    unit: bool = False
    fixed_mean: bool = False
    centred: bool = False
    renormed: bool = False
    scale: float = 1.0

    @property
    def independent(self) -> bool:
        """Whether the keys of a trial share nothing."""
        return self.correlation == 0


def _equicorrelated(keys: Any, key_dim: int) -> KeyLaw:
    return KeyLaw(float(keys.correlation), keys.unit_norm, keys.fixed_mean)


LAWS: dict[type, Callable[[Any, int], KeyLaw]] = {
    GaussianKeys: lambda keys, key_dim: KeyLaw(scale=key_dim**0.5),
    SphereKeys: lambda keys, key_dim: KeyLaw(unit=True),
    EquicorrelatedKeys: _equicorrelated,
}


def _or(keys: Ensemble, same: bool, simpler: Ensemble) -> Ensemble:
    return simpler if same else keys


REDUCTIONS: dict[type, Callable[[Any], Ensemble]] = {  # what a law is at the edge of its range
    AutoregressiveKeys: lambda k: _or(k, k.correlation == 0, EquicorrelatedKeys(0.0, k.unit_norm)),
    ClusteredKeys: lambda k: _or(k, k.num_clusters == 1 or k.correlation == 0, EquicorrelatedKeys(k.correlation)),
    DuplicatedKeys: lambda k: _or(k, k.fraction == 0, SphereKeys()),
    PowerLawKeys: lambda k: _or(k, k.exponent == 0, EquicorrelatedKeys(0.0, unit_norm=False)),
}


def reduced(keys: Ensemble) -> Ensemble:
    """Return the plainest law that these keys have: sphere keys for repeated ones without repeats, and so on."""
    return REDUCTIONS[type(keys)](keys) if type(keys) in REDUCTIONS else keys


def key_law(memory: LinearMemory, keys: Ensemble, key_dim: int) -> KeyLaw:
    """Return the law of the keys that the feature map sees: centred, normed, scaled.

    Raises
    ------
    TheoryUnavailable
        For a key law without formulas, keys normed by their sum, or keys that centring leaves empty.
    """
    keys = reduced(keys)
    if type(keys) not in LAWS:
        raise TheoryUnavailable(f"no formula for keys of the law {type(keys).__name__}")
    if memory.key_norm == "sum":
        raise TheoryUnavailable("no formula for keys divided by their sum: the sum of signed keys has no mean")
    law = LAWS[type(keys)](keys, key_dim)
    if memory.key_center == "mean":
        law = _centre(law)
    if memory.key_norm == "l2":
        law = replace(law, renormed=True) if law.centred else replace(law, unit=True, scale=1.0)
    factor = key_dim**0.5 if memory.key_scale == "sqrt_dim" else float(memory.key_scale)
    return replace(law, scale=law.scale * factor)


def _centre(law: KeyLaw) -> KeyLaw:
    if law.independent:
        return law
    if law.correlation == 1:
        raise TheoryUnavailable("keys at correlation 1 are all equal: centring leaves nothing of them")
    if law.unit:
        return replace(law, centred=True)
    return KeyLaw(scale=law.scale * (1 - law.correlation) ** 0.5)


def mean_norms(law: KeyLaw, key_dim: int, size: int = 24) -> tuple[Floats, Floats]:
    """Return nodes (R,) of |u| and their weights: |u|^2 ~ chi^2_d / d, or 1 where fixed or of no influence."""
    if law.independent or law.fixed_mean:
        return np.ones(1), np.ones(1)
    half, weights = gamma_rule(key_dim / 2, size)
    return np.sqrt(2 * half / key_dim), weights


def axial_nodes(law: KeyLaw, key_dim: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the law of a key along and across u, given |u|.

    Returns
    -------
    trial_weights (R,), key_weights (K,), along (R, K), across (R, K)
        along = k . u/|u|; across = norm of the rest, which is isotropic in d - 1 dimensions.
    """
    norms, trial_weights = mean_norms(law, key_dim)
    if law.independent and law.unit:
        t, key_weights = sphere_rule(key_dim, 48)
        along, across = t[None], np.sqrt(np.maximum(1 - t * t, 0))[None]
    else:
        key_weights, along, across = _gaussian_nodes(law, key_dim, norms)
    if law.unit and not law.independent:
        size = np.hypot(along, across)
        along, across = along / size, across / size
    if law.centred:
        along = along - (along @ key_weights)[:, None]
    if law.renormed:
        size = np.hypot(along, across)
        along, across = along / size, across / size
    return trial_weights, key_weights, law.scale * along, law.scale * across


def _gaussian_nodes(law: KeyLaw, key_dim: int, norms: Floats) -> tuple[Floats, Floats, Floats]:
    """Return key weights (K,), along and across (R, K) before any norm."""
    z, z_weights = normal_rule(40)
    if key_dim == 1:
        radius, radius_weights = np.zeros(1), np.ones(1)
    else:
        half, radius_weights = gamma_rule((key_dim - 1) / 2, 40)
        radius = np.sqrt(2 * half)
    spread = ((1 - law.correlation) / key_dim) ** 0.5
    along = law.correlation**0.5 * norms[:, None, None] + spread * z[:, None]
    along, across = np.broadcast_arrays(along, spread * radius)
    shape = (len(norms), -1)
    return np.outer(z_weights, radius_weights).ravel(), along.reshape(shape), across.reshape(shape)
