"""Intervals from random halves: a statistic of half the rows, drawn without replacement, spreads as that of all does.

For a mean of n exchangeable rows, the mean of n / 2 of them varies around it with variance (1 - 1/2) s^2 / (n / 2) =
s^2 / n, which is that of the mean itself (the delete-half jackknife; Shao, Wu 1989, Ann. Statist. 17:1176).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from capmem.heads_analysis.arrays import Floats
from capmem.trial import SUBSET_STREAM

Step = Callable[[Floats], Any]

HALVES = 32
NORMAL = 1.96  # standard errors each way: 95%


class Interval(NamedTuple):
    """A number with its 95% interval."""

    value: float
    low: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """Return the three as columns: name, name_low, name_high."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def halves(count: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return HALVES random halves of `count` rows as indices (HALVES, count // 2)."""
    rng = np.random.default_rng([seed, 0, SUBSET_STREAM])
    return np.stack([np.sort(rng.permutation(count)[: count // 2]) for _ in range(HALVES)])


def about(value: float, replicates: Floats, positive: bool = True, extra: float = 0.0) -> Interval:
    """Return the interval of a value from replicates on halves; of a positive one, on the log scale.

    Replicates give the spread alone: what depends on the number of rows (a rank, say) is smaller in a half.
    `extra` is a variance on that scale that comes on top.
    """
    replicates = np.asarray(replicates, dtype=np.float64)
    usable = replicates[np.isfinite(replicates) & ((replicates > 0) | (not positive))]
    if not np.isfinite(value) or (positive and value <= 0) or len(usable) < 2:
        return Interval(value, float("nan"), float("nan"))
    spread = float(np.log(usable).std(ddof=1) if positive else usable.std(ddof=1))
    reach = NORMAL * (spread**2 + extra) ** 0.5
    if positive:
        return Interval(value, value * float(np.exp(-reach)), value * float(np.exp(reach)))
    return Interval(value, value - reach, value + reach)


def of_rows(statistic: Step, step: Step, rows: Floats, seed: int, positive: bool = True) -> Interval:
    """Return statistic(step(rows)) of rows (N, D) with its interval; both take (..., N, D)."""
    return about(float(statistic(step(rows))), statistic(step(rows[halves(len(rows), seed)])), positive)
