"""Special functions where those of SciPy are not to be relied on."""

from __future__ import annotations

import numpy as np
from scipy import special

from capmem.theory.base import Floats

LARGE = 60.0  # SciPy 1.17 gives nan for c >= 99 and z > 0.9
TERMS = 200  # the k-th is below (k! / c (c+1) ... (c+k-1)) for a, b <= 1: rounding is reached long before


def hyp2f1(a: float, b: float, c: float, z: Floats) -> Floats:
    """Return 2F1(a, b; c; z) for 0 < a, b <= 1 < c and z in [0, 1]; by its series where c is large."""
    if c < LARGE:
        return np.asarray(special.hyp2f1(a, b, c, z))
    k = np.arange(TERMS)
    terms = np.cumprod(np.concatenate([[1.0], (a + k) * (b + k) / ((c + k) * (k + 1))]))
    return np.asarray(np.polynomial.polynomial.polyval(z, terms))
