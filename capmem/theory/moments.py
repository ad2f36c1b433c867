"""The kernel moments of a memory on a key law: one table from feature map to formula, and its cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from capmem.ensembles import ArrayKeys, Ensemble
from capmem.feature_maps import (
    CosFormer,
    Dpfp,
    ElementwiseMap,
    FeatureMap,
    Identity,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    Taylor,
)
from capmem.memory import LinearMemory
from capmem.theory.base import Moments, TheoryUnavailable, TrialMoments
from capmem.theory.cosformer import cosformer_moments
from capmem.theory.dpfp import dpfp_moments
from capmem.theory.elementwise import elementwise_moments
from capmem.theory.empirical import array_moments
from capmem.theory.identity import identity_moments
from capmem.theory.laws import KeyLaw, key_law
from capmem.theory.polynomial import polynomial_moments
from capmem.theory.random_maps import random_moments
from capmem.theory.refusals import require_moderate, within_float64

Formula = Callable[[LinearMemory, KeyLaw, int], TrialMoments]

FORMULAS: dict[type[FeatureMap], Formula] = {
    Dpfp: dpfp_moments,
    Identity: identity_moments,
    Polynomial: polynomial_moments,
    PositiveRandomFeatures: random_moments,
    RandomFourierFeatures: random_moments,
    RandomReLU: random_moments,
    Taylor: polynomial_moments,
}
POSITIONAL: dict[type[FeatureMap], Callable[[LinearMemory, KeyLaw, int, int | None], TrialMoments]] = {
    CosFormer: cosformer_moments,
}


def moments(memory: LinearMemory, keys: Ensemble, key_dim: int) -> Moments:
    """Return the moments of kappa after all of the memory's steps, over all trials, and draws of a random map.

    Parameters
    ----------
    memory : LinearMemory
        Its feature map and what it does to keys and features.
    keys : Ensemble
        The key law.
    key_dim : int
        d.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known.
    """
    return trial_moments(memory, keys, key_dim).average()


@within_float64()
def trial_moments(memory: LinearMemory, keys: Ensemble, key_dim: int, num_pairs: int | None = None) -> TrialMoments:
    """Return the moments given what the keys of a trial share; see :func:`moments`.

    `num_pairs` matters only where a file is stored from its first row on, and for maps that depend on the place
    of a key.
    """
    if isinstance(keys, ArrayKeys):
        _require_fixed(memory.feature_map)
        return array_moments(memory, keys, key_dim, num_pairs)
    return _law_moments(memory, keys, key_dim, num_pairs if memory.feature_map.positional else None)


@lru_cache(maxsize=4096)
def _law_moments(memory: LinearMemory, keys: Ensemble, key_dim: int, num_pairs: int | None = None) -> TrialMoments:
    law = key_law(memory, keys, key_dim)
    kind = type(memory.feature_map)
    if kind in POSITIONAL:
        found = POSITIONAL[kind](memory, law, key_dim, num_pairs)
    else:
        found = _formula(memory.feature_map)(memory, law, key_dim)
    require_moderate(found)
    found.columns.setflags(write=False)
    return found


def _require_fixed(feature_map: FeatureMap) -> None:
    """Raise TheoryUnavailable where one Gram matrix of a file's features does not stand for all trials and places."""
    if feature_map.positional:
        raise TheoryUnavailable("no formula for a map that depends on the place of a key, and keys of a file")
    if hasattr(feature_map, "seed"):
        raise TheoryUnavailable("no formula for a random map of a file's keys: its draw differs from trial to trial")


def _formula(feature_map: FeatureMap) -> Formula:
    """Return the formula of a map; a subclass that acts on coordinates has one, others must be listed."""
    kind = type(feature_map)
    if kind in FORMULAS:
        return FORMULAS[kind]
    if isinstance(feature_map, ElementwiseMap) and kind.__call__ is ElementwiseMap.__call__:
        return elementwise_moments
    raise TheoryUnavailable(f"no formula for the feature map {kind.__name__}")
