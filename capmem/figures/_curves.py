"""Interference curves: how a metric changes as pairs are added, measured and predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from capmem import results
from capmem.figures import _axes, _grid, _palette, _panels, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_PLACES = 12  # along x that have a tick each


# fmt: off
@overload
def interference_curves(frame: pd.DataFrame, value: str = ..., x: str = ..., line: str | None = ...,
                        facet: str | None = ..., facet_row: str | None = ..., ax: None = ...,
                        confidence: float = ..., seed: int = ...) -> _grid.Grid: ...
@overload
def interference_curves(frame: pd.DataFrame, value: str = ..., x: str = ..., line: str | None = ...,
                        facet: str | None = ..., facet_row: str | None = ..., *, ax: Axes,
                        confidence: float = ..., seed: int = ...) -> Axes: ...
# fmt: on
def interference_curves(
    frame: pd.DataFrame,
    value: str = "scale_optimal_error",
    x: str = "num_pairs",
    line: str | None = "keys.correlation",
    facet: str | None = "feature_map",
    facet_row: str | None = "key_dim",
    ax: Axes | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> _grid.Grid | Axes:
    """Draw `value` against `x`, a line for each `line`, a panel for each `facet` (and row for each `facet_row`).

    Solid lines with markers are means over trials, bands their bootstrap intervals; dashed lines are the
    predictions, where the table has any (``theory_<value>``).

    Parameters
    ----------
    frame : DataFrame
        The tidy table of results.
    value, x, line, facet, facet_row : str
        Columns; the last three can be None. `x` must be numeric.
    ax : Axes, optional
        Draw one panel here, with its own legend; the table must then hold a single facet.
    confidence : float
        Of the band.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Grid or Axes
        A `Grid`, whose table holds all numbers drawn; or `ax`, if it was given.
    """
    roles = {"facet_row": facet_row, "facet": facet, "line": line, "x": x}
    arranged = _panels.arrange(frame, value, roles, one_panel=ax is not None)
    places = arranged["x"].numbers()
    if places is None:
        raise ValueError(f"x must be a column of finite numbers, got {x} with values {arranged['x'].labels}")
    table = _panels.cells(frame, arranged, value, confidence, seed=seed)
    styles = _styles(arranged["line"])
    if ax is not None:
        _panel(ax, table, value, places, styles)
        _scales(np.array([[ax]]), table, value, places, panel_width=3.0)
        _grid.name_axes(np.array([[ax]]), 1, _words.axis_name(x), _words.axis_name(value))
        ax.legend(handles=_handles(arranged["line"], styles, table, value), fontsize=_grid.SMALL)
        return ax
    figure, axes, panels = _panels.panel_grid(arranged, table, panel_height=1.5)
    for panel, part in panels:
        _panel(panel, part, value, places, styles)
    _scales(axes, table, value, places, panel_width=figure.get_figwidth() / axes.shape[1] - 0.45)
    _grid.name_axes(axes, len(panels), _words.axis_name(x), _words.axis_name(value))
    _grid.add_legend(figure, _handles(arranged["line"], styles, table, value))
    _grid.add_caption(figure, _caption(frame, arranged, table, value, confidence))
    return _grid.Grid(figure, axes, _panels.readable(table, arranged))


def _styles(lines: _panels.Levels) -> list[dict[str, Any]]:
    """Return colour and marker of each line; grey stands for the level that has no number on an ordered scale."""
    ordered = lines.column is not None and lines.ordered
    if not ordered:
        return list(_palette.styles(lines.labels).values())
    known = int(lines.table.iloc[:, 0].notna().sum())
    shades = [*_words.colours(known, ordered), *["0.5"] * (len(lines) - known)]
    return [{"color": c, "marker": _words.MARKERS[i % len(_words.MARKERS)]} for i, c in enumerate(shades)]


def _panel(
    ax: Axes, table: pd.DataFrame, value: str, places: np.ndarray[Any, Any], styles: list[dict[str, Any]]
) -> None:
    """Draw the lines of one panel; a cell without a number breaks its line."""
    for code, rows in table.groupby("line"):
        rows = rows.sort_values("x")
        x, style = places[rows["x"].to_numpy()], styles[int(str(code))]
        low, high = results.numbers(rows, f"{value}_low"), results.numbers(rows, f"{value}_high")
        ax.fill_between(x, low, high, color=style["color"], alpha=0.25, linewidth=0)
        ax.plot(x, results.numbers(rows, value), **_axes.MEASURED, **style)
        if f"theory_{value}" in rows.columns:
            ax.plot(x, results.numbers(rows, f"theory_{value}"), color=style["color"], **_axes.THEORY)


def _scales(
    axes: np.ndarray[Any, Any], table: pd.DataFrame, value: str, places: np.ndarray[Any, Any], panel_width: float
) -> None:
    """Set the scales of all panels: log x where values are spread, y from 0 to 1 where the metric is."""
    from matplotlib.ticker import NullLocator

    numbers = [results.numbers(table, c) for c in (value, f"theory_{value}") if c in table.columns]
    decades = _words.span(np.concatenate(numbers))
    spread = places.min() > 0 and places.max() >= 4 * places.min()
    ticks = _grid.along_powers(places) if spread else [f"{p:g}" for p in places]
    for ax in axes.flat:
        if spread:
            ax.set_xscale("log", base=2)
            ax.xaxis.set_minor_locator(NullLocator())
        if spread and len(places) > MOST_PLACES:
            _axes.power_axis(ax, "x", places, most_ticks=4)
        else:
            ax.set_xticks(places, _grid.thin_labels(ticks, panel_width))
        if value in _words.BOUNDED:
            ax.set_ylim(-0.04, 1.04)
            ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
        elif decades > 2:
            ax.set_yscale("log")
        ax.grid(color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)


def _handles(lines: _panels.Levels, styles: list[dict[str, Any]], table: pd.DataFrame, value: str) -> list[Any]:
    """Return the legend: every line, then what solid and dashed mean."""
    handles = []
    if lines.column is not None:
        pairs = zip(lines.labels, styles, strict=True)
        named = _words.step(lines.column, "none") != "none"  # its values say what they are of
        handles = [] if named else [_axes.line_handle(f"{_words.axis_name(lines.column)}:", linestyle="none")]
        handles += [_axes.line_handle(t, linewidth=0.9, markersize=4, **style) for t, style in pairs]
    return [*handles, *(_axes.measured_and_theory() if _axes.has_theory(table, value) else [])]


def _caption(
    frame: pd.DataFrame,
    arranged: Mapping[str, _panels.Levels],
    table: pd.DataFrame,
    value: str,
    confidence: float,
) -> list[str]:
    drawn = table[table["state"] == "ok"]
    points = f"Points: {_words.repeats(drawn['trials'])}"
    if np.isfinite(results.numbers(table, f"{value}_low")).any():
        points += f"; band: {confidence:.0%} bootstrap interval of the mean"
    if _axes.has_theory(table, value):
        points += "; dashed: closed form, where one exists"
    shown = [found.column for found in arranged.values()]
    return [f"{points}.", _panels.left_out(table, value), _words.held_fixed(frame, shown)]
