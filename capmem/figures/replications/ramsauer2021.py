"""Ramsauer et al. 2021: error of one softmax update and its bound, against beta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid, _palette
from capmem.figures.replications._lines import BAND, draw, lines_of, means

if TYPE_CHECKING:
    import pandas as pd


def error_and_bound(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the median error of one update and the median bound, a line for each number of patterns.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.ramsauer2021`.
    """
    table = means(frame)
    names = sorted(lines_of(frame, "error, median"), key=lambda name: int(name.partition("=")[2]))
    styles = _palette.styles(names, ordered=True)
    figure, axes = _grid.plain_grid(width=4.9, height=4.2, ratios=(1,))
    ax = axes[0, 0]
    for name in names:
        bound: dict[str, Any] = {"color": styles[name]["color"], "marker": "", **_axes.THEORY}
        draw(ax, table, "bound, median", name, **bound)
        draw(ax, table, "error, median", name, **styles[name])
    shown = table[table["part"] != "share beyond the bound"]
    _axes.power_axis(ax, "y", shown["value"])
    _axes.finish(ax, "$\\beta$", "$|x_{\\mathrm{new}} - x_i|$, median")
    handles = [_axes.line_handle(name.replace("=", " = "), **{**_axes.MEASURED, **styles[name]}) for name in names]
    handles.append(_axes.line_handle("bound (theorem 5), median", color="0.3", **_axes.THEORY))
    _grid.add_legend(figure, handles)
    told = "$N$ patterns on the sphere of radius $\\sqrt{d}$, $d$ = 32; cues with noise 0.1 a coordinate."
    far = "At $\\beta$ = 0.25 fixed points are averages, far from the patterns."
    beyond = f"Patterns beyond their own bound: {shown_share(table):.3g}%."
    _grid.add_caption(figure, [told, far, beyond, BAND])
    return _grid.Grid(figure, axes, table)


def shown_share(table: pd.DataFrame) -> float:
    """Return the percentage of patterns whose error is above their bound, over all that is drawn."""
    return float(100 * table.loc[table["part"] == "share beyond the bound", "value"].mean())
