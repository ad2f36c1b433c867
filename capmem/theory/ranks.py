"""The rank of the features of keys in general position, map by map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capmem.ensembles import EquicorrelatedKeys, GaussianKeys, OrthonormalKeys, SphereKeys, TightFrameKeys
from capmem.feature_maps import (
    Dpfp,
    EluPlusOne,
    Exp,
    FeatureMap,
    Identity,
    Polynomial,
    ReLU,
    SiLU,
    Softplus,
    SquaredReLU,
)
from capmem.theory.base import TheoryUnavailable
from capmem.theory.case import Case

Rank = Callable[[Any, int], int]


def _width(feature_map: FeatureMap, key_dim: int) -> int:
    return feature_map.width(key_dim)


def _dpfp(feature_map: Dpfp, key_dim: int) -> int:
    """Of the 2 d - 1 shifts one gives zeros only, and the others come in pairs."""
    return 2 * key_dim * min(feature_map.nu, key_dim - 1)


RANKS: dict[type[FeatureMap], Rank] = {
    **dict.fromkeys((Identity, EluPlusOne, Exp, Softplus, SiLU, ReLU, SquaredReLU, Polynomial), _width),
    Dpfp: _dpfp,
}
ZEROS = (ReLU, SquaredReLU, Dpfp)
LEAST_DIM = 16  # below, rows or columns of zeros are met, and lower the rank
SPREAD_OUT = (GaussianKeys, SphereKeys, EquicorrelatedKeys, OrthonormalKeys, TightFrameKeys)


def feature_rank(case: Case) -> int:
    """Return the rank of the features of many keys, which is never below that of min(N, rank) of them.

    Raises
    ------
    TheoryUnavailable
        For a map whose rank is not known or is not that of exact arithmetic, or keys that need not be in general
        position.
    """
    memory: Any = case.memory
    feature_map = memory.feature_map
    kind, d = type(feature_map), case.key_dim
    if kind not in RANKS:
        raise TheoryUnavailable(f"the rank of the feature map {kind.__name__} is not known")
    if type(case.keys) not in SPREAD_OUT or getattr(case.keys, "correlation", 0.0) == 1:
        raise TheoryUnavailable(f"the rank of keys of the law {type(case.keys).__name__} is not known")
    if "sum" in (memory.key_norm, memory.feature_norm):
        raise TheoryUnavailable("no formula for rows divided by their sum, which can be near zero")
    if kind in ZEROS and d < LEAST_DIM:
        raise TheoryUnavailable(f"features of {kind.__name__} have rows and columns of zeros below d = {LEAST_DIM}")
    if kind is Polynomial and memory.feature_center == "mean":
        raise TheoryUnavailable("centring takes one dimension of polynomial features of keys of one norm")
    return RANKS[kind](feature_map, d)
