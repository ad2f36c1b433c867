"""What counts as held, and what a capacity N* is told by: a number, an interval, and a flag."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from capmem import results
from capmem.schema import require

Method = Literal["table", "theory", "simulation"]

DIRECTIONS = {
    "relative_squared_error": "<=",
    "scale_optimal_error": "<=",
    "cosine_similarity": ">=",
    "signal_to_noise": ">=",
    "top1_accuracy": ">=",
}


RANGES = {
    "relative_squared_error": (0, math.inf, "a number of at least 0"),
    "scale_optimal_error": (0, 1, "a number from 0 to 1"),
    "cosine_similarity": (-1, 1, "a number from -1 to 1"),
    "signal_to_noise": (0, math.inf, "a number of at least 0"),
    "top1_accuracy": (0, 1, "a number from 0 to 1"),
}


@dataclass(frozen=True)
class Criterion:
    """What counts as held: a metric on the good side of a threshold (errors below, the others above)."""

    metric: str = "scale_optimal_error"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.metric not in DIRECTIONS:
            raise ValueError(f"metric must be one of {', '.join(DIRECTIONS)}, got {self.metric!r}")
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold}")
        low, high, told = RANGES[self.metric]
        require(low <= self.threshold <= high, "threshold", self.threshold, f"{told} for {self.metric}")

    def met(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return where the criterion holds; it does not hold where a value is nan."""
        return values <= self.threshold if DIRECTIONS[self.metric] == "<=" else values >= self.threshold

    def __str__(self) -> str:
        return f"{results.METRICS[self.metric]} {DIRECTIONS[self.metric]} {self.threshold:g}"


HALF = Criterion()  # half of the power of the values is lost


@dataclass(frozen=True)
class CapacityEstimate:
    """Capacity by one criterion.

    Parameters
    ----------
    pairs : float
        N*, real-valued; nan where the search (or the grid of a table) does not bracket it.
    low, high : float
        The bootstrap interval (nan by theory and from one trial; 0 or inf where an end leaves the grid). Where N*
        is not bracketed: the end of the grid that bounds it, the other one nan.
    bracketed : bool
        Whether the criterion held at one grid point and failed at a later one.
    criterion : Criterion
        What counts as held.
    method : {"table", "theory", "simulation"}
        Where the curve comes from.
    source : str
        By theory: the formula and its known error. By simulation: what competed in a top-1 criterion, where that is
        not all stored values.
    trials : int
        Repetitions behind the numbers; 0 by theory.
    narrow : bool
        Whether the interval is as narrow as was asked.
    """

    pairs: float
    low: float
    high: float
    bracketed: bool
    criterion: Criterion = HALF
    method: Method = "table"
    source: str = ""
    trials: int = 0
    narrow: bool = True

    @property
    def bound(self) -> str:
        """Return "" for a bracketed N*, else "at least" (`low`) or "below" (`high`), or "no data"."""
        if self.bracketed:
            return ""
        if math.isfinite(self.low):
            return "at least"
        return "below" if math.isfinite(self.high) else "no data"

    def brief(self) -> str:
        """Return N* or its bound in a few characters, without the interval."""
        if self.bound == "at least":
            return f">= {_short(self.low)}"
        if self.bound == "below":
            return f"< {_short(self.high)}"
        return self.bound or _short(self.pairs)

    def __str__(self) -> str:
        if self.bound or math.isnan(self.low) or math.isnan(self.high):
            return self.brief()
        if math.isinf(self.high):
            return f"{self.brief()} (>= {_short(self.low)})"
        if self.low == 0:
            return f"{self.brief()} (<= {_short(self.high)})"
        return f"{self.brief()} ({_short(self.low)}-{_short(self.high)})"


def _short(value: float) -> str:
    return f"{value:.0f}" if round(value, 1) >= 10 else f"{value:.1f}".removesuffix(".0")
