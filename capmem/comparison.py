"""What came back against what was stored: the quantities that retrieval errors share, each computed once."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from capmem._arrays import Array, require_vectors, unit_rows


class Comparison:
    """Retrieved values (..., N, v) against their targets (..., N, v).

    Where all squares stay well within the range of the dtype they are summed as they are; otherwise rows are first
    divided by their largest entry, so that no square over- or underflows.

    Parameters
    ----------
    retrieved, target : array (..., N, v)
        What came back, and what was stored.

    Raises
    ------
    ValueError
        If they are not real floating arrays of one shape, with at least one pair.
    """

    def __init__(self, retrieved: Array, target: Array) -> None:
        self.xp: Any = require_vectors(retrieved, "retrieved")
        require_vectors(target, "target")
        if tuple(retrieved.shape) != tuple(target.shape) or 0 in retrieved.shape[-2:]:
            raise ValueError(
                "retrieved and target must have one shape (..., N, v) with at least one pair, "
                f"got {tuple(retrieved.shape)} and {tuple(target.shape)}"
            )
        self.retrieved, self.target = retrieved, target

    def relative_squared_error(self, per_pair: bool = False) -> Array:
        """Return sum |r - v|^2 / sum |v|^2; see :func:`capmem.metrics.relative_squared_error`."""
        retrieved = self.retrieved if self.plain else self.retrieved / self._target_unit
        return self._against_targets(self._row_power(retrieved - self._target), per_pair)

    def scale_optimal_error(self, per_pair: bool = False) -> Array:
        """Return min over a of sum |a r - v|^2 / sum |v|^2; see :func:`capmem.metrics.scale_optimal_error`."""
        return self._against_targets(self._noise, per_pair)

    def cosine_similarity(self, per_pair: bool = False) -> Array:
        """Return the mean of cos(r_i, v_i); see :func:`capmem.metrics.cosine_similarity`."""
        xp = self.xp
        if self.plain:
            cosine = self.overlap / xp.sqrt(self.power * self.target_power)
        else:
            inner = xp.sum(unit_rows(xp, self.retrieved)[0] * unit_rows(xp, self.target)[0], axis=-1)
            cosine = xp.where(xp.isfinite(inner), inner, xp.zeros_like(inner))
        return cosine if per_pair else xp.mean(cosine, axis=-1)

    def signal_to_noise(self, per_pair: bool = False) -> Array:
        """Return 1 / e - 1, e the scale-optimal error; see :func:`capmem.metrics.signal_to_noise`."""
        xp = self.xp
        # |v|^2 less the noise, 2 <a r, v> - |a r|^2, without cancellation
        if self.plain:
            explained = self._gain * (2 * self.overlap - self._gain * self.power)
        else:
            explained = xp.vecdot(self._best, 2 * self._target - self._best, axis=-1)
        total = xp.mean(self._noise, axis=-1, keepdims=True)
        exact = total == 0
        ratio = xp.where(
            exact, xp.full_like(explained, math.inf), explained / xp.where(exact, xp.ones_like(total), total)
        )
        ratio = xp.where(xp.isfinite(total), ratio, xp.zeros_like(ratio))
        return ratio if per_pair else xp.mean(ratio, axis=-1)

    @cached_property
    def plain(self) -> bool:
        """Whether all squares stay well within the range; false for rows without length, or when being traced."""
        info = self.xp.finfo(self.retrieved.dtype)
        least, most = info.smallest_normal / info.eps, info.max * info.eps
        try:
            return all(
                bool(self.xp.min(power) > least) and bool(self.xp.max(power) < most)
                for power in (self.power, self.target_power)
            )
        except (TypeError, RuntimeError):
            return False

    @cached_property
    def power(self) -> Array:
        """The squared norms (..., N) of what came back."""
        return self._row_power(self.retrieved)

    @cached_property
    def target_power(self) -> Array:
        """The squared norms (..., N) of what was stored."""
        return self._row_power(self.target)

    @cached_property
    def overlap(self) -> Array:
        """The inner products (..., N) of what came back with what was stored."""
        return self.xp.vecdot(self.retrieved, self.target, axis=-1)

    @cached_property
    def _gain(self) -> Array:
        """The best a (..., 1), where squares can be summed as they are."""
        xp = self.xp
        return xp.mean(self.overlap, axis=-1, keepdims=True) / xp.mean(self.power, axis=-1, keepdims=True)

    @cached_property
    def _target_unit(self) -> Array:
        return _unit_of(self.xp, self.target)

    @cached_property
    def _target(self) -> Array:
        """The targets in the unit that errors are computed in."""
        return self.target if self.plain else self.target / self._target_unit

    @cached_property
    def _best(self) -> Array:
        """a r for the a that brings the whole batch nearest to the targets, in their unit."""
        xp = self.xp
        if self.plain:
            return self._gain[..., None] * self.retrieved
        retrieved = self.retrieved / _unit_of(xp, self.retrieved)
        overlap = xp.mean(retrieved * self._target, axis=(-2, -1), keepdims=True)
        power = xp.mean(retrieved * retrieved, axis=(-2, -1), keepdims=True)
        return overlap / xp.where(power > 0, power, xp.ones_like(power)) * retrieved

    @cached_property
    def _noise(self) -> Array:
        return self._row_power(self._best - self._target)

    def _row_power(self, rows: Array) -> Array:
        return self.xp.vecdot(rows, rows, axis=-1)

    def _against_targets(self, error: Array, per_pair: bool) -> Array:
        """Divide squared errors (..., N) by the mean power of the targets; 0/0 is 0, anything not finite inf."""
        xp = self.xp
        power = xp.mean(self.target_power if self.plain else self._row_power(self._target), axis=-1)
        if per_pair:
            power = power[..., None]
        else:
            error = xp.mean(error, axis=-1)
        if self.plain:
            return error / power
        ratio = error / xp.where(power > 0, power, xp.ones_like(power))
        infinite = xp.full_like(ratio, math.inf)
        ratio = xp.where((power == 0) & (error > 0), infinite, ratio)
        return xp.where(xp.isfinite(ratio), ratio, infinite)


def _unit_of(xp: Any, rows: Array) -> Array:
    """Return the largest entry of each batch item (..., 1, 1): in this unit no square over- or underflows."""
    largest = xp.max(xp.abs(rows), axis=(-2, -1), keepdims=True)
    return xp.where(largest > 0, largest, xp.ones_like(largest))
