"""Capacity from curves that are there: where the mean over trials leaves the criterion, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results
from capmem.capacity.criterion import HALF, CapacityEstimate, Criterion
from capmem.intervals import check_resampling, resampling, tail_of

if TYPE_CHECKING:
    import pandas as pd


def from_table(
    frame: pd.DataFrame,
    criterion: Criterion = HALF,
    by: Sequence[str] | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate N* for each group of the tidy table.

    The metric is averaged over trials at each `num_pairs`; N* is where this curve first leaves the criterion,
    interpolated in log `num_pairs`. The interval resamples whole trials, since one trial's checkpoints share
    their draws. A checkpoint without any number fails the criterion.

    Parameters
    ----------
    frame : DataFrame
        The tidy table, a row per (sweep point, num_pairs, trial).
    criterion : Criterion
        What counts as held.
    by : sequence of str, optional
        Columns that define a group. Default: every setting that varies, but for num_pairs and the seed.
    confidence, resamples, seed
        Of the bootstrap interval.

    Returns
    -------
    DataFrame
        One row a group: `by`, `pairs`, `low`, `high`, `bracketed`, `bound`, `criterion`, `theory_pairs`
        (nan where there is no prediction or the grid does not bracket it), `trials`, `finite` and `nonfinite`
        (values that count, and values left out), and `value_dim` where the table has it.

    Raises
    ------
    ValueError
        If a column is missing, or a group holds rows of different settings.
    """
    results.require_columns(frame, [*(by or ()), "num_pairs", criterion.metric])
    check_resampling(confidence, resamples)
    keys = [c for c in results.varying(frame) if c not in ("num_pairs", "seed")] if by is None else list(by)
    if "num_pairs" in keys:
        raise ValueError("capacity is a crossing along num_pairs, so `by` cannot contain num_pairs")
    if hidden := results.mixed(results.measured(frame), [*keys, "num_pairs"]):
        raise ValueError(f"groups by {keys} mix different {', '.join(hidden)}: add them to `by`, or select one")
    codes, table = results.group(frame, keys)
    columns = _columns(frame, criterion)
    rows = []
    for g in range(len(table)):
        ok = columns[:, (codes == g) & (columns[0] >= 0)]
        rows.append(_row(ok, criterion, confidence, resamples, seed))
    for name in rows[0]:
        table[name] = [row[name] for row in rows]
    if "value_dim" in frame.columns and "value_dim" not in keys:
        table["value_dim"] = frame.groupby(codes)["value_dim"].first().to_numpy()
    return table


def from_curves(
    num_pairs: Sequence[float] | np.ndarray[Any, Any],
    values: np.ndarray[Any, Any],
    criterion: Criterion = HALF,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> CapacityEstimate:
    """Estimate N* from `values` (trials, checkpoints) of the criterion's metric at ascending `num_pairs`."""
    grid = np.asarray(num_pairs, dtype=np.float64)
    curves = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if curves.shape[1] != grid.size or (np.diff(grid) <= 0).any() or (grid < 1).any():
        raise ValueError(f"num_pairs must ascend from at least 1, one for each of {curves.shape[1]} columns")
    if grid.size == 0 or curves.shape[0] == 0:
        return CapacityEstimate(math.nan, math.nan, math.nan, False, criterion)
    mean = _mean_curves(curves, np.ones((1, len(curves))))
    if np.isnan(mean).all():
        return CapacityEstimate(math.nan, math.nan, math.nan, False, criterion)
    pairs = float(crossing(grid, mean, criterion)[0])
    if pairs == 0:
        return CapacityEstimate(math.nan, math.nan, float(grid[0]), False, criterion)
    if math.isinf(pairs):
        return CapacityEstimate(math.nan, float(grid[-1]), math.nan, False, criterion)
    low = high = math.nan
    if len(curves) > 1:
        indices = resampling(len(curves), resamples, seed)
        weights = (indices[:, :, None] == np.arange(len(curves))).sum(axis=1)
        resampled = _mean_curves(curves, weights)
        # A resample without any of the trials that were run at a checkpoint says nothing about it.
        spread = np.sort(crossing(grid, np.where(np.isnan(resampled), mean, resampled), criterion))
        tail = tail_of(confidence, len(curves)) * (resamples - 1)
        # Order statistics, not interpolated: the ends can be infinite.
        low, high = float(spread[math.floor(tail)]), float(spread[math.ceil(resamples - 1 - tail)])
    return CapacityEstimate(pairs, low, high, True, criterion)


def crossing(
    num_pairs: np.ndarray[Any, Any], curves: np.ndarray[Any, Any], criterion: Criterion
) -> np.ndarray[Any, Any]:
    """Return where each of `curves` (..., checkpoints) first leaves the criterion.

    0 where the first checkpoint fails already, inf where none does. Between the last checkpoint that holds and
    the first that fails, the metric is taken as linear in log num_pairs; the former is the answer if the metric
    is not finite at the latter.
    """
    failed = ~criterion.met(curves)
    stop = np.argmax(failed, axis=-1)
    start = np.maximum(stop - 1, 0)
    before, after = (np.take_along_axis(curves, i[..., None], -1)[..., 0] for i in (start, stop))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (criterion.threshold - before) / (after - before)
    share = np.where(np.isfinite(share), share, 0.0)
    log = np.log(num_pairs)
    inside = np.exp(log[start] + share * (log[stop] - log[start]))
    return np.where(stop > 0, inside, np.where(failed[..., 0], 0.0, np.inf))


def _columns(frame: pd.DataFrame, criterion: Criterion) -> np.ndarray[Any, Any]:
    """Return trial (-1 in rows that did not go well), num_pairs, metric and prediction as rows of one array."""
    trial, _ = results.group(frame, [c for c in ("seed", "trial") if c in frame.columns])
    if "status" in frame.columns:
        trial = np.where(frame["status"] == "ok", trial, -1)
    predicted = f"theory_{criterion.metric}"
    theory = results.numbers(frame, predicted) if predicted in frame.columns else np.full(len(frame), np.nan)
    return np.stack([trial, results.numbers(frame, "num_pairs"), results.numbers(frame, criterion.metric), theory])


def _row(
    columns: np.ndarray[Any, Any], criterion: Criterion, confidence: float, resamples: int, seed: int
) -> dict[str, Any]:
    grid, values, predictions = _curves(columns)
    found = from_curves(grid, values, criterion, confidence, resamples, seed)
    theory = _mean_curves(predictions, np.ones((1, len(predictions))))[0]
    known = np.isfinite(theory)
    return {
        "pairs": found.pairs,
        "low": found.low,
        "high": found.high,
        "bracketed": found.bracketed,
        "bound": found.bound,
        "criterion": str(criterion),
        "theory_pairs": from_curves(grid[known], theory[known][None], criterion).pairs,
        "trials": len(values),
        "finite": int(np.isfinite(columns[2]).sum()),
        "nonfinite": int((~np.isfinite(columns[2])).sum()),
    }


def _curves(columns: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the checkpoints, and metric and prediction as (trials, checkpoints), nan where nothing was run."""
    trials, trial = np.unique(columns[0], return_inverse=True)
    grid, place = np.unique(columns[1], return_inverse=True)
    if len(set(zip(trial.tolist(), place.tolist(), strict=True))) < trial.size:
        raise ValueError("several rows of one group share seed, trial and num_pairs")
    curves = np.full((2, trials.size, grid.size), np.nan)
    curves[:, trial, place] = columns[2:]
    return [grid, *curves]


def _mean_curves(values: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return weighted means over the finite entries of `values` (trials, checkpoints), a row a weighting."""
    finite = np.isfinite(values)
    count = weights @ finite
    total = weights @ np.where(finite, values, 0.0)
    # With no finite value, +inf stays: as an error it fails, as a signal-to-noise ratio it holds.
    none = np.where(weights @ np.isposinf(values) > 0, np.inf, np.nan)
    return np.where(count > 0, total / np.maximum(count, 1), none)
