"""Positive random features of the softmax kernel (FAVOR+)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from capmem._arrays import Array, require_vectors, transpose
from capmem.feature_maps._directions import gaussian_directions, orthogonal_directions, project
from capmem.feature_maps.base import (
    FEATURE_MAPS,
    FeatureMap,
    quiet,
    require_integer,
    warn_overflow,
    warn_underflow,
)
from capmem.schema import coerce


@FEATURE_MAPS.register("positive_random_features")
@dataclass(frozen=True)
class PositiveRandomFeatures(FeatureMap):
    """FAVOR+: phi(x) = exp(w_r . u - |u|^2 / 2) / sqrt(m), r = 1..m, with u = x / d^(1/4); D = m.

    On average over the directions, phi(x) . phi(y) is the softmax kernel exp(x . y / sqrt(d)). `hyperbolic`
    adds exp(-w_r . u - |u|^2 / 2), all over sqrt(2 m); D = 2m.

    Parameters
    ----------
    num_features : int
        m, the number of random directions, at least 1.
    orthogonal : bool
        Directions orthogonal in blocks of d, with independent chi_d lengths; else all independent.
    hyperbolic : bool
        Use every direction and its negative.
    seed : int
        Draws the directions.

    Notes
    -----
    The exponent is formed whole, so no factor overflows. No maximum is subtracted and no epsilon added. A
    feature is at most exp(|w_r|^2 / 2) (float32: finite for d up to about 120, above it for all keys but those
    along a w_r; an :class:`OverflowWarning` counts). Features of large keys round to 0, in float32 all of them
    from about |x|^2 = 300 sqrt(d) on; an :class:`UnderflowWarning` counts such keys. Well before that the
    estimate is useless: its relative variance at y = x is (exp(4 |x|^2 / sqrt(d)) - 1) / m.

    References
    ----------
    Choromanski, Likhosherstov, Dohan, et al. 2020, arXiv 2009.14794.
    """

    row_wise: ClassVar[bool] = True

    num_features: int = 256
    orthogonal: bool = True
    hyperbolic: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.num_features, "num_features", 1)
        require_integer(self.seed, "seed", 0)
        coerce(self.orthogonal, bool, "orthogonal")
        coerce(self.hyperbolic, bool, "hyperbolic")

    def width(self, key_dim: int) -> int:
        """Return D = m, or 2m if hyperbolic."""
        return self.num_features * (1 + self.hyperbolic)

    def directions(self, key_dim: int) -> Any:
        """Return the directions w (m, d), a read-only NumPy array."""
        draw = orthogonal_directions if self.orthogonal else gaussian_directions
        return draw(self.seed, self.num_features, key_dim)

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, D); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        d = x.shape[-1]
        u = x / d**0.25
        with quiet():
            along = project(u, self.directions(d))
            if self.hyperbolic:
                along = xp.concat([along, -along], axis=-1)
            shift = xp.vecdot(u, u, axis=-1)[..., None] / 2 + math.log(self.width(d)) / 2
            features = xp.exp(along - shift)
        warn_overflow(features, self)
        warn_underflow(features, x, self)
        return features

    def kernel(self, x: Array, y: Array) -> Array:
        """Return exp(x . y / sqrt(d)) (..., N, M), which the features approximate."""
        xp = require_vectors(x, "keys")
        root = x.shape[-1] ** 0.25
        with quiet():
            values = xp.exp((x / root) @ transpose(y / root))
        warn_overflow(values, self, "kernel values")
        return values
