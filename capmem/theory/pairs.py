"""The kernel moments of a case: of its keys, in its memory, for its cues, whatever law the keys have."""

from __future__ import annotations

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
from capmem.theory import ratio
from capmem.theory.anisotropic import power_law_moments, rademacher_moments
from capmem.theory.base import TheoryUnavailable, TrialMoments
from capmem.theory.case import Case
from capmem.theory.cues import cue_moments
from capmem.theory.laws import reduced
from capmem.theory.moments import trial_moments
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

SINGLE = "0.7% at N >= 8"
NOTES: dict[type, tuple[str, str]] = {
    ArrayKeys: ("3% at N = 6 of 60 rows, identity map", "not measured, more than that of the scale-optimal error"),
    AutoregressiveKeys: (f"{SINGLE}; without unit norm 3% high", "2.5% low at N >= 8; without unit norm 12%"),
    ClusteredKeys: (SINGLE, "2.5% at N >= 8, d >= 16"),
    DuplicatedKeys: (
        "3%, 1% high at N = 8, 16 for a fraction of 0.25, 7%, 4%, 1% at N = 8, 16, 32 for 0.75",
        "9%, 1% low at N = 8, 16 for a fraction of 0.25, 28%, 19%, 10% at N = 8, 16, 32 for 0.75",
    ),
    PowerLawKeys: (
        "identity map: 0.4% for keys that are normed; else 5%, 1% high at N = 8, 32, d = 16, exponent 1, ReLU the same",
        "identity map: 1.5% for keys that are normed; else 10%, 5% low at N = 8, 32, d = 16, exponent 1, ReLU 13%",
    ),
}


def pair_moments(case: Case) -> TrialMoments:
    """Return m1, M2 of kappa(q_i, k_i) and mu, m2 of kappa(q_i, k_j), the means over the pairs that are scored.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known.
    """
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


def law_notes(case: Case) -> tuple[str, str]:
    """Return what is known of the errors of e_opt and SNR for keys of this law."""
    return NOTES.get(type(reduced(case.keys)), (ratio.OPTIMAL_ERROR, ratio.ODDS_ERROR))


def fresh_share(case: Case) -> float:
    """Return how much of the variance of independent keys these have: less, the more of a file is stored."""
    if isinstance(case.keys, ArrayKeys):
        rows = len(case.keys.rows())
        return 0.0 if case.keys.order == "given" else 1 - case.num_pairs / rows
    return 0.0 if type(case.keys) in (OrthonormalKeys, TightFrameKeys) else 1.0
