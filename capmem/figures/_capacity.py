"""Capacity curves: N* against the key dimension, and against the size of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import capacity, results
from capmem.capacity.pareto import task_columns
from capmem.figures import _axes, _grid, _palette, _panels, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from capmem.figures._panels import Levels

FEW_DECADES = 20  # below this ratio of its ends, powers of ten leave an axis without ticks
PARETO: dict[str, Any] = {"color": "0.78", "linewidth": 4, "zorder": 0.5}
Style = dict[str, Any]


def capacity_curves(
    table: pd.DataFrame,
    x: str = "key_dim",
    line: str | None = "feature_map",
    facet: str | None = "write_rule",
    ax: Axes | None = None,
) -> Any:
    """Draw the capacity N* against `x`, a line for each `line`, a panel for each `facet`.

    Solid lines with markers are estimates with their intervals, dashed lines the capacities that the closed form
    predicts, triangles those that the search did not bracket. Along the key dimension, each panel tells the
    exponents of the laws N* = a d^b through its lines.

    Parameters
    ----------
    table : DataFrame
        A row a capacity: `x`, `line`, `facet`, pairs, low, high, bound, and theory_pairs where there is one; as
        from :func:`capmem.capacity.from_table`.
    x, line, facet : str
        Columns; the last two can be None. `x` must be numeric and positive.
    ax : Axes, optional
        Draw one panel here, with its own legend; the table must then hold a single facet.

    Returns
    -------
    Grid or Axes
        A `Grid`, whose table is the one given; or `ax`, if it was given.
    """
    told = "Exponents: least squares of logarithms, with 95% intervals from the residuals."
    along = x == "key_dim"
    notes = [_bars(table), told if along and table[x].nunique() > 2 else ""]
    return _draw(table, x, line, facet, ax, _curve_panel if along else _points, notes)


def capacity_per_byte(
    table: pd.DataFrame, line: str | None = "feature_map", facet: str | None = "write_rule", ax: Axes | None = None
) -> Any:
    """Draw the capacity N* against the bytes of the state; the grey line is that of Pareto, over all panels.

    Parameters and results as in :func:`capacity_curves`; the table has the columns state_bytes and pareto.
    """
    results.require_columns(table, ["pareto"])
    best = table[table["pareto"].to_numpy(dtype=bool)].sort_values("state_bytes")
    codes, tasks = results.group(best, task_columns(best))

    def panel(ax: Axes, part: pd.DataFrame, places: np.ndarray[Any, Any], styles: list[Style]) -> None:
        for code in range(len(tasks)):
            ax.plot(best["state_bytes"][codes == code], best["pairs"][codes == code], drawstyle="steps-post", **PARETO)
        _points(ax, part, places, styles)

    told = "Grey: Pareto line of all panels; no memory drawn holds more pairs in as few bytes."
    told = told if len(tasks) < 2 else told.replace("line", "lines, one for each law of keys, values and cues,")
    return _draw(table, "state_bytes", line, facet, ax, panel, [told, _bars(table)])


def _draw(
    table: pd.DataFrame, x: str, line: str | None, facet: str | None, ax: Axes | None, panel: Any, caption: list[str]
) -> Any:
    results.require_columns(table, [c for c in (x, line, facet) if c] + ["pairs", "low", "high", "bound"])
    lines, facets = _panels.levels(table, line), _panels.levels(table, facet)
    places = results.numbers(table, x)
    _check(table, places, x, [c for c in (x if x != "state_bytes" else "key_dim", line, facet) if c])
    styles = list(_palette.styles(lines.labels, lines.ordered).values())
    table = table.assign(_line=lines.codes)
    if ax is not None:
        if len(facets) > 1:
            raise ValueError(f"ax is one panel, but {facet} has {len(facets)} values: {', '.join(facets.labels)}")
        panel(ax, table, places, styles)
        _finish(np.array([[ax]]), 1, places, x)
        ax.legend(handles=_handles(table, lines, styles), fontsize=_grid.SMALL)
        return ax
    figure, axes = _grid.new_grid(1 + (len(facets) - 1) // 3, min(len(facets), 3), panel_height=2.6)
    for code, one in zip(range(len(facets)), axes.flat, strict=False):
        panel(one, table[facets.codes == code], places[facets.codes == code], styles)
    _grid.name_panels(axes, facets.titles if facet else [], None)
    _finish(axes, len(facets), places, x)
    _grid.add_legend(figure, _handles(table, lines, styles))
    _grid.add_caption(figure, [*caption, _words.held_fixed(table, (x, line, facet))])
    return _grid.Grid(figure, axes, table.drop(columns="_line"))


def _curve_panel(ax: Axes, part: pd.DataFrame, places: np.ndarray[Any, Any], styles: list[Style]) -> None:
    """Draw the lines of one panel, and the exponents of their laws, in the upper left, where no line runs."""
    _points(ax, part, places, styles)
    height = 0.97
    for code in np.unique(part["_line"]):
        rows = (part["_line"] == code).to_numpy()
        law = capacity.power_law(places[rows], results.numbers(part, "pairs")[rows])
        if law.points > 2:
            told = f"$d^{{{law.exponent_text}}}${law.interval_text}"
            ax.annotate(
                told,
                (0.03, height),
                xycoords="axes fraction",
                va="top",
                fontsize=_grid.SMALL,
                color=styles[code]["color"],
            )
            height -= 0.085


def _points(ax: Axes, part: pd.DataFrame, places: np.ndarray[Any, Any], styles: list[Style]) -> None:
    """Draw estimates with intervals, predictions, and bounds."""
    for code in np.unique(part["_line"]):
        rows, style = part[part["_line"] == code], styles[code]
        x = places[(part["_line"] == code).to_numpy()]
        order = np.argsort(x, kind="stable")
        rows, x = rows.iloc[order], x[order]
        pairs, low, high = (results.numbers(rows, name) for name in ("pairs", "low", "high"))
        ax.plot(x, pairs, linewidth=0.9, markersize=3.8, **style)
        known = np.isfinite(pairs) & np.isfinite(low) & np.isfinite(high)
        ax.vlines(x[known], np.maximum(low[known], 0.5), high[known], color=style["color"], linewidth=1.3)
        if "theory_pairs" in rows:
            ax.plot(x, results.numbers(rows, "theory_pairs"), color=style["color"], **_axes.THEORY)
        for bound, marker, ends in (("at least", "^", low), ("below", "v", high)):
            beyond = (rows["bound"] == bound).to_numpy()
            ax.plot(x[beyond], ends[beyond], linestyle="none", marker=marker, markersize=6, markerfacecolor="white",
                    markeredgecolor=style["color"])  # fmt: skip


def _finish(axes: np.ndarray[Any, Any], used: int, places: np.ndarray[Any, Any], x: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    ticks = np.unique(places).tolist()
    for ax in axes.flat:
        ax.set_xscale("log", base=2 if x == "key_dim" else 10)
        ax.set_yscale("log")
        if x == "key_dim":
            ax.xaxis.set_major_locator(FixedLocator(ticks))
            ax.set_xticklabels(_grid.thin_labels(_grid.along_powers(ticks), 2.0))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_locator(NullLocator())
        for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            if ends[1] < FEW_DECADES * ends[0] and not (axis is ax.xaxis and x == "key_dim"):
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_locator(NullLocator())
        ax.grid(color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=_grid.SMALL)
    _grid.name_axes(axes, used, _words.axis_name(x), "capacity $N^*$ (pairs)")


def _handles(table: pd.DataFrame, lines: Levels, styles: list[Style]) -> list[Any]:
    from matplotlib.lines import Line2D

    named = zip(lines.labels, styles, strict=True) if lines.column else ()
    handles = [Line2D([], [], label=text, linewidth=0.9, markersize=4.5, **style) for text, style in named]
    if _axes.has_theory(table, "pairs"):
        handles.append(_axes.line_handle("closed form", color="0.3", **_axes.THEORY))
    for bound, marker, text in (("at least", "^", "at least so many"), ("below", "v", "fewer")):
        if (table["bound"] == bound).any():
            handles.append(Line2D([], [], linestyle="none", marker=marker, markersize=6, markerfacecolor="white",
                                  markeredgecolor="0.3", label=text))  # fmt: skip
    return handles


def _bars(table: pd.DataFrame) -> str:
    told = ""
    if "criterion" in table and table["criterion"].nunique() == 1:
        text = str(table["criterion"].iloc[0]).replace("<=", "≤").replace(">=", "≥").replace(" ", "\u00a0")
        told = f"$N^*$: {text}"
    if np.isfinite(results.numbers(table, "low")).any():
        told += "; bars: 95% bootstrap interval over trials"
    return f"{told.removeprefix('; ')}." if told else ""


def _check(table: pd.DataFrame, places: np.ndarray[Any, Any], x: str, by: list[str]) -> None:
    if not (np.isfinite(places).all() and (places > 0).all()):
        raise ValueError(f"x must be a column of positive numbers, got {x} with values {sorted(set(table[x]))}")
    codes, groups = results.group(table, by)
    if len(groups) < len(table):
        raise ValueError(f"several capacities share one place of {by}: select one, or give what differs a role")
