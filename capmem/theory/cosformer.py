"""Kernel moments of cosFormer: those of ReLU, times the mean cosine weight over all pairs of places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capmem.feature_maps import CosFormer, ReLU
from capmem.memory import LinearMemory
from capmem.theory.base import TheoryUnavailable, TrialMoments
from capmem.theory.elementwise import elementwise_cue, elementwise_moments
from capmem.theory.laws import KeyLaw

FORMULA = "kappa_ij = relu(k_i) . relu(k_j) cos(pi (i-j) / (2M)): mu, m2 times the mean of the cosine and its square"


def cosformer_moments(memory: LinearMemory, law: KeyLaw, key_dim: int, num_pairs: int | None) -> TrialMoments:
    """Return the moments over all ordered pairs of num_pairs places; see :data:`FORMULA`.

    Raises
    ------
    TheoryUnavailable
        Where the number of pairs is not given, or above the greatest length of the map.
    """
    assert isinstance(memory.feature_map, CosFormer)
    longest = memory.feature_map.max_length
    if num_pairs is None:
        raise TheoryUnavailable("the moments of a map that depends on the place of a key depend on num_pairs")
    if num_pairs > longest:
        raise TheoryUnavailable(f"no formula for num_pairs = {num_pairs} above max_length = {longest}")
    found = elementwise_moments(replace(memory, feature_map=ReLU()), law, key_dim)
    first, second = place_weights(num_pairs, longest)
    columns = found.columns * np.array([[1.0], [1.0], [first], [second]])
    return found._replace(columns=columns, formula=f"{FORMULA}; {found.formula}")


def cosformer_cue(memory: LinearMemory, law: KeyLaw, key_dim: int, cosine: float) -> tuple[float, float]:
    """Return E kappa(q, k) and its mean square: the place of a cue is that of its key."""
    return elementwise_cue(replace(memory, feature_map=ReLU()), law, key_dim, cosine)


def place_weights(num_pairs: int, longest: int) -> tuple[float, float]:
    """Return the means of cos(pi (i-j) / (2M)) and of its square over i != j <= N."""
    gap = np.arange(1, num_pairs)
    if not gap.size:
        return 1.0, 1.0
    weight = 2 * (num_pairs - gap) / (num_pairs * (num_pairs - 1))
    cosine = np.cos(np.pi * gap / (2 * longest))
    return float(weight @ cosine), float(weight @ cosine**2)
