"""Rows by age: how well pairs are read, by how many others were written after them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from capmem import metrics
from capmem._arrays import Array, take_rows
from capmem.backends import as_numpy
from capmem.expected import predictions_by_age
from capmem.trial import Places, Read, Record

if TYPE_CHECKING:
    from capmem.experiment import Experiment

# Metrics that are means over pairs, given pair by pair. Errors are relative to the mean power of all targets that are
# read, and the scale-optimal one has the one gain of the whole read: so bins average to the main table's numbers.
PER_PAIR: dict[str, Callable[[Array, Array], Array]] = {
    "relative_squared_error": lambda r, v: metrics.relative_squared_error(r, v, per_pair=True),
    "scale_optimal_error": lambda r, v: metrics.scale_optimal_error(r, v, per_pair=True),
    "cosine_similarity": lambda r, v: metrics.cosine_similarity(r, v, per_pair=True),
}
TOP1 = "top1_accuracy"


class AgeBin(NamedTuple):
    """The pairs of age low to high, both included; the newest pair has age 0."""

    number: int
    low: int
    high: int


class AgeRows:
    """The rows by age of one trial, filled as it is read at its checkpoints.

    A pair written at place i of N has age m = N - 1 - i, and is in bin floor(m k / N) of k; where N < k some bins have
    no age, and no row. A row holds num_pairs, status, age_bin, age_low, age_high, num_scored, and those metrics of the
    experiment that are means over pairs, whose means over bins, weighted by num_scored, are the main table's numbers;
    nan where none of the bin's pairs is scored. ``theory_relative_squared_error`` is the mean over all ages of the bin.

    Parameters
    ----------
    experiment : Experiment
        Its `age_bins` is k.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.rows: list[Record] = []

    def __call__(self, read: Read, places: Places, num_pairs: int) -> None:
        """Add the rows of one read, whose pairs were written at `places` (M,) of `num_pairs`."""
        bins = age_bins(num_pairs, self.experiment.age_bins)
        expected = predictions_by_age(self.experiment, num_pairs, [(b.low, b.high) for b in bins])
        measured = _measured(read, num_pairs - 1 - places, bins, self.experiment.metrics)
        for each, theory, found in zip(bins, expected, measured, strict=True):
            ages = {"age_bin": each.number, "age_low": each.low, "age_high": each.high}
            self.rows.append({"num_pairs": num_pairs, "status": "ok"} | ages | found | theory)


def age_bins(num_pairs: int, count: int) -> list[AgeBin]:
    """Return the bins of equal width that N ages 0 to N - 1 are cut into, those that have an age."""
    numbers = range(count) if count <= num_pairs else [m * count // num_pairs for m in range(num_pairs)]
    return [AgeBin(j, -(-j * num_pairs // count), -(-(j + 1) * num_pairs // count) - 1) for j in numbers]


def _measured(read: Read, ages: Places, bins: list[AgeBin], names: tuple[str, ...]) -> list[Record]:
    """Return num_scored and the metrics of each bin, for pairs of these ages (M,)."""
    wanted = [name for name in PER_PAIR if name in names]
    pairs = {name: as_numpy(PER_PAIR[name](read.retrieved, read.targets)).astype(np.float64) for name in wanted}
    rows = []
    for each in bins:
        chosen = np.flatnonzero((ages >= each.low) & (ages <= each.high))
        record: dict[str, Any] = {"num_scored": int(chosen.size)}
        record |= {name: float(pairs[name][chosen].mean()) if chosen.size else math.nan for name in wanted}
        if TOP1 in names:
            record[TOP1] = _top1(read, chosen)
        rows.append(record)
    return rows


def _top1(read: Read, chosen: Places) -> float:
    if not chosen.size:
        return math.nan
    retrieved, targets = take_rows(read.retrieved, chosen), take_rows(read.places, chosen)
    return float(metrics.top1_accuracy(retrieved, read.codebook, targets))
