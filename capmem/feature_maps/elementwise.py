"""Feature maps that act on each coordinate by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from capmem._arrays import Array
from capmem.feature_maps.base import FEATURE_MAPS, ElementwiseMap, rectify


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
        return rectify(xp, x)


@FEATURE_MAPS.register("squared_relu")
@dataclass(frozen=True)
class SquaredReLU(ElementwiseMap):
    """phi(x) = max(x, 0)^2.

    References
    ----------
    So, Manke, Liu, Dai, Shazeer, Le 2021, arXiv 2109.08668 (as an activation).
    """

    overflows: ClassVar[bool] = True

    def function(self, x: Array, xp: Any) -> Array:
        """Return max(x, 0)^2."""
        positive = rectify(xp, x)
        return positive * positive


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
        return xp.maximum(x, zero) + xp.exp(xp.minimum(x, zero))


@FEATURE_MAPS.register("exp")
@dataclass(frozen=True)
class Exp(ElementwiseMap):
    """phi(x) = exp(x) in every coordinate.

    No maximum is taken off: one a key would store another memory. A coordinate above 88.7 in float32 (709.8 in
    float64, 11.1 in float16) is infinite, which an :class:`OverflowWarning` counts.

    References
    ----------
    Zhang, Bhatia, Kumbong, Ré 2024, arXiv 2402.04347 (compared there as a map for linear attention).
    """

    overflows: ClassVar[bool] = True

    def function(self, x: Array, xp: Any) -> Array:
        """Return exp(x)."""
        return xp.exp(x)


@FEATURE_MAPS.register("softplus")
@dataclass(frozen=True)
class Softplus(ElementwiseMap):
    """phi(x) = log(1 + exp(x))."""

    def function(self, x: Array, xp: Any) -> Array:
        """Return log(exp(x) + exp(0)), which neither overflows nor rounds to 0 for very negative x."""
        return xp.logaddexp(x, xp.zeros_like(x))


@FEATURE_MAPS.register("silu")
@dataclass(frozen=True)
class SiLU(ElementwiseMap):
    """phi(x) = x / (1 + exp(-x)), also called swish; signed, with least value -0.278.

    With ``feature_norm="l2"`` it is the map of DeltaNet (Yang, Wang, Zhang, Shen, Kim 2024, arXiv 2406.06484).

    References
    ----------
    Elfwing, Uchibe, Doya 2017, arXiv 1702.03118 (as an activation).
    """

    signed: ClassVar[bool] = True
    positive_kernel: ClassVar[bool] = False

    def function(self, x: Array, xp: Any) -> Array:
        """Return x times the logistic function, by exp(-|x|): exp(-x) overflows for very negative x."""
        small = xp.exp(-xp.abs(x))
        return x * xp.where(x > 0, xp.ones_like(x), small) / (1 + small)
