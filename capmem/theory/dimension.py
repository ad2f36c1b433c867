"""The one number that sums up a feature map on a key law."""

from __future__ import annotations

from typing import Literal

from capmem.ensembles import Ensemble
from capmem.feature_maps import FeatureMap
from capmem.memory import LinearMemory
from capmem.theory.moments import moments


def effective_dimension(
    feature_map: FeatureMap,
    keys: Ensemble,
    key_dim: int,
    key_scale: float | Literal["sqrt_dim"] = 1.0,
) -> float:
    """Return D_eff = m1^2 / m2 = (tr G)^2 / |G|_F^2 with G = E phi phi^T, not centred.

    The pairs that a Hebbian memory stores at a given error are in proportion to it; it never exceeds D.

    Parameters
    ----------
    feature_map : FeatureMap
        phi.
    keys : Ensemble
        The key law.
    key_dim : int
        d.
    key_scale : float or "sqrt_dim"
        Keys are multiplied by it.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known.
    """
    found = moments(LinearMemory(feature_map, key_scale=key_scale), keys, key_dim)
    return found.self_mean**2 / found.cross_square
