"""Softmax over the coordinates of a key, and of its negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from capmem._arrays import Array, require_vectors
from capmem.feature_maps.base import FEATURE_MAPS, FeatureMap


@FEATURE_MAPS.register("softmax_features")
@dataclass(frozen=True)
class SoftmaxFeatures(FeatureMap):
    """phi(x) = [softmax(x), softmax(-x)], softmax over the d coordinates; D = 2d, of rank 2d - 1.

    Hedgehog's form with its projection left at the identity, which is where its training starts. Features lie
    in (0, 1], and each half sums to 1: one dimension is lost, and all keys share a mean.

    References
    ----------
    Zhang, Bhatia, Kumbong, Ré 2024, arXiv 2402.04347.
    """

    row_wise: ClassVar[bool] = True

    def width(self, key_dim: int) -> int:
        """Return D = 2d."""
        return 2 * key_dim

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, 2d); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        return xp.concat([_softmax(x, xp), _softmax(-x, xp)], axis=-1)


def _softmax(x: Array, xp: Any) -> Array:
    """Return softmax over the last axis; the maximum cancels, so no exponent is positive."""
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)
