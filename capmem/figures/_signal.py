"""Signal and crosstalk of what is read, and a metric against pairs: a panel for features as they are and centred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results
from capmem.figures import _axes, _grid, _palette, _words
from capmem.figures._ages import caption, handles

if TYPE_CHECKING:
    import pandas as pd

PARTS = {"signal": "signal power\n(1: a pair alone)", "crosstalk": "crosstalk power\n(1: a pair alone)"}


def measured_by_pairs(frame: pd.DataFrame, value: str) -> _grid.Grid:
    """Draw a metric against N, a line for each level, a panel for each centring.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.interference`; rows of part "curve" count.
    value : str
        Metric.

    Returns
    -------
    Grid
        The table holds means over trials, with intervals.
    """
    curve = frame[frame["part"] == "curve"]
    table, styles = _means(curve, [value]), _styles(curve)
    facets = list(dict.fromkeys(curve["centring"]))
    figure, axes = _grid.plain_grid(_grid.PAGE_WIDTH, 3.6, (1,) * len(facets))
    for ax, facet in zip(axes[0], facets, strict=True):
        _axes.lines(ax, table[table["centring"] == facet], "num_pairs", value, "level", styles)
        _axes.power_axis(ax, "x", table["num_pairs"])
        ax.set_ylim(-0.04, 1.04)
        _axes.finish(ax, _words.axis_name("num_pairs"), "", facet)
    axes[0, 0].set_ylabel(_words.axis_name(value), fontsize=_grid.MEDIUM)
    _grid.add_legend(figure, _legend(curve, styles, _axes.has_theory(table, value)))
    _grid.add_caption(figure, caption(table, _told(curve)))
    return _grid.Grid(figure, axes, table)


def signal_and_crosstalk(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the powers of signal and crosstalk against N, a line for each level.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.interference`; rows of part "signal" count.

    Returns
    -------
    Grid
        A row of panels a centring; the table holds means over trials, with intervals.
    """
    rows = frame[frame["part"] == "signal"]
    table, styles = _means(rows, list(PARTS)), _styles(rows)
    table = visible(table, "crosstalk")
    facets = list(dict.fromkeys(rows["centring"]))
    figure, axes = _axes.panels(len(facets), len(PARTS), height=2.1 * len(facets) + 1.5)
    for row, facet in zip(axes, facets, strict=True):
        part = table[table["centring"] == facet]
        for ax, (value, name) in zip(row, PARTS.items(), strict=True):
            _axes.lines(ax, part, "num_pairs", value, "level", styles)
            _axes.finish(ax, "", name, facet)
    for ax in axes[-1]:
        ax.set_xlabel(_words.axis_name("num_pairs"), fontsize=_grid.MEDIUM)
        _axes.power_axis(ax, "x", table["num_pairs"])
    for ax in axes[:, 1]:
        _axes.fitted_axis(ax, results.numbers(table, "crosstalk"), most_ticks=5)
    for ax in axes[:, 0]:
        ends = np.concatenate([results.numbers(table, c) for c in ("signal", "signal_high")])
        ax.set_ylim(0, 1.05 * np.nanmax(ends))
    _grid.add_legend(figure, _legend(rows, styles, _axes.has_theory(table, "signal")))
    sums = f"Signal and crosstalk add up to what is read, to {rows['closure'].max():.0e} of the largest value."
    sums += " Crosstalk of zero is not on its axis." if np.isnan(results.numbers(table, "crosstalk")).any() else ""
    _grid.add_caption(figure, caption(table, _told(rows), sums))
    return _grid.Grid(figure, axes, table)


def visible(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the table without numbers of `value` that are zero but for rounding: a logarithmic axis has no place."""
    ends = [c for c in (value, f"theory_{value}", f"{value}_low", f"{value}_high") if c in table]
    shown = {c: results.numbers(table, c) for c in ends}
    return table.assign(**{c: np.where(numbers > 1e-6, numbers, np.nan) for c, numbers in shown.items()})


def _means(frame: pd.DataFrame, values: list[str]) -> pd.DataFrame:
    by, tables = ["centring", "level", "num_pairs"], []
    for value in values:
        columns = [*by, "trial", value, *(c for c in (f"theory_{value}",) if c in frame)]
        tables.append(results.aggregate(frame[columns], by, [value]))
    joined = tables[0]
    for table in tables[1:]:
        joined = joined.merge(table.drop(columns="trials"), on=by)
    return joined


def _styles(frame: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    return _palette.styles(list(dict.fromkeys(frame["level"])), ordered=frame["by"].iloc[0] == "correlation")


def _legend(frame: pd.DataFrame, styles: dict[Any, dict[str, Any]], theory: bool) -> list[Any]:
    lead = _axes.line_handle("key correlation:", linestyle="none")
    named = [] if frame["by"].iloc[0] != "correlation" else [lead]
    return [*named, *handles(list(styles), styles), *(_axes.measured_and_theory() if theory else [])]


def _told(frame: pd.DataFrame) -> str:
    return f"Unit keys, $d$ = {frame['key_dim'].iloc[0]}, exact cues; {frame['held'].iloc[0]}."
