"""Moments of functions of k . k' for keys that are isotropic about a common key, from the moments of one key."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats
from capmem.theory.laws import KeyLaw, axial_nodes

ALL = np.ones(1)


class AxialKeys(NamedTuple):
    """A key k = a u/|u| + b w given |u|, w uniform on the unit sphere of the d - 1 dimensions across u.

    Attributes
    ----------
    trial_weights : array (R,)
        Weights of the nodes of |u|.
    weights : array (K,)
        Weights of the nodes of a key.
    along, across : array (R, K)
        a and b.
    key_dim : int
        d.
    """

    trial_weights: Floats
    weights: Floats
    along: Floats
    across: Floats
    key_dim: int

    @property
    def square(self) -> Floats:
        """|k|^2 at the nodes (R, K)."""
        return self.along**2 + self.across**2

    def mean(self, values: Floats) -> Floats:
        """Return E values (R,) for values (R, K)."""
        return np.asarray(np.broadcast_to(values, self.along.shape) @ self.weights)

    def powers(self, degree: int, weight: Floats = ALL) -> Floats:
        """Return E a^i b^2j weight(k) (R, degree + 1, degree / 2 + 1), weight being an array (R, K)."""
        shape = self.along.shape
        a = np.broadcast_to(self.along, (degree, *shape))
        b = np.broadcast_to(self.across**2, (degree // 2, *shape))
        start = np.broadcast_to(self.weights * weight, (1, *shape))
        left = np.cumprod(np.concatenate([start, a]), axis=0)
        right = np.cumprod(np.concatenate([np.ones((1, *shape)), b]), axis=0)
        return np.asarray(np.moveaxis(left, 0, 1) @ np.moveaxis(right, 0, -1))

    def series(self, coefficients: Floats, left: Floats = ALL, right: Floats | None = None) -> Floats:
        """Return E sum_n c_n (k . k')^n left(k) right(k') (R,) for independent k, k'; right is left if not given."""
        degree = len(coefficients) - 1
        first = self.powers(degree, left)
        second = first if right is None else self.powers(degree, right)
        terms = _terms(coefficients, self.key_dim)
        return sum((c * first[:, i, j] * second[:, i, j] for i, j, c in terms), np.zeros(len(first)))

    def given_key(self, coefficients: Floats) -> Floats:
        """Return h(k) = E_k' sum_n c_n (k . k')^n at the nodes (R, K)."""
        powers = self.powers(len(coefficients) - 1)
        terms = (
            c * powers[:, i, j, None] * self.along**i * self.across ** (2 * j)
            for i, j, c in _terms(coefficients, self.key_dim)
        )
        return sum(terms, np.zeros(self.along.shape))


def _terms(coefficients: Floats, key_dim: int) -> Iterator[tuple[int, int, float]]:
    """Yield (i, j, factor) with sum_n c_n E_w (k . k')^n = sum of factors times (a a')^i (b b')^2j."""
    for n, c in enumerate(coefficients):
        for j in range(n // 2 + 1) if c else ():
            yield n - 2 * j, j, float(c) * comb(n, 2 * j) * coordinate_moment(key_dim - 1, 2 * j)


def axial_keys(law: KeyLaw, key_dim: int) -> AxialKeys:
    """Return the nodes of a key of this law; see :func:`capmem.theory.laws.axial_nodes`."""
    return AxialKeys(*axial_nodes(law, key_dim), key_dim)


def coordinate_moment(dim: int, power: int) -> float:
    """Return E t^power of a coordinate t of a uniform unit vector: (p-1)!! / (d (d+2) ... (d+p-2)); 0 for odd p."""
    if power % 2 or (power and dim < 1):
        return 0.0
    return float(np.prod([(2 * i + 1) / (dim + 2 * i) for i in range(power // 2)]))
