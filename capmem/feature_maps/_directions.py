"""Random directions of feature maps: drawn by NumPy from a seed, kept, and handed to any array library."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np
from array_api_compat import device

from capmem._arrays import Array, namespace, transpose

Floats = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[int, int, int], Floats]

SMALL = 2**16  # numbers: so many directions are kept for each trial of a sweep, larger ones for the next calls only
BLOCK = 64  # keys projected at once


def _kept(draw: Draw) -> Draw:
    """Return the function with what it returned lately: at most 64 MB of small arrays, and 8 large ones."""
    small, large = lru_cache(maxsize=128)(draw), lru_cache(maxsize=8)(draw)
    return wraps(draw)(lambda seed, num, dim: (small if num * dim <= SMALL else large)(seed, num, dim))


@_kept
def gaussian_directions(seed: int, num: int, dim: int) -> Floats:
    """Return `num` independent rows w ~ N(0, I_dim), read-only."""
    rows = np.random.default_rng(seed).standard_normal((num, dim))
    rows.setflags(write=False)
    return rows


@_kept
def orthogonal_directions(seed: int, num: int, dim: int) -> Floats:
    """Return `num` rows (num, dim), read-only: orthogonal in blocks of `dim`, each by itself N(0, I_dim).

    The lengths are independent chi variables of `dim` degrees of freedom; equal ones, sqrt(dim), would be
    biased (-4.8% of exp(x . y) at dim = 16, |x + y|^2 = 2). The last block is cut off.
    """
    rng = np.random.default_rng(seed)
    rows = haar_matrices(rng, -(-num // dim), dim).reshape(-1, dim)[:num]
    rows = rows * np.sqrt(rng.chisquare(dim, size=(num, 1)))
    rows.setflags(write=False)
    return rows


def haar_matrices(rng: np.random.Generator, count: int, dim: int) -> Floats:
    """Return uniformly distributed orthogonal matrices (count, dim, dim).

    LAPACK's QR leaves signs in the diagonal of R, so Q alone is not uniform (Mezzadri 2006, math-ph/0609050):
    exp features of it are off by 20% in fixed directions.
    """
    q, r = np.linalg.qr(rng.standard_normal((count, dim, dim)))
    signs = np.copysign(1.0, np.diagonal(r, axis1=-2, axis2=-1))
    matrices: Floats = np.swapaxes(q * signs[:, None, :], -1, -2)
    return matrices


def project(x: Array, directions: Any) -> Array:
    """Return w_r . x (..., N, m) of keys (..., N, d), in products of 64 keys each.

    What BLAS does to a row may depend on how many rows there are, and on its place among them. In blocks of one size a
    key's features have the same bits however many follow it: see :attr:`FeatureMap.row_wise`.
    """
    xp = namespace(x)
    weights = transpose(as_like(directions, x))
    count, dim = x.shape[-2:]
    lacking = -count % BLOCK
    if lacking:
        zeros = xp.zeros((*x.shape[:-2], lacking, dim), dtype=x.dtype, device=device(x))
        x = xp.concat([x, zeros], axis=-2)
    blocks = xp.reshape(x, (*x.shape[:-2], (count + lacking) // BLOCK, BLOCK, dim)) @ weights
    return xp.reshape(blocks, (*x.shape[:-1], weights.shape[-1]))[..., :count, :]


def as_like(constant: Any, x: Array) -> Array:
    """Return a NumPy array of floats in the library and dtype of `x`, on its device."""
    # PyTorch warns of read-only memory, hence the copy
    return namespace(x).asarray(constant.copy(), dtype=x.dtype, device=device(x))
