"""Capacity against dimension as a power law, with the interval of its exponent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class PowerLaw(NamedTuple):
    """N* = factor * d^exponent, fitted by least squares of logarithms.

    Attributes
    ----------
    factor, exponent : float
        a and b; nan from fewer than two points.
    low, high : float
        The interval of b, from the residuals with Student's t of points - 2 degrees of freedom: it holds the
        noise of the points as well as how far they are from a power law; nan from fewer than three points.
    points : int
        How many points were fitted.
    """

    factor: float
    exponent: float
    low: float
    high: float
    points: int

    def at(self, dims: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the law at these dimensions."""
        return np.asarray(self.factor * np.asarray(dims, dtype=np.float64) ** self.exponent)

    def __str__(self) -> str:
        if math.isnan(self.exponent):
            return "no law: fewer than two capacities"
        return f"N* = {self.factor:.3g} d^{self.exponent_text}{self.interval_text}"

    @property
    def exponent_text(self) -> str:
        """Return the exponent to two decimals."""
        return _rounded(self.exponent)

    @property
    def interval_text(self) -> str:
        """Return the interval of the exponent as text: " (1.95 to 2.05)", or nothing."""
        return "" if math.isnan(self.low) else f" ({_rounded(self.low)} to {_rounded(self.high)})"


def power_law(
    dims: Sequence[float] | np.ndarray[Any, Any],
    pairs: Sequence[float] | np.ndarray[Any, Any],
    confidence: float = 0.95,
) -> PowerLaw:
    """Fit N* = a d^b to capacities at several dimensions; those that are not finite are left out.

    Raises
    ------
    ValueError
        For lists of unequal length, or a dimension or capacity that is not positive.
    """
    from scipy.special import stdtrit

    x, y = np.asarray(dims, dtype=np.float64), np.asarray(pairs, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"dims and pairs must be lists of one length, got shapes {x.shape} and {y.shape}")
    known = np.isfinite(y)
    if (x <= 0).any() or (y[known] <= 0).any():
        raise ValueError("dims and pairs must be positive")
    x, y = np.log(x[known]), np.log(y[known])
    if np.unique(x).size < 2:
        return PowerLaw(math.nan, math.nan, math.nan, math.nan, int(x.size))
    spread = float(((x - x.mean()) ** 2).sum())
    exponent = float(((x - x.mean()) * y).sum() / spread)
    offset = float(y.mean() - exponent * x.mean())
    half = math.nan
    if (free := x.size - 2) > 0:
        error = math.sqrt(float(((y - offset - exponent * x) ** 2).sum()) / free / spread)
        half = float(stdtrit(free, (1 + confidence) / 2)) * error
    return PowerLaw(math.exp(offset), exponent, exponent - half, exponent + half, int(x.size))


def _rounded(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")
