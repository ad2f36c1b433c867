"""Averages over independent isotropic keys, and pairs of them, of functions of their norms and their cosine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats
from capmem.theory.laws import KeyLaw
from capmem.theory.quadrature import gamma_rule, sphere_rule

NORMS, COSINES = 32, 48


class ZonalKeys(NamedTuple):
    """The law of |k|, and of the cosine between two keys.

    Attributes
    ----------
    norms, weights : array (R,)
        Nodes of |k| and their weights.
    cosines, cosine_weights : array (T,)
        The same for the cosine.
    """

    norms: Floats
    weights: Floats
    cosines: Floats
    cosine_weights: Floats

    def of_key(self, values: Floats) -> float:
        """Return E values, for values (R,)."""
        return float(self.weights @ values)

    def of_pair(self, values: Floats) -> float:
        """Return E values, for values (R, R, T)."""
        return float(self.weights @ (values @ self.cosine_weights) @ self.weights)

    def given_key(self, values: Floats) -> Floats:
        """Return E(values | |k|) (R,), for values (R, R, T)."""
        return np.asarray((values @ self.cosine_weights) @ self.weights)

    def pairs(self, function: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
        """Return function(|k|, |k'|, cosine) at all nodes (R, R, T)."""
        return function(self.norms[:, None, None], self.norms[:, None], self.cosines)


def zonal_keys(law: KeyLaw, key_dim: int) -> ZonalKeys:
    """Return the nodes for independent keys: on the sphere, or Gaussian with |k|^2 ~ scale^2 chi^2_d / d."""
    half, weights = (np.full(1, key_dim / 2), np.ones(1)) if law.unit else gamma_rule(key_dim / 2, NORMS)
    return ZonalKeys(law.scale * np.sqrt(2 * half / key_dim), weights, *sphere_rule(key_dim, COSINES))
