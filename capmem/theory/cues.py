"""The kernel moments that a noisy cue meets: of kappa(q, k) with its own key, and with others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

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
from capmem.theory import cosformer, dpfp, elementwise
from capmem.theory.base import TheoryUnavailable, TrialMoments
from capmem.theory.known import Known, together
from capmem.theory.laws import KeyLaw, key_law
from capmem.theory.moments import trial_moments
from capmem.theory.polynomial import polynomial_moments
from capmem.theory.random_maps import random_moments
from capmem.theory.refusals import require_plain

IDENTITY = "q.k = c |k|^2, E (q.k')^2 = c^2 m2 + (1 - c^2) (m1^2 - m2) / (d - 1)"
Own = Callable[[LinearMemory, KeyLaw, int, float], tuple[float, float]]

ZONAL: dict[type[FeatureMap], Callable[[LinearMemory, KeyLaw, int, float], TrialMoments]] = {
    Polynomial: polynomial_moments,
    PositiveRandomFeatures: random_moments,
    RandomFourierFeatures: random_moments,
    RandomReLU: random_moments,
    Taylor: polynomial_moments,
}
ROWS: dict[type[FeatureMap], tuple[Own, str, Known]] = {
    CosFormer: (cosformer.cosformer_cue, elementwise.CUE, elementwise.CUE_ERROR),
    Dpfp: (dpfp.dpfp_cue, dpfp.CUE_FORMULA, dpfp.CUE_ERROR),
}


def cue_moments(
    memory: LinearMemory, keys: Ensemble, key_dim: int, query_cosine: float, num_pairs: int | None = None
) -> TrialMoments:
    """Return m1, M2 of kappa(q, k) and mu, m2 of kappa(q, k'), for q = |k| (c k/|k| + sqrt(1 - c^2) w).

    w is uniform among the unit vectors across k, as in experiments; c = 1 gives the moments of keys.

    Parameters
    ----------
    memory : LinearMemory
        Its feature map and what it does to keys and features; cues pass the same steps.
    keys : Ensemble
        The key law.
    key_dim : int
        d.
    query_cosine : float
        c.
    num_pairs : int, optional
        N, which only maps that depend on the place of a key need.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known: for all maps but the identity, correlated keys.

    Notes
    -----
    Where keys are isotropic and independent a cue has their law, so mu and m2 are those of keys.
    """
    if query_cosine == 1:
        return trial_moments(memory, keys, key_dim, num_pairs)
    if isinstance(keys, ArrayKeys):
        raise TheoryUnavailable("no formula for noisy cues of the keys of a file")
    if key_dim == 1 and query_cosine != -1:
        raise TheoryUnavailable("nothing is across a key at d = 1, so there are no noisy cues")
    of_place = num_pairs if memory.feature_map.positional else None
    return _law_moments(memory, keys, key_dim, float(query_cosine), of_place)


@lru_cache(maxsize=4096)
def _law_moments(
    memory: LinearMemory, keys: Ensemble, key_dim: int, cosine: float, num_pairs: int | None
) -> TrialMoments:
    kind = type(memory.feature_map)
    raw = key_law(LinearMemory(Identity()), keys, key_dim)
    if kind is Identity and (raw.independent or not memory.centers):
        return _identity(memory, raw, trial_moments(memory, keys, key_dim, num_pairs), key_dim, cosine)
    if not raw.independent:
        raise TheoryUnavailable(f"cues of cosine {cosine} of correlated keys are covered for the identity map only")
    law = key_law(memory, keys, key_dim)
    require_plain(law)
    if kind in ZONAL:
        return ZONAL[kind](memory, law, key_dim, cosine)
    moments = trial_moments(memory, keys, key_dim, num_pairs)
    own, formula, error = _own_formula(memory.feature_map)
    columns = moments.columns.copy()
    columns[:2] = np.array(own(memory, law, key_dim, cosine))[:, None]
    return moments._replace(
        columns=columns,
        exact=False,
        formula=f"{formula}; {moments.formula}",
        known_error=together(moments.known_error, error),
    )


def _identity(memory: LinearMemory, raw: KeyLaw, moments: TrialMoments, key_dim: int, cosine: float) -> TrialMoments:
    """Return the moments for the identity map, whose cues need not have the law of keys: :data:`IDENTITY`."""
    if not raw.unit and memory.key_norm == "none" and memory.feature_norm == "none":
        require_plain(raw)
    m1, M2, mu, m2 = moments.columns
    across = (1 - cosine**2) * (m1**2 - m2) / max(key_dim - 1, 1)
    columns = np.stack([cosine * m1, cosine**2 * M2, cosine * mu, cosine**2 * m2 + across])
    return moments._replace(columns=columns, formula=f"{IDENTITY}; {moments.formula}")


def _own_formula(feature_map: FeatureMap) -> tuple[Own, str, Known]:
    kind = type(feature_map)
    if kind in ROWS:
        return ROWS[kind]
    if isinstance(feature_map, ElementwiseMap) and kind.__call__ is ElementwiseMap.__call__:
        return elementwise.elementwise_cue, elementwise.CUE, elementwise.CUE_ERROR
    raise TheoryUnavailable(f"no formula for noisy cues through the feature map {kind.__name__}")
