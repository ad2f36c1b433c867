"""Deterministic parameter-free projection: products of rectified coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from capmem._arrays import Array, require_vectors
from capmem.feature_maps.base import FEATURE_MAPS, FeatureMap, quiet, rectify, require_integer, warn_overflow


@FEATURE_MAPS.register("dpfp")
@dataclass(frozen=True)
class Dpfp(FeatureMap):
    """phi(x) = [r * roll(r, 1), ..., r * roll(r, nu)] with r = relu([x, -x]); D = 2 nu d.

    Features are sparse, and never negative. Full rank needs nu <= d - 1: the shift d pairs each coordinate
    with its own negative (2d zero features), and the shifts i and 2d - i give the same products.

    Parameters
    ----------
    nu : int
        Number of shifts, at least 1.

    References
    ----------
    Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174.
    """

    nu: int = 1

    row_wise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.nu, "nu", 1)

    def width(self, key_dim: int) -> int:
        """Return D = 2 nu d."""
        return 2 * self.nu * key_dim

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, 2 nu d); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        both = xp.concat([x, -x], axis=-1)
        rectified = rectify(xp, both)
        with quiet():
            shifts = [rectified * xp.roll(rectified, i, axis=-1) for i in range(1, self.nu + 1)]
        features = xp.concat(shifts, axis=-1)
        warn_overflow(features, self)
        return features
