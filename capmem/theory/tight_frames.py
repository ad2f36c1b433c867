"""Orthonormal keys and tight frames: Gram matrices that do not vary."""

from __future__ import annotations

import numpy as np

from capmem.theory.base import TrialMoments
from capmem.theory.case import Case
from capmem.theory.structured import pair_averages, require_steps
from capmem.theory.values import ValueLaw

ORTHONORMAL = "kappa_ij = 0 for i != j"
TIGHT = "mean of kappa_ij^2 over i != j = (N-d)/(d(N-1)), the least that N unit keys can have (Welch 1974)"
OPTIMAL = "e_opt = 1 - d/N: K = (N/d) P with P a projection of rank d and constant diagonal"
ODDS = "SNR = (N v - 2)/((N-d) v - 2) - 1: a trial's e_opt has a beta law for Gaussian values"


def orthonormal_moments(case: Case) -> TrialMoments:
    """Return the moments of orthonormal keys."""
    require_steps(case, centred=False)
    return pair_averages(case, 0.0, 0.0, ORTHONORMAL)


def tight_frame_moments(case: Case) -> TrialMoments:
    """Return the moments of N unit keys with Phi^T Phi = (N/d) I; for N <= d they are orthonormal."""
    n, d = case.num_pairs, case.key_dim
    if n <= d:
        return orthonormal_moments(case)
    require_steps(case, centred=False)
    return pair_averages(case, 0.0, (n - d) / (d * (n - 1)), TIGHT)


def tight_frame_errors(case: Case, values: ValueLaw) -> tuple[float, float]:
    """Return scale-optimal error and signal-to-noise ratio of exact cues.

    Notes
    -----
    E <V, P V> / <V, V> = d/N for Gaussian values, and for values of fixed norm as P_ii = d/N. The mean of 1/e_opt
    is that of a beta variable, exactly so for Gaussian values; nan where it does not exist.
    """
    n, d = case.num_pairs, case.key_dim
    if n <= d:
        return 0.0, np.inf
    if values.overlap == 0:
        return 1 - d / n, d / (n - d)
    below = (n - d) * values.dim - 2
    return 1 - d / n, (n * values.dim - 2) / below - 1 if below > 0 else np.nan
