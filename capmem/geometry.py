"""Gram statistics: how crowded a set of vectors is, and in how many dimensions it really lies.

Vectors are (..., N, D), and results have the batch shape. The answers for odd input:

* fewer than two vectors where pairs are compared, no vectors at all, nan or inf: ValueError
* zero vectors: their cosines count as 0; nothing but zeros has rank, participation ratio and dimension 0
"""

from __future__ import annotations

import math
from typing import Any

from capmem._arrays import Array, device, namespace, require_vectors, transpose, unit_rows
from capmem.schema import require


def gram(vectors: Array, others: Array | None = None) -> Array:
    """Return all inner products (..., N, M) of vectors (..., N, D) with others (..., M, D)."""
    others = vectors if others is None else others
    _check(vectors, "vectors")
    _check(others, "others", vectors.shape[-1])
    return vectors @ transpose(others)


def mean_coherence(vectors: Array) -> Array:
    """Return the mean over pairs i != j of |cos(x_i, x_j)|, for vectors (..., N, D)."""
    return _off_diagonal_mean(abs(_cosines(vectors)))


def mean_squared_coherence(vectors: Array) -> Array:
    """Return the mean over pairs i != j of cos(x_i, x_j)^2, for vectors (..., N, D)."""
    return _off_diagonal_mean(_cosines(vectors) ** 2)


def max_coherence(vectors: Array) -> Array:
    """Return the largest |cos(x_i, x_j)| over pairs i != j, for vectors (..., N, D)."""
    cosines = abs(_cosines(vectors))
    require(cosines.shape[-1] >= 2, "vectors", cosines.shape[-1], "at least two")
    xp = namespace(cosines)
    own = xp.eye(cosines.shape[-1], dtype=cosines.dtype, device=device(cosines))
    return xp.max(cosines - 2 * own, axis=(-2, -1))


def welch_bound(num_vectors: int, dim: int) -> float:
    """Return the least possible max coherence of N unit vectors in d dimensions.

    sqrt((N - d) / (d (N - 1))) for N > d, else 0 (orthogonal vectors fit).

    References
    ----------
    Welch 1974, IEEE Trans. Inf. Theory 20:397.
    """
    require(num_vectors >= 1 and dim >= 1, "num_vectors, dim", (num_vectors, dim), "at least 1")
    if num_vectors <= dim:
        return 0.0
    return math.sqrt((num_vectors - dim) / (dim * (num_vectors - 1)))


def participation_ratio(vectors: Array) -> Array:
    """Return (tr K)^2 / |K|_F^2 of the Gram matrix K of vectors (..., N, D).

    It counts the directions that this sample fills. As an estimate of a law's dimension it is biased down:
    towards N D / (N + D). Use :func:`effective_dimension` for that.
    """
    xp = _check(vectors, "vectors")
    vectors = vectors / _unit_of(xp, vectors)
    kernel = gram(vectors)
    trace = xp.sum(vectors * vectors, axis=(-2, -1))
    power = xp.sum(kernel * kernel, axis=(-2, -1))
    return trace * trace / xp.where(power > 0, power, xp.ones_like(power))


def effective_dimension(vectors: Array) -> Array:
    """Return mean(K_ii)^2 / mean over i != j of K_ij^2: the dimension that decides Hebbian interference.

    Only off-diagonal pairs enter the denominator, which is unbiased for it; inf for orthogonal vectors. Not
    centred: for that, subtract a mean that was taken from other vectors of the same law. The mean of these very
    vectors makes the result too small (by 21% for 8 normal vectors in 16 dimensions, 1.4% for 64 in 64).
    """
    xp = _check(vectors, "vectors")
    vectors = vectors / _unit_of(xp, vectors)
    kernel = gram(vectors)
    size = xp.mean(xp.sum(vectors * vectors, axis=-1), axis=-1)
    square = _off_diagonal_mean(kernel * kernel)
    safe = xp.where(square > 0, square, xp.ones_like(square))
    alone = xp.where(size > 0, xp.full_like(size, math.inf), xp.zeros_like(size))
    return xp.where(square > 0, size * size / safe, alone)


def effective_rank(vectors: Array) -> Array:
    """Return exp(entropy of the normalised singular values) of vectors (..., N, D).

    References
    ----------
    Roy, Vetterli 2007, EUSIPCO.
    """
    xp = _check(vectors, "vectors")
    singular = xp.linalg.svdvals(vectors)
    total = xp.sum(singular, axis=-1, keepdims=True)
    share = singular / xp.where(total > 0, total, xp.ones_like(total))
    logs = xp.log(xp.where(share > 0, share, xp.ones_like(share)))
    rank = xp.exp(-xp.sum(share * logs, axis=-1))
    return xp.where(total[..., 0] > 0, rank, xp.zeros_like(rank))


def _cosines(vectors: Array) -> Array:
    xp = _check(vectors, "vectors")
    return gram(unit_rows(xp, vectors)[0])


def _unit_of(xp: Any, vectors: Array) -> Array:
    """Return the largest entry of each batch item (..., 1, 1): in this unit no square over- or underflows."""
    largest = xp.max(xp.abs(vectors), axis=(-2, -1), keepdims=True)
    return xp.where(largest > 0, largest, xp.ones_like(largest))


def _check(vectors: Array, name: str, dim: int | None = None) -> Any:
    xp = require_vectors(vectors, name, dim)
    require(0 not in vectors.shape[-2:], name, tuple(vectors.shape), "at least one vector")
    if not bool(xp.all(xp.isfinite(vectors))):
        raise ValueError(f"{name} must be finite, got nan or inf among them")
    return xp


def _off_diagonal_mean(matrix: Array) -> Array:
    xp = namespace(matrix)
    size = matrix.shape[-1]
    require(size >= 2, "vectors", size, "at least two")
    trace = xp.linalg.trace(matrix)
    return (xp.sum(matrix, axis=(-2, -1)) - trace) / (size * (size - 1))
