"""The kernel moments of a memory on a key law: one table from feature map to formula, and its cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from capmem.ensembles import ArrayKeys, Ensemble
from capmem.feature_maps import Dpfp, ElementwiseMap, FeatureMap, Identity
from capmem.memory import LinearMemory
from capmem.theory.base import Moments, TheoryUnavailable, TrialMoments
from capmem.theory.dpfp import dpfp_moments
from capmem.theory.elementwise import elementwise_moments
from capmem.theory.empirical import array_moments
from capmem.theory.identity import identity_moments
from capmem.theory.laws import KeyLaw, key_law

Formula = Callable[[LinearMemory, KeyLaw, int], TrialMoments]

FORMULAS: dict[type[FeatureMap], Formula] = {Identity: identity_moments, Dpfp: dpfp_moments}


def moments(memory: LinearMemory, keys: Ensemble, key_dim: int) -> Moments:
    """Return the moments of kappa after all of the memory's steps, over all trials.

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


def trial_moments(memory: LinearMemory, keys: Ensemble, key_dim: int, num_pairs: int | None = None) -> TrialMoments:
    """Return the moments given what the keys of a trial share; see :func:`moments`.

    `num_pairs` matters only where a file is stored from its first row on.
    """
    if isinstance(keys, ArrayKeys):
        return array_moments(memory, keys, key_dim, num_pairs)
    return _law_moments(memory, keys, key_dim)


@lru_cache(maxsize=4096)
def _law_moments(memory: LinearMemory, keys: Ensemble, key_dim: int) -> TrialMoments:
    formula = _formula(memory.feature_map)
    found = formula(memory, key_law(memory, keys, key_dim), key_dim)
    found.columns.setflags(write=False)
    return found


def _formula(feature_map: FeatureMap) -> Formula:
    """Return the formula of a map; a subclass that acts on coordinates has one, others must be listed."""
    kind = type(feature_map)
    if kind in FORMULAS:
        return FORMULAS[kind]
    if isinstance(feature_map, ElementwiseMap) and kind.__call__ is ElementwiseMap.__call__:
        return elementwise_moments
    raise TheoryUnavailable(f"no formula for the feature map {kind.__name__}")
