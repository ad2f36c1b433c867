"""What a sweep's table says: capacities, agreement with theory, and what is not to be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from capmem import capacity, results
from capmem.capacity import CapacityEstimate, Criterion
from capmem.report.section import Listing
from capmem.sweeps.present import axes_of
from capmem.sweeps.present import doubts as doubted_numbers
from capmem.sweeps.status import status

if TYPE_CHECKING:
    import pandas as pd

HEADS = ["metric", "with a closed form", "deviation", "in standard errors", "measured", "closed form", "where"]
ENOUGH = 6  # trials below which no resampling covers what it says


class Told(NamedTuple):
    """Findings and doubts as sentences, and the table that they are of."""

    findings: list[str]
    doubts: list[str]
    listing: Listing | None


def overview(frame: pd.DataFrame) -> list[str]:
    """Return what was measured, in a sentence."""
    counts = frame["status"].value_counts()
    points, pairs = frame["point"].nunique(), frame["num_pairs"]
    told = f"{len(frame)} measurements of {_count(points, 'point')}, with {_range(pairs)} stored pairs and "
    told += _count(frame["trial"].nunique(), "trial")
    rest = [f"{counts[name]} {name}" for name in ("failed", "skipped") if counts.get(name, 0)]
    return [f"{told}{'; ' if rest else ''}{', '.join(rest)}."]


def capacities(frame: pd.DataFrame, criterion: Criterion) -> Told:
    """Return N* of every combination of the axes, with the best and the worst in words.

    Parameters
    ----------
    frame : DataFrame
        Rows that went well, with named choices.
    criterion : Criterion
        What counts as held.
    """
    if frame["num_pairs"].nunique() < 2 or criterion.metric not in frame:
        return Told([], [], None)
    axes = axes_of(frame)
    found = capacity.from_table(frame, criterion, axes)
    held = [CapacityEstimate(r["pairs"], r["low"], r["high"], bool(r["bracketed"])) for _, r in found.iterrows()]
    names = [_name(row, axes) for _, row in found.iterrows()]
    rows = [[name, str(each), _number(theory), int(trials)] for name, each, theory, trials in
            zip(names, held, found["theory_pairs"], found["trials"], strict=True)]  # fmt: skip
    listing = Listing(f"Pairs held, N*: {criterion}", ["", "N* (95% interval)", "closed form", "trials"], rows)
    open_ended = [each for each in held if not each.bracketed]
    doubts = [f"{len(open_ended)} of {len(held)} capacities lie outside the grid of num_pairs: only a bound is told."]
    return Told([_ends(names, held, criterion)], doubts if open_ended else [], listing)


def _ends(names: list[str], held: list[CapacityEstimate], criterion: Criterion) -> str:
    sizes = [_size(each) for each in held]
    if len(held) == 1:
        return f"Pairs held by {criterion}: {_told(held[0])}."
    most, least = _at(max(sizes), sizes, names, held), _at(min(sizes), sizes, names, held)
    return (
        f"Pairs held by {criterion}: the most by {most}; the fewest by {least} (95% bootstrap intervals over trials)."
    )


def _at(size: float, sizes: list[float], names: list[str], held: list[CapacityEstimate]) -> str:
    places = [i for i, each in enumerate(sizes) if each == size]
    others = f" and {len(places) - 1} other{'s' if len(places) > 2 else ''}" if len(places) > 1 else ""
    return f"{names[places[0]]}{others}, {_told(held[places[0]])}"


def _told(each: CapacityEstimate) -> str:
    return f"N* {each}" if each.bound else f"N* = {each}"


def _size(each: CapacityEstimate) -> float:
    if each.bracketed:
        return each.pairs
    return each.low if each.bound == "at least" else 0.0


def agreement(frame: pd.DataFrame) -> Told:
    """Return for each metric how far the means are from their closed forms, at most."""
    axes = [*axes_of(frame), "num_pairs"]
    found = {name: _deviation(frame, axes, metric) for metric, name in results.METRICS.items()}
    rows = [[name, *row] for name, row in found.items() if row]
    if not rows:
        return Told(["No closed form covers these settings, so nothing here is checked against theory."], [], None)
    first = found.get("scale-optimal error") or rows[0][1:]
    name = "scale-optimal error" if found.get("scale-optimal error") else rows[0][0]
    spread = f", {first[2]} standard errors of that mean" if first[2] != "-" else ""
    told = (
        f"{first[0]} means of the {name} have a closed form; the largest deviation is {first[1]}{spread}: measured "
        f"{first[3]}, closed form {first[4]}, at {first[5]}."
    )
    return Told([told], [], Listing("Agreement with theory: where the means deviate most", HEADS, rows))


def _deviation(frame: pd.DataFrame, axes: list[str], metric: str) -> list[str]:
    """Return the row of one metric: means with a closed form, largest deviation, in errors, measured, theory, where."""
    theory = f"theory_{metric}"
    if metric not in frame or theory not in frame:
        return []
    means = results.aggregate(frame, axes, [metric])
    gaps = np.abs(results.numbers(means, metric) - results.numbers(means, theory))
    known = np.isfinite(gaps)
    if not known.any():
        return []
    place = means.iloc[int(np.nanargmax(np.where(known, gaps, np.nan)))]
    gap, error = abs(place[metric] - place[theory]), place[f"{metric}_se"]
    errors = f"{gap / error:.1f}" if error > 0 else "-"
    return [f"{known.sum()} of {len(means)}", _number(gap), errors, _number(place[metric]), _number(place[theory]),
            _name(place, axes)]  # fmt: skip


def doubts(folder: Path, frame: pd.DataFrame) -> Iterator[str]:
    """Yield what is not to be trusted, and what is missing."""
    state = status(folder)
    ok = frame[frame["status"] == "ok"]
    yield from (line.removeprefix("Not to be trusted: ") for line in doubted_numbers(ok))
    if state.left:
        yield f"{state.left} measurements that were asked for are not there{' yet' if state.running else ''}."
    yield from (f"A measurement failed: {error}" for error in state.errors)
    yield from (f"A file is damaged: {line}" for line in state.damaged)
    skipped = frame[frame["status"] == "skipped"]
    if len(skipped):
        yield f"{len(skipped)} measurements were skipped: {skipped['reason'].iloc[0]}."
    trials = ok.groupby(["point", "num_pairs"])["trial"].nunique()
    if len(trials) and trials.min() < ENOUGH:
        yield f"Some means are of {_count(trials.min(), 'trial')}: below {ENOUGH}, intervals are too narrow."


def _name(row: pd.Series[Any], axes: list[str]) -> str:
    """Return "feature_map relu, key_dim 16" for one row."""
    return ", ".join(f"{axis} {_number(row[axis])}" for axis in axes)


def _number(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value:.4g}"
    return "none" if value is None else str(value)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _range(values: pd.Series[Any]) -> str:
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low} to {high}"
