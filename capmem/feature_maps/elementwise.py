"""Feature maps that act on each coordinate by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from capmem._arrays import Array
from capmem.feature_maps.base import FEATURE_MAPS, ElementwiseMap


@FEATURE_MAPS.register("identity")
@dataclass(frozen=True)
class Identity(ElementwiseMap):
    """phi(x) = x; the kernel is the inner product x . y."""

    signed: ClassVar[bool] = True
    positive_kernel: ClassVar[bool] = False

    def function(self, x: Array, xp: Any) -> Array:
        """Return x itself."""
        return x


@FEATURE_MAPS.register("relu")
@dataclass(frozen=True)
class ReLU(ElementwiseMap):
    """phi(x) = max(x, 0)."""

    def function(self, x: Array, xp: Any) -> Array:
        """Return max(x, 0)."""
        return xp.where(x > 0, x, xp.zeros_like(x))


@FEATURE_MAPS.register("elu_plus_one")
@dataclass(frozen=True)
class EluPlusOne(ElementwiseMap):
    """phi(x) = x + 1 for x > 0, exp(x) otherwise.

    References
    ----------
    Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236.
    """

    def function(self, x: Array, xp: Any) -> Array:
        """Return ELU(x) + 1 without forming ELU: (exp(x) - 1) + 1 is 0 in low precision for x < -8."""
        zero = xp.zeros_like(x)
        return xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, zero, x)))
