"""Shared array helpers: the namespace look-up and the shape checks that every public call makes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

__all__ = ["Array", "device", "namespace", "require_vectors", "take_rows", "transpose"]

Array = Any  # any array of a library that follows the Python array API standard


def namespace(*arrays: Array) -> Any:
    """Return the array-API namespace that all of `arrays` share."""
    if all(type(a) is np.ndarray for a in arrays):  # the same answer, at a tenth of the time
        return _numpy()
    return array_namespace(*(a for a in arrays if a is not None))


@cache
def _numpy() -> Any:
    return array_namespace(np.empty(0))


def require_vectors(x: Array, name: str, dim: int | None = None) -> Any:
    """Check that `x` is a floating array (..., N, dim) and return its namespace.

    Raises
    ------
    ValueError
        If `x` is not an array, not real floating point, has fewer than two axes, or another last axis.
    """
    try:
        xp = namespace(x)
    except TypeError:
        raise ValueError(f"{name} must be an array (NumPy, PyTorch, JAX, ...), got {type(x).__name__}") from None
    if not (type(x) is np.ndarray and x.dtype.char in "efd") and not xp.isdtype(x.dtype, "real floating"):
        raise ValueError(f"{name} must be real floating point, got dtype {x.dtype}")
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape (..., N, dim), got shape {tuple(x.shape)}")
    if dim is not None and x.shape[-1] != dim:
        raise ValueError(f"{name} must have last axis {dim}, got shape {tuple(x.shape)}")
    return xp


def transpose(x: Array) -> Array:
    """Swap the last two axes."""
    return x.mT


def unit_rows(xp: Any, rows: Array) -> tuple[Array, Array]:
    """Return rows (..., N, D) divided by their Euclidean norm, and which of them (..., N) have none.

    They are scaled by their largest entry first, so that no square over- or underflows. A zero row stays zero.
    """
    largest = xp.max(xp.abs(rows), axis=-1, keepdims=True)
    is_zero = largest == 0
    rows = rows / xp.where(is_zero, xp.ones_like(largest), largest)
    norm = xp.sqrt(xp.sum(rows * rows, axis=-1, keepdims=True))
    return rows / xp.where(is_zero, xp.ones_like(norm), norm), is_zero[..., 0]


def take_rows(x: Array, indices: Any) -> Array:
    """Return the rows of `x` (N, dim) at NumPy `indices`, in the library of `x`."""
    xp = namespace(x)
    return xp.take(x, xp.asarray(indices, device=device(x)), axis=0)
