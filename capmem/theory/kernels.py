"""The kernels of random feature maps: their mean over the directions, and what one and two directions add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import hyp0f1, hyp1f1

from capmem.feature_maps import FeatureMap, PositiveRandomFeatures, RandomFourierFeatures, RandomReLU
from capmem.theory.base import Floats, TheoryUnavailable

LARGEST = 700.0  # exponent of a float64; SciPy's 1F1 takes forever at much larger arguments

ZonalFunction = Callable[[Floats, Floats, Floats], Floats]  # of |x|, |y| and the cosine between x and y


class RandomKernel(NamedTuple):
    """kappa(x, y) = (1/m) sum_r phi_r(x) . phi_r(y), where phi_r depends on one direction w_r ~ N(0, I).

    Attributes
    ----------
    directions : int
        m.
    mean, square : function of |x|, |y|, cosine
        E kappa_r and E kappa_r^2 over the direction.
    features : function of w . x, |x|
        phi_r (p, ...).
    block : int
        Directions are orthogonal in blocks of so many, the last one cut off; 1 where all are independent.
    pair : function of |x|, |y|, cosine, or None
        E kappa_r kappa_s over two orthogonal directions of independent chi_d lengths.
    unit : bool
        The map divides keys by their norm.
    scale : float
        The map multiplies keys by it.
    """

    directions: int
    mean: ZonalFunction
    square: ZonalFunction
    features: Callable[[Floats, Floats], Floats]
    block: int = 1
    pair: ZonalFunction | None = None
    unit: bool = False
    scale: float = 1.0

    def shares(self) -> tuple[float, float, float]:
        """Return what share of the ordered pairs (r, s) are equal, orthogonal, independent."""
        m, block = self.directions, self.block
        full, rest = divmod(m, block)
        orthogonal = full * block * (block - 1) + rest * (rest - 1)
        return 1 / m, orthogonal / m**2, 1 - 1 / m - orthogonal / m**2

    def total(self, x: Floats, y: Floats, t: Floats) -> Floats:
        """Return E kappa(x, y)^2 over the draw of all directions."""
        equal, orthogonal, independent = self.shares()
        found = equal * self.square(x, y, t) + independent * self.mean(x, y, t) ** 2
        return found if self.pair is None else found + orthogonal * self.pair(x, y, t)


def _random_relu(feature_map: Any, key_dim: int) -> RandomKernel:
    """Arc-cosine kernels of order 1 and 2 (Cho, Saul 2009, Kernel Methods for Deep Learning)."""

    def mean(x: Floats, y: Floats, t: Floats) -> Floats:
        return np.asarray(x * y * arc_cosine(1, t))

    def square(x: Floats, y: Floats, t: Floats) -> Floats:
        return np.asarray((x * y) ** 2 * arc_cosine(2, t))

    return RandomKernel(feature_map.num_features, mean, square, lambda p, x: np.maximum(p, 0)[None])


def arc_cosine(order: int, t: Floats) -> Floats:
    """Return E relu(a)^n relu(b)^n for N(0, 1) variables a, b of correlation t, n = 1 or 2."""
    t = np.clip(t, -1, 1)
    angle, sine = np.arccos(t), np.sqrt((1 - t) * (1 + t))
    if order == 1:
        return np.asarray((sine + (np.pi - angle) * t) / (2 * np.pi))
    return np.asarray((3 * sine * t + (np.pi - angle) * (1 + 2 * t * t)) / (2 * np.pi))


def _fourier(feature_map: Any, key_dim: int) -> RandomKernel:
    """One direction has the kernel cos(w . (x - y))."""

    def mean(x: Floats, y: Floats, t: Floats) -> Floats:
        return np.asarray(np.exp(x * y * t - (x * x + y * y) / 2))

    def square(x: Floats, y: Floats, t: Floats) -> Floats:
        return np.asarray((1 + np.exp(4 * x * y * t - 2 * (x * x + y * y))) / 2)

    def features(p: Floats, x: Floats) -> Floats:
        return np.stack([np.sin(p), np.cos(p)])

    return RandomKernel(feature_map.num_features, mean, square, features, unit=True)


def _positive(feature_map: Any, key_dim: int) -> RandomKernel:
    """One direction has the kernel exp(w . z - (x^2 + y^2)/2), or cosh in place of exp, with z = x + y.

    The product of two with orthogonal directions has the mean e^(-x^2 - y^2) 1F1(d; d/2; |z|^2 / 2): in the basis
    of the two, w . z + w' . z = |z| (s t + s' t') with t, t' coordinates of a uniform unit vector, so its mean is
    E 0F1(; d/2; (s^2 + s'^2) |z|^2 / 4) with s^2 + s'^2 ~ chi^2_2d. Independent ones have e^(2 x . y).
    """
    hyperbolic, block = feature_map.hyperbolic, key_dim if feature_map.orthogonal else 1

    def mean(x: Floats, y: Floats, t: Floats) -> Floats:
        return np.asarray(np.exp(x * y * t))

    def square(x: Floats, y: Floats, t: Floats) -> Floats:
        norms, z = x * x + y * y, x * x + y * y + 2 * x * y * t
        whole = np.exp(2 * z - norms)
        return np.asarray((np.exp(-norms) + whole) / 2 if hyperbolic else whole)

    def pair(x: Floats, y: Floats, t: Floats) -> Floats:
        norms, z = x * x + y * y, x * x + y * y + 2 * x * y * t
        if not np.max(z) / 2 < LARGEST:
            raise TheoryUnavailable(f"exp features of such keys have moments above e^{LARGEST:g}: use a smaller scale")
        return np.asarray(np.exp(-norms) * hyp1f1(key_dim, key_dim / 2, z / 2))

    def features(p: Floats, x: Floats) -> Floats:
        half = np.exp(p - x * x / 2)
        return np.stack([half, np.exp(-p - x * x / 2)]) / 2**0.5 if hyperbolic else half[None]

    return RandomKernel(
        feature_map.num_features, mean, square, features, block, pair if block > 1 else None, scale=key_dim**-0.25
    )


def exponential_mean(key_dim: int, square: Floats) -> Floats:
    """Return E exp(|w| t) of a coordinate t of a uniform unit vector, for |w|^2 = square: 0F1(; d/2; |w|^2/4)."""
    return np.asarray(hyp0f1(key_dim / 2, square / 4))


KERNELS: dict[type[FeatureMap], Callable[[Any, int], RandomKernel]] = {
    RandomReLU: _random_relu,
    RandomFourierFeatures: _fourier,
    PositiveRandomFeatures: _positive,
}
