"""Random features x -> f(Wx): the Gaussian kernel by sine and cosine, the arc-cosine kernel by ReLU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from capmem._arrays import Array, namespace, require_vectors, transpose
from capmem.feature_maps._directions import gaussian_directions, project
from capmem.feature_maps.base import FEATURE_MAPS, FeatureMap, rectify, require_integer


@dataclass(frozen=True)
class _Projection(FeatureMap):
    """The m directions w ~ N(0, I) that both maps share."""

    row_wise: ClassVar[bool] = True

    num_features: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.num_features, "num_features", 1)
        require_integer(self.seed, "seed", 0)

    def directions(self, key_dim: int) -> Any:
        """Return the directions w (m, d), a read-only NumPy array."""
        return gaussian_directions(self.seed, self.num_features, key_dim)

    def _project(self, x: Array) -> Array:
        """Return w_r . x as (..., N, m)."""
        return project(x, self.directions(x.shape[-1]))


@FEATURE_MAPS.register("random_fourier_features")
@dataclass(frozen=True)
class RandomFourierFeatures(_Projection):
    """phi(x) = [sin(w_r . u), cos(w_r . u)] / sqrt(m), r = 1..m, with u = x / |x| and w ~ N(0, I); D = 2m.

    On average over the directions, phi(x) . phi(y) = exp(-|u_x - u_y|^2 / 2) = exp(u_x . u_y - 1). Keys are
    divided by their L2 norm first, so their scale has no effect; a zero key stays zero, and is mapped as such.
    phi(x) . phi(x) = 1 exactly. Features are signed and so can the kernel be: a denominator can cross zero.

    Parameters
    ----------
    num_features : int
        m, the number of random directions, at least 1.
    seed : int
        Draws the directions.

    References
    ----------
    Peng, Pappas, Yogatama, Schwartz, Smith, Kong 2021, arXiv 2103.02143 (with sigma = 1).
    """

    signed: ClassVar[bool] = True
    positive_kernel: ClassVar[bool] = False

    def width(self, key_dim: int) -> int:
        """Return D = 2m."""
        return 2 * self.num_features

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, 2m); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        angles = self._project(_unit(x)[0])
        return xp.concat([xp.sin(angles), xp.cos(angles)], axis=-1) / self.num_features**0.5

    def kernel(self, x: Array, y: Array) -> Array:
        """Return exp(-|u_x - u_y|^2 / 2) (..., N, M) of the normalised keys, which the features approximate."""
        xp = require_vectors(x, "keys")
        u, v = _unit(x)[0], _unit(y)[0]
        squares = (xp.sum(u * u, axis=-1, keepdims=True) + transpose(xp.sum(v * v, axis=-1, keepdims=True))) / 2
        return xp.exp(u @ transpose(v) - squares)


@FEATURE_MAPS.register("random_relu")
@dataclass(frozen=True)
class RandomReLU(_Projection):
    """phi(x) = max(w_r . x, 0) / sqrt(m), r = 1..m, with w ~ N(0, I); D = m.

    On average over the directions, phi(x) . phi(y) is the arc-cosine kernel of order 1 over 2,
    |x| |y| (sin t + (pi - t) cos t) / (2 pi), t being the angle between x and y.

    Parameters
    ----------
    num_features : int
        m, the number of random directions, at least 1.
    seed : int
        Draws the directions.

    References
    ----------
    Cho, Saul 2009, Kernel Methods for Deep Learning, NIPS 22.
    """

    def width(self, key_dim: int) -> int:
        """Return D = m."""
        return self.num_features

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, m); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        along = self._project(x)
        return rectify(xp, along) / self.num_features**0.5

    def kernel(self, x: Array, y: Array) -> Array:
        """Return |x| |y| (sin t + (pi - t) cos t) / (2 pi) (..., N, M), which the features approximate."""
        xp = require_vectors(x, "keys")
        (u, x_norm), (v, y_norm) = _unit(x), _unit(y)
        cosine = xp.clip(u @ transpose(v), -1, 1)
        sine = xp.sqrt((1 - cosine) * (1 + cosine))
        angular = (sine + (math.pi - xp.acos(cosine)) * cosine) / (2 * math.pi)
        return x_norm * transpose(y_norm) * angular


def _unit(x: Array) -> tuple[Array, Array]:
    """Return rows of x over their norm, and the norms (..., N, 1); a zero row stays zero.

    The largest coordinate comes out first, so no square over- or underflows; no branch divides by zero, so
    gradients are finite.
    """
    xp = namespace(x)
    peak = xp.max(xp.abs(x), axis=-1, keepdims=True)
    one = xp.ones_like(peak)
    scaled = x / xp.where(peak == 0, one, peak)
    square = xp.sum(scaled * scaled, axis=-1, keepdims=True)
    norm = xp.sqrt(xp.where(square == 0, one, square))
    return scaled / norm, peak * norm
