"""Error by age: which pairs a rule has lost, the old or the new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from capmem import results
from capmem.figures import _axes, _grid, _palette, _words
from capmem.figures._curves import interference_curves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

BIN = ("age_bin", "age_low", "age_high")  # what tells a bin of age


def error_by_age(
    frame: pd.DataFrame,
    value: str = "relative_squared_error",
    line: str = "rule",
    facet: str | None = None,
    ordered: bool = False,
) -> _grid.Grid:
    """Draw the error of pairs against their age, a line for each level of `line`, a panel for each of `facet`.

    Parameters
    ----------
    frame : DataFrame
        A table by age: rows with num_pairs (one), age_low, age_high, trial, `value`, and maybe theory_<value>. Rows
        with a column `part` count where it is "age".
    value : str
        Metric.
    line, facet : str
        Columns.
    ordered : bool
        Whether the levels of `line` are steps of one quantity.

    Returns
    -------
    Grid
        The table holds means over trials with their intervals.
    """
    age = frame[frame["part"] == "age"] if "part" in frame else frame
    names = list(dict.fromkeys(age[line]))
    facets = [None] if facet is None else list(dict.fromkeys(age[facet]))
    by = [line, "num_pairs", "age_low", "age_high", *([facet] if facet else [])]
    theory = [c for c in (f"theory_{value}",) if c in age]
    table = results.aggregate(age[[*by, "trial", value, *theory]].dropna(subset=[value]), by, [value])
    table["age"] = (table["age_low"] + table["age_high"]) / 2
    styles = _palette.styles(names, ordered)
    figure, axes = _grid.plain_grid(5.8 if len(facets) < 2 else _grid.PAGE_WIDTH, 3.6, (1,) * len(facets))
    for ax, level in zip(axes[0], facets, strict=True):
        part = table if facet is None else table[table[facet] == level]
        _axes.lines(ax, part, "age", value, line, {n: styles[n] for n in names if n in set(part[line])})
        _axes.finish(ax, "age $m$ (pairs written after it)", "", str(level or ""))
        scale(ax, part, value)
    axes[0, 0].set_ylabel(_words.axis_name(value), fontsize=_grid.MEDIUM)
    closed = _axes.measured_and_theory() if _axes.has_theory(table, value) else []
    correlated = "by" in age and age["by"].iloc[0] == "correlation"
    lead = [_axes.line_handle("key correlation:", linestyle="none")] if correlated else []
    _grid.add_legend(figure, [*lead, *handles(names, styles), *closed])
    _grid.add_caption(figure, caption(table, f"After {age['num_pairs'].iloc[0]:g} pairs; newest at the left."))
    return _grid.Grid(figure, axes, table)


def age_curves(
    frame: pd.DataFrame,
    value: str = "scale_optimal_error",
    line: str | None = "num_pairs",
    facet: str | None = "feature_map",
    facet_row: str | None = None,
) -> _grid.Grid:
    """Draw a metric against age for a sweep with age bins, a line for each `line`, a panel for each `facet`.

    Parameters
    ----------
    frame : DataFrame
        The second table of a sweep, ``results.load(folder, by_age=True)``.
    value, line, facet, facet_row : str
        As in :func:`~capmem.figures.interference_curves`.

    Returns
    -------
    Grid
        The table holds means over trials, with intervals, at the middle of each bin of age; the newest pair is at 1.
    """
    results.require_columns(frame, list(BIN))
    middle = (frame["age_low"] + frame["age_high"]) / 2
    rows = frame.drop(columns=list(BIN)).assign(age=middle + 1)
    return interference_curves(rows, value, "age", line, facet, facet_row)


def handles(names: Sequence[object], styles: dict[object, dict[str, object]]) -> list[object]:
    """Return a legend entry for each line."""
    return [_axes.line_handle(readable(n), linewidth=0.9, markersize=4, **styles[n]) for n in names]


def readable(label: object) -> str:
    """Return a label as words: "gated delta, rate 0.99"."""
    return str(label).replace("_", " ").replace("=", " ")


def caption(table: pd.DataFrame, *first: str) -> list[str]:
    """Return the sentences under a figure of means."""
    points = f"Points: {_words.repeats(table['trials'])}"
    lows = [str(c) for c in table if str(c).endswith("_low") and c != "age_low"]
    banded = any(np.isfinite(results.numbers(table, low)).any() for low in lows)
    return [*first, f"{points}; band: 95% bootstrap interval of the mean." if banded else f"{points}."]


def scale(ax: Axes, table: pd.DataFrame, value: str) -> None:
    """Let a bounded metric run from 0 to 1, another one from 0, or along powers if it spans over two decades."""
    found = [results.numbers(table, c) for c in (value, f"theory_{value}") if c in table]
    known = np.concatenate(found)
    known = known[np.isfinite(known)]
    if value in _words.BOUNDED and known.size and known.max() <= 1.02:
        ax.set_ylim(-0.04, 1.04)
    elif _words.span(known) > 2:
        _axes.power_axis(ax, "y", known)
    else:
        ax.set_ylim(bottom=0)
