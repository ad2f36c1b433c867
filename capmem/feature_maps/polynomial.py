"""Polynomial features: all monomials of one degree, and the Taylor features of the softmax kernel."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from array_api_compat import device

from capmem._arrays import Array, namespace, require_vectors
from capmem.feature_maps._directions import as_like
from capmem.feature_maps.base import (
    FEATURE_MAPS,
    FeatureMap,
    quiet,
    require_integer,
    warn_overflow,
    warn_underflow,
)
from capmem.schema import coerce, require


@FEATURE_MAPS.register("polynomial")
@dataclass(frozen=True)
class Polynomial(FeatureMap):
    """phi(x) = all monomials x_a x_b ... of degree p, each times sqrt(p! / prod_i n_i!); D = C(d + p - 1, p).

    n_i says how often x_i occurs. The kernel is (x . y)^p exactly; it can be negative for odd p.

    Parameters
    ----------
    degree : int
        p, at least 1; p = 1 is the identity.

    Notes
    -----
    |phi(x)| = |x|^p. In float32, keys of norm 1e3 have infinite features from about p = 14 on
    (:class:`OverflowWarning`; their kernel is infinite from p = 7 on), keys of norm 1e-3 have none left
    (:class:`UnderflowWarning`).

    References
    ----------
    Kacham, Mirrokni, Zhong 2023, arXiv 2310.01655 (sketched there, exact here).
    """

    degree: int = 2

    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.degree, "degree", 1)

    @property
    def positive_kernel(self) -> bool:  # type: ignore[override]
        """Whether the degree is even."""
        return self.degree % 2 == 0

    def width(self, key_dim: int) -> int:
        """Return D = C(d + p - 1, p)."""
        return math.comb(key_dim + self.degree - 1, self.degree)

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, D); see :meth:`FeatureMap.__call__`."""
        require_vectors(x, "keys")
        with quiet():
            features = monomials(x, self.degree)
        warn_overflow(features, self)
        warn_underflow(features, x, self)
        return features


@FEATURE_MAPS.register("taylor")
@dataclass(frozen=True)
class Taylor(FeatureMap):
    """phi(x) = [1, x / d^(1/4), vec(x x^T) / sqrt(2 d)], the Taylor features of exp(u), u = x . y / sqrt(d).

    The kernel is 1 + u + u^2 / 2 exactly, at least 1/2 although features are signed. Order 1 stops after
    [1, x / d^(1/4)], with kernel 1 + u, which can be negative. D = 1 + d (order 1), 1 + d + d^2 (order 2), or
    compressed 1 + d + d (d + 1) / 2: the products x_a x_b, a < b, once, times sqrt(2); the same kernel.

    Parameters
    ----------
    order : int
        1 or 2.
    compressed : bool
        Keep each product of two coordinates once.

    Notes
    -----
    Features grow as |x|^2: an :class:`OverflowWarning` counts those above the range (float16: |x_a| > 1,000).

    References
    ----------
    Arora, Eyuboglu, Zhang, Timalsina, Alberti, Zinsley, Zou, Rudra, Ré 2024, arXiv 2402.18668.
    """

    order: int = 2
    compressed: bool = True

    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(coerce(self.order, int, "order") in (1, 2), "order", self.order, "1 or 2")
        coerce(self.compressed, bool, "compressed")

    @property
    def positive_kernel(self) -> bool:  # type: ignore[override]
        """Whether the order is 2."""
        return self.order == 2

    def width(self, key_dim: int) -> int:
        """Return D = 1 + d, plus d^2 or d (d + 1) / 2 for order 2."""
        products = key_dim * (key_dim + 1) // 2 if self.compressed else key_dim**2
        return 1 + key_dim + products * (self.order == 2)

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, D); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        u = x / x.shape[-1] ** 0.25
        parts = [xp.ones_like(x[..., :1]), u]
        if self.order == 2:
            with quiet():
                pairs = monomials(u, 2) if self.compressed else _outer(u)
            parts.append(pairs / 2**0.5)
        features = xp.concat(parts, axis=-1)
        warn_overflow(features, self)
        return features


def _outer(u: Array) -> Array:
    """Return all products of two coordinates as (..., N, d^2)."""
    return namespace(u).reshape(u[..., :, None] * u[..., None, :], (*u.shape[:-1], u.shape[-1] ** 2))


def monomials(x: Array, degree: int) -> Array:
    """Return the features (..., N, D) of the kernel (x . y)^degree."""
    xp = namespace(x)
    factors, weights = _exponents(x.shape[-1], degree)
    product = as_like(weights, x)
    for column in factors.T:
        product = product * xp.take(x, xp.asarray(column.copy(), device=device(x)), axis=-1)
    return product


@lru_cache(maxsize=16)
def _exponents(dim: int, degree: int) -> tuple[Any, Any]:
    """Return the coordinates (D, p) that each monomial multiplies, and the square root of how often it occurs."""
    rows = list(itertools.combinations_with_replacement(range(dim), degree))
    orders = [math.factorial(degree) / math.prod(math.factorial(row.count(i)) for i in set(row)) for row in rows]
    return np.array(rows, dtype=np.int64).reshape(-1, degree), np.sqrt(np.array(orders))
