"""The one number that sums up a feature map on a key law."""

from __future__ import annotations

from typing import Literal

from capmem.ensembles import DuplicatedKeys, Ensemble, SphereValues
from capmem.feature_maps import FeatureMap
from capmem.memory import LinearMemory
from capmem.theory.base import TheoryUnavailable
from capmem.theory.case import Case
from capmem.theory.laws import reduced
from capmem.theory.pairs import FORMULAS, INDEPENDENT, pair_moments

ANY = 2  # pairs: of independent keys, the moments are the same for any number of them


def effective_dimension(
    feature_map: FeatureMap,
    keys: Ensemble,
    key_dim: int,
    key_scale: float | Literal["sqrt_dim"] = 1.0,
    feature_center: Literal["none", "mean"] = "none",
) -> float:
    """Return D_eff = m1^2 / m2 = (tr G)^2 / |G|_F^2 with G = E phi phi^T, or its centred form.

    The pairs that a Hebbian memory stores at a given error are in proportion to it; it never exceeds D. Of a
    random map it is the ratio of the means over its draws.

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
    feature_center : {"none", "mean"}
        With "mean", G is the covariance of phi: features are read and written less their mean.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known, and for keys of which any two are not alike: those of a sequence, a frame.
    """
    law = type(reduced(keys))
    if law is DuplicatedKeys or (law in FORMULAS and law not in INDEPENDENT):
        raise TheoryUnavailable(f"{type(keys).__name__} have no effective dimension: it changes with their number")
    memory = LinearMemory(feature_map, key_scale=key_scale, feature_center=feature_center)
    found = pair_moments(Case(memory, keys, SphereValues(), key_dim, 1, ANY, 1.0, None)).average()
    return found.self_mean**2 / found.cross_square
