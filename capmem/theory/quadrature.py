"""Gauss rules with weights that sum to 1: gamma, sphere and normal laws, the last two split at zero."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import eigh_tridiagonal

from capmem.theory.base import Floats

Rule = tuple[Floats, Floats]

REACH = 13.0  # standard deviations at which a normal law is cut: exp(-13^2 / 2) is 2e-37


def _golub_welsch(diagonal: Floats, off_diagonal: Floats) -> Rule:
    """Return nodes and weights of the Gauss rule of a Jacobi matrix (Golub, Welsch 1969)."""
    nodes, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    weights = vectors[0] ** 2
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


@lru_cache(maxsize=1024)
def gamma_rule(shape: float, size: int) -> Rule:
    """Return nodes (size,) and weights for the gamma law of this shape and scale 1 (Gauss-Laguerre).

    chi^2 with n degrees of freedom is twice a gamma variable of shape n/2. No gamma function is formed,
    so any shape works.
    """
    k = np.arange(size, dtype=np.float64)
    return _golub_welsch(2 * k + shape, np.sqrt(k[1:] * (k[1:] + shape - 1)))


@lru_cache(maxsize=256)
def sphere_rule(dim: int, size: int) -> Rule:
    """Return nodes (size,) and weights for one coordinate of a uniform unit vector (Gauss-Gegenbauer).

    The density is proportional to (1 - t^2)^((dim - 3) / 2).
    """
    if dim == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    k = np.arange(1, size, dtype=np.float64)
    order = dim / 2 - 1
    with np.errstate(invalid="ignore"):
        square = k * (k + 2 * order - 1) / (4 * (k + order) * (k + order - 1))
    square[0] = 1 / dim
    return _golub_welsch(np.zeros(size), np.sqrt(square))


@lru_cache(maxsize=16)
def normal_rule(size: int) -> Rule:
    """Return nodes (size,) and weights for N(0, 1) (Gauss-Hermite)."""
    return _golub_welsch(np.zeros(size), np.sqrt(np.arange(1, size, dtype=np.float64)))


@lru_cache(maxsize=16)
def legendre_rule(size: int) -> Rule:
    """Return nodes (size,) in [0, 1] and weights for the uniform law on it."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    return (nodes + 1) / 2, weights / 2


@lru_cache(maxsize=256)
def sphere_split(dim: int, size: int = 80) -> Rule:
    """Return a rule (2 size,) like :func:`sphere_rule`, exact for functions with a kink at zero.

    Gauss-Legendre in the angle, t = sin(theta), on both sides of zero.
    """
    if dim == 1:
        return sphere_rule(1, 2)
    unit, weights = legendre_rule(size)
    edge = min(np.pi / 2, 20 / max(dim - 2, 1) ** 0.5)
    positive = np.sin(edge * unit)
    density = weights * np.cos(edge * unit) ** (dim - 2)
    density = density / (2 * density.sum())
    return np.concatenate([-positive[::-1], positive]), np.concatenate([density[::-1], density])


def normal_split(mean: Floats, spread: float | Floats, size: int = 48, reach: float = REACH) -> Rule:
    """Return nodes (..., 2 size) and weights for N(mean, spread^2), exact for functions with a kink at zero.

    Parameters
    ----------
    mean : array (...)
        Means.
    spread : float or array (...)
        Standard deviations, positive.
    size : int
        Nodes on each side of zero.
    reach : float
        Standard deviations at which the law is cut.
    """
    unit, weights = legendre_rule(size)
    mean, spread = np.broadcast_arrays(np.asarray(mean, np.float64)[..., None], np.asarray(spread)[..., None])
    cut = np.clip(-mean / spread, -reach, reach)
    z = np.concatenate([-reach + (cut + reach) * unit, cut + (reach - cut) * unit], axis=-1)
    density = np.concatenate([(cut + reach) * weights, (reach - cut) * weights], axis=-1)
    density = density * np.exp(-z * z / 2)
    return mean + spread * z, density / density.sum(axis=-1, keepdims=True)
