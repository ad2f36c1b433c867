"""What a feature map is: phi, its width, its sign, and the kernel that it stands for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from capmem._arrays import Array, require_vectors, transpose
from capmem.registry import Registry


@dataclass(frozen=True)
class FeatureMap(ABC):
    """A map phi from keys in R^d to features in R^D.

    Attributes
    ----------
    signed : bool
        Whether features can be negative.
    positive_kernel : bool
        Whether phi(x) . phi(y) is never negative; a normalised read-out needs it.
    """

    signed: ClassVar[bool] = False
    positive_kernel: ClassVar[bool] = True

    @abstractmethod
    def width(self, key_dim: int) -> int:
        """Return the feature dimension D for keys of dimension `key_dim`."""

    @abstractmethod
    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, D).

        Parameters
        ----------
        x : array (..., N, d)
            Real floating point.
        positions : array (N,), optional
            Place of each key in the sequence; only maps that depend on it use it (default: 0 to N - 1).

        Raises
        ------
        ValueError
            If `x` has fewer than two axes or is not floating point.
        """

    def kernel(self, x: Array, y: Array) -> Array:
        """Return the kernel (..., N, M) of all pairs; for an exact map, phi(x) . phi(y)."""
        return self(x) @ transpose(self(y))


@dataclass(frozen=True)
class ElementwiseMap(FeatureMap):
    """A map that applies one function to every coordinate; D = d."""

    def width(self, key_dim: int) -> int:
        """Return D = d."""
        return key_dim

    @abstractmethod
    def function(self, x: Array, xp: Any) -> Array:
        """Apply the scalar function to an array of any shape, in the namespace `xp`."""

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features of the same shape; see :meth:`FeatureMap.__call__`."""
        return self.function(x, require_vectors(x, "keys"))


FEATURE_MAPS: Registry[FeatureMap] = Registry("feature_map")
