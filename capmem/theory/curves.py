"""Errors by age as sums of geometric terms: their values, their means over any run of ages, and the metrics."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capmem.theory.base import Floats, Source
from capmem.theory.case import Case, Numbers
from capmem.theory.measured import measured
from capmem.theory.trial_ratios import FORMULA, ReadMoments, trial_ratios

Ages = NDArray[np.int64]


class Term(NamedTuple):
    """weight x^m y^(N-1-m) at age m: `weight` (R,) for each component of a mixture over trials, x and y numbers."""

    weight: Floats | float
    x: float = 1.0
    y: float = 1.0


class AgeCurve(NamedTuple):
    """What a value is read with, by the age m of its pair: 0 for the newest, N - 1 for the oldest.

    Attributes
    ----------
    case : Case
        What was asked.
    gain : Term
        E y.v / E|v|^2, given what the keys of a trial share.
    own, crosstalk : tuple of Term
        The parts of E|y|^2 / E|v|^2 from the pair's own value, and from others.
    source : Source
        Where they come from.
    weights : array (R,)
        Of the mixture over trials.
    projection : bool
        The reading is a projection of the values, of rank g N: then e_opt = 1 - g, exactly.
    """

    case: Case
    gain: Term
    own: tuple[Term, ...]
    crosstalk: tuple[Term, ...]
    source: Source
    weights: Floats = np.ones(1)
    projection: bool = False

    def errors(self, ages: Ages) -> tuple[Floats, Floats]:
        """Return the relative squared error, and the one under the gain that is best for all ages in the mean (M,)."""
        gain, power = self._values((self.gain,), ages), self._values(self.own + self.crosstalk, ages)
        whole = self._read()
        best = np.divide(whole.gain, whole.power, out=np.zeros_like(whole.power), where=whole.power > 0)[:, None]
        raw = self.weights @ (power - 2 * gain + 1)
        return np.maximum(raw, 0), self.weights @ (best**2 * power - 2 * best * gain + 1)

    def mean_error(self, low: int, high: int) -> float:
        """Return the mean relative squared error over the ages low to high, both included."""
        gain, power = self._mean((self.gain,), low, high), self._mean(self.own + self.crosstalk, low, high)
        return max(float(self.weights @ (power - 2 * gain + 1)), 0.0)

    def numbers(self) -> Numbers:
        """Return the metrics of a read of all pairs."""
        N, v, c = self.case.num_pairs, self.case.value_dim, self.case.query_cosine
        optimal, odds = (float(self.weights @ x) for x in trial_ratios(self._read(), N, v, c))
        formula = f"{FORMULA}; {self.source.formula}"
        source = Source(formula, False, measured("rule_optimal", self.case))
        told = Source(formula, False, measured("rule_odds", self.case))
        if self.projection:
            gain = float(self._read().gain[0])
            optimal, odds, source = 1 - gain, gain / (1 - gain) if gain < 1 else math.inf, self.source
        numbers = {
            "relative_squared_error": (self.mean_error(0, N - 1), self.source),
            "scale_optimal_error": (optimal, source),
            "signal_to_noise": (odds, told),
        }
        return {name: number for name, number in numbers.items() if not math.isnan(number[0])}

    def _read(self) -> ReadMoments:
        last = self.case.num_pairs - 1
        gain, own, crosstalk = (self._mean(terms, 0, last) for terms in ((self.gain,), self.own, self.crosstalk))
        square = self._mean((Term(self.gain.weight**2, self.gain.x**2, self.gain.y**2),), 0, last)
        return ReadMoments(gain, own + crosstalk, own, np.maximum(own - square, 0))

    def _mean(self, terms: tuple[Term, ...], low: int, high: int) -> Floats:
        rest, count = self.case.num_pairs - 1 - high, high - low + 1
        sums = [t.weight * t.x**low * t.y**rest * _geometric_sum(t.x, t.y, count) for t in terms]
        return np.broadcast_to(np.asarray(sum(sums) / count, np.float64), self.weights.shape)

    def _values(self, terms: tuple[Term, ...], ages: Ages) -> Floats:
        places = (self.case.num_pairs - 1 - ages).astype(float)
        parts = [np.asarray(t.weight)[..., None] * (t.x ** ages.astype(float) * t.y**places) for t in terms]
        return np.broadcast_to(np.asarray(sum(parts)), (self.weights.size, ages.size))


def powers(ratio: float, count: int) -> float:
    """Return 1 + r + ... + r^(n-1), without cancellation where r is near 1."""
    if ratio == 1 or count == 0:
        return float(count)
    if ratio > 0:
        return math.expm1(count * math.log(ratio)) / (ratio - 1)
    return float((1 - ratio**count) / (1 - ratio))


def _geometric_sum(x: float, y: float, count: int) -> float:
    """Return the sum over m < n of x^m y^(n-1-m)."""
    small, large = sorted((x, y), key=abs)
    if large == 0:
        return float(count == 1)
    return float(large ** (count - 1)) * powers(small / large, count)
