"""The kernel moments of a case: of its keys, in its memory, for its cues, whatever law the keys have."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from capmem.ensembles import (
    ArrayKeys,
    AutoregressiveKeys,
    ClusteredKeys,
    DuplicatedKeys,
    OrthonormalKeys,
    PowerLawKeys,
    RademacherKeys,
    SphereKeys,
    SphereValues,
    TightFrameKeys,
)
from capmem.theory.anisotropic import power_law_moments, rademacher_moments
from capmem.theory.base import TheoryUnavailable, TrialMoments
from capmem.theory.case import Case
from capmem.theory.cues import cue_moments
from capmem.theory.known import Known
from capmem.theory.laws import reduced
from capmem.theory.measured import measured
from capmem.theory.moments import trial_moments
from capmem.theory.refusals import require_moderate
from capmem.theory.sequences import autoregressive_moments, clustered_moments, duplicated_moments
from capmem.theory.structured import linear_memory
from capmem.theory.tight_frames import orthonormal_moments, tight_frame_moments

FORMULAS: dict[type, Callable[[Case], TrialMoments]] = {
    AutoregressiveKeys: autoregressive_moments,
    ClusteredKeys: clustered_moments,
    OrthonormalKeys: orthonormal_moments,
    PowerLawKeys: power_law_moments,
    RademacherKeys: rademacher_moments,
    TightFrameKeys: tight_frame_moments,
}
INDEPENDENT = (ClusteredKeys, PowerLawKeys, RademacherKeys)  # any two pairs alike, however many there are

FILE_NOTES = (
    Known("3% at N = 6 of 60 rows, identity map", math.inf),
    Known("not measured, more than that of the scale-optimal error", math.inf),
)


def pair_moments(case: Case) -> TrialMoments:
    """Return m1, M2 of kappa(q_i, k_i) and mu, m2 of kappa(q_i, k_j), the means over the pairs that are scored.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known, or moments are too large to go on with.
    """
    return require_moderate(_any_moments(case))


def _any_moments(case: Case) -> TrialMoments:
    keys = reduced(case.keys)
    case = case._replace(keys=keys)
    if isinstance(keys, DuplicatedKeys):
        if linear_memory(case).feature_map.positional:
            raise TheoryUnavailable("no formula for a map that depends on the place of a key, and keys that come again")
        return duplicated_moments(case, pair_moments(case._replace(keys=SphereKeys())))
    if type(keys) in INDEPENDENT:
        return _law_moments(case._replace(values=SphereValues(), value_dim=1, num_pairs=2, codebook=None))
    if type(keys) in FORMULAS:
        return FORMULAS[type(keys)](case)
    memory = linear_memory(case)
    if case.query_cosine == 1:
        return trial_moments(memory, keys, case.key_dim, case.num_pairs)
    return cue_moments(memory, keys, case.key_dim, case.query_cosine, case.num_pairs)


@lru_cache(maxsize=1024)
def _law_moments(case: Case) -> TrialMoments:
    return FORMULAS[type(case.keys)](case)


def ratio_notes(case: Case, readout: str) -> tuple[Known, Known]:
    """Return what is known of the errors of e_opt and SNR: of a "linear", "divided" or "normed" reading."""
    if isinstance(case.keys, ArrayKeys):
        return FILE_NOTES
    return measured(f"{readout}_optimal", case), measured(f"{readout}_odds", case)


def fresh_share(case: Case) -> float:
    """Return how much of the variance of independent keys these have: less, the more of a file is stored."""
    if isinstance(case.keys, ArrayKeys):
        rows = len(case.keys.rows())
        return 0.0 if case.keys.order == "given" else 1 - case.num_pairs / rows
    return 0.0 if type(case.keys) in (OrthonormalKeys, TightFrameKeys) else 1.0
