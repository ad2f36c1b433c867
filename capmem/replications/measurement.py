"""What a replication measures, and how numbers with an interval over seeds are read out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capmem import intervals

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], float]

RESAMPLES = 1000
NO_TRIAL = -1  # the trial of what nobody drew: published points, closed forms


class Measurement(NamedTuple):
    """One number.

    Attributes
    ----------
    part, line : str
        What was measured, and of what: a panel and a line of the figure.
    x : float
        Where along the horizontal axis.
    trial : int
        Repetition; `NO_TRIAL` for what is quoted or calculated.
    value : float
        The number.
    """

    part: str
    line: str
    x: float
    trial: int
    value: float


class Estimate(NamedTuple):
    """A number with its 95% interval over trials (nan where one trial is all there is)."""

    value: float
    low: float
    high: float


def quoted(part: str, line: str, points: Iterable[tuple[float, float]]) -> Iterator[Measurement]:
    """Yield points that are published or follow from a formula."""
    for x, value in points:
        yield Measurement(part, line, float(x), NO_TRIAL, float(value))


def exact(value: float) -> Estimate:
    """Return a number that no draw enters."""
    return Estimate(value, value, value)


def curves(table: pd.DataFrame, part: str, line: str) -> tuple[Floats, Floats]:
    """Return the places (X,) and the values (trials, X) of one line.

    Raises
    ------
    KeyError
        If the table has no such line, or a trial lacks a place.
    """
    rows = table[(table["part"] == part) & (table["line"] == line)]
    wide = rows.pivot(index="trial", columns="x", values="value")
    if wide.empty or wide.isna().to_numpy().any():
        raise KeyError(f"{part}: {line} is not in the table, or not whole")
    return wide.columns.to_numpy(dtype=float), wide.to_numpy(dtype=float)


def estimate(samples: Floats, statistic: Statistic = lambda means: float(means.mean())) -> Estimate:
    """Return statistic(mean over trials) of values (trials, X), with a bootstrap interval over whole trials."""
    value, trials = statistic(samples.mean(axis=0)), len(samples)
    if trials == 1:
        return Estimate(value, math.nan, math.nan)
    indices = intervals.resampling(trials, RESAMPLES, seed=0)
    shares = (indices[:, :, None] == np.arange(trials)).mean(axis=1)  # of each trial in each resample
    spread = [statistic(means) for means in shares @ samples]
    tail = intervals.tail_of(0.95, trials)
    low, high = np.quantile(spread, [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


def measured(
    table: pd.DataFrame,
    part: str,
    line: str,
    at: float | Iterable[float] | None = None,
    statistic: Callable[[Floats, Floats], float] = lambda x, means: float(means.mean()),
) -> Estimate:
    """Return statistic(x, means) of a line, by default the mean of its values, at the places `at` (None: all)."""
    x, samples = curves(table, part, line)
    if at is not None:
        kept = np.isin(x, np.atleast_1d(np.asarray(list(at) if isinstance(at, Iterable) else at, dtype=float)))
        if not kept.any():
            raise KeyError(f"{part}: {line} has no value at {at}")
        x, samples = x[kept], samples[:, kept]
    return estimate(samples, lambda means: statistic(x, means))


def slope(x: Floats, means: Floats) -> float:
    """Return the slope of a straight line through log means over log x."""
    return float(np.polyfit(np.log(x), np.log(means), 1)[0])


def with_quoted(frame: pd.DataFrame, more: Iterable[Measurement]) -> pd.DataFrame:
    """Return a table of measurements with others added."""
    import pandas as pd

    added = as_frame(more)
    return pd.concat([frame, added], ignore_index=True) if len(added) else frame


def as_frame(rows: Iterable[Measurement]) -> pd.DataFrame:
    """Return measurements as a table."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(Measurement._fields))
