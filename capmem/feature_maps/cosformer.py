"""ReLU features that weigh pairs by the cosine of their distance in the sequence."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from array_api_compat import device

from capmem._arrays import Array, require_vectors, transpose
from capmem.feature_maps.base import FEATURE_MAPS, FeatureMap, rectify, require_integer
from capmem.schema import require


@FEATURE_MAPS.register("cosformer")
@dataclass(frozen=True)
class CosFormer(FeatureMap):
    """phi_i(x) = [r sin(pi i / (2M)), r cos(pi i / (2M))] with r = max(x, 0); D = 2d.

    i = position + 1 is the place in the sequence counted from 1, M the greatest length. The kernel
    relu(x_i) . relu(y_j) cos(pi (i - j) / (2M)) is never negative, since |i - j| < M.

    Parameters
    ----------
    max_length : int
        M, at least 1. A position that reaches it is refused. The weights depend on (i - j) / M: with M far
        above the number of pairs, the map is ReLU. The default lets experiments write, and calibrate on,
        4,096 keys.

    References
    ----------
    Qin, Sun, Deng, Li, Wei, Lv, Yan, Kong, Zhong 2022, arXiv 2202.08791.
    """

    positional: ClassVar[bool] = True
    row_wise: ClassVar[bool] = True

    max_length: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.max_length, "max_length", 1)

    def width(self, key_dim: int) -> int:
        """Return D = 2d."""
        return 2 * key_dim

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) at `positions` to features (..., N, 2d); see :meth:`FeatureMap.__call__`.

        Raises
        ------
        ValueError
            If a position is negative or reaches `max_length`, or their number is not N.
        """
        xp = require_vectors(x, "keys")
        angles = self._angles(x, positions, xp)
        rectified = rectify(xp, x)
        parts = [rectified * xp.astype(wave(angles), x.dtype) for wave in (xp.sin, xp.cos)]
        return xp.concat(parts, axis=-1)

    def kernel(self, x: Array, y: Array, x_positions: Array | None = None, y_positions: Array | None = None) -> Array:
        """Return relu(x_i) . relu(y_j) cos(pi (i - j) / (2M)) (..., N, M); positions default to 0, 1, ..."""
        return self(x, x_positions) @ transpose(self(y, y_positions))

    def _angles(self, x: Array, positions: Array | None, xp: Any) -> Array:
        """Return pi i / (2M) as (..., N, 1), in single precision at least: bfloat16 has no 257."""
        if positions is None:
            positions = xp.arange(x.shape[-2], device=device(x))
            self._check(x.shape[-2] - 1, 0)
        elif positions.shape[-1] != x.shape[-2]:
            raise ValueError(f"{x.shape[-2]} keys need as many positions, got {positions.shape[-1]}")
        elif x.shape[-2]:
            with contextlib.suppress(TypeError, RuntimeError):  # traced (jax.jit): there are no values to look at
                self._check(int(xp.max(positions)), int(xp.min(positions)))
        wide = x.dtype if xp.finfo(x.dtype).bits >= 32 else xp.float32
        return (xp.astype(positions, wide)[..., None] + 1) * (math.pi / (2 * self.max_length))

    def _check(self, last: int, first: int) -> None:
        allowed = f"at least 0 and below max_length = {self.max_length}"
        require(0 <= first and last < self.max_length, "positions", last if first >= 0 else first, allowed)
