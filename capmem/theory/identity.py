"""Kernel moments of the identity map: every step keeps keys symmetric about the common key, so all is exact."""

from __future__ import annotations

import numpy as np

from capmem.memory import LinearMemory
from capmem.theory.base import TheoryUnavailable, TrialMoments
from capmem.theory.known import Known, by_dim
from capmem.theory.laws import KeyLaw, axial_nodes

FORMULA = "m1 = E|k|^2, M2 = E|k|^4, m2 = (E a^2)^2 + (E b^2)^2/(d-1) with a, b = k along and across u, given |u|"
KNOWN_ERROR = Known("quadrature only: below 1e-6 for d >= 8, 0.5% at d = 2", by_dim(0.005, 8, 1e-6))


def identity_moments(memory: LinearMemory, law: KeyLaw, key_dim: int) -> TrialMoments:
    """Return the moments of kappa = k . k' given |u|.

    Notes
    -----
    k = a u/|u| + b w with w uniform on the unit sphere of the d - 1 dimensions across u, so
    E kappa = (E a)^2 and E kappa^2 = (E a^2)^2 + (E b^2)^2 / (d - 1). Averaged over |u| at unit norm this is
    R2 = 1 - ((d-1)/d) (1 - c^2) 2F1(1, 1; d/2 + 1; c^2), c the correlation.
    """
    if memory.feature_norm == "sum":
        raise TheoryUnavailable("no formula for identity features divided by their sum, which has no mean")
    trial_weights, key_weights, along, across = axial_nodes(law, key_dim)
    if memory.feature_center == "mean":
        along = along - (along @ key_weights)[:, None]
    if memory.feature_norm == "l2":
        size = np.hypot(along, across)
        along, across = along / size, across / size
    square_along, square_across = along**2 @ key_weights, across**2 @ key_weights
    norm_square = along**2 + across**2
    columns = (
        norm_square @ key_weights,
        norm_square**2 @ key_weights,
        (along @ key_weights) ** 2,
        square_along**2 + square_across**2 / max(key_dim - 1, 1),
    )
    return TrialMoments(trial_weights, np.stack(columns), True, FORMULA, KNOWN_ERROR)
