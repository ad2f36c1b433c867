"""Unit lower triangular systems by forward substitution: a general solver loses all digits where a rule diverges."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from array_api_compat import is_numpy_namespace, is_torch_namespace

from capmem._arrays import Array, namespace


def solve_unit_lower(system: Array, right: Array) -> Array:
    """Return X (..., C, v) of L X = B, L the lower triangle of `system` with ones in place of its diagonal.

    Each row of X is right to rounding for an L within rounding of the given one, entry by entry, however large X
    grows (Higham 2002, Accuracy and Stability of Numerical Algorithms, theorem 8.5); there is nothing to divide by.

    Parameters
    ----------
    system : array (..., C, C)
        L.
    right : array (..., C, v)
        B.
    """
    xp = namespace(system, right)
    if is_numpy_namespace(xp) and system.dtype.char in "fd" and right.dtype == system.dtype:
        return _by_blas(system, right)
    if is_torch_namespace(xp):
        torch: Any = importlib.import_module("torch")
        return torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    return _by_halves(xp, system, right)


def _by_blas(system: Any, right: Any) -> Any:
    """Call BLAS for each item of the batch; its arrays are by columns, so it is asked for the transpose of X."""
    from scipy.linalg import blas

    solve = blas.strsm if system.dtype.char == "f" else blas.dtrsm
    batch = np.broadcast_shapes(system.shape[:-2], right.shape[:-2])
    system = np.broadcast_to(system, (*batch, *system.shape[-2:]))
    right = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    found = np.empty(right.shape, right.dtype)
    for item in np.ndindex(*batch):
        found[item] = solve(1.0, system[item].T, right[item].T, side=1, lower=0, diag=1).T
    return found


def _by_halves(xp: Any, system: Array, right: Array) -> Array:
    """Solve the upper half, take it out of the lower half, and solve that."""
    count = system.shape[-1]
    if count == 1:
        return right
    half = count // 2
    upper = _by_halves(xp, system[..., :half, :half], right[..., :half, :])
    rest = right[..., half:, :] - system[..., half:, :half] @ upper
    return xp.concat([upper, _by_halves(xp, system[..., half:, half:], rest)], axis=-2)
