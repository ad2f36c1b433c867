"""Arora et al., Zoology and Based: recall against N, and against the numbers that a state holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid, _palette, _words
from capmem.figures.replications._lines import BAND, draw, lines_of, means

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def recall_against_size(frame: pd.DataFrame) -> _grid.Grid:
    """Draw recall among 4,096 codewords against N, and at the largest N against the size of the state.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.arora2024`, with what is quoted.
    """
    table = means(frame)
    names = lines_of(frame, "numbers held")
    styles = _palette.styles(names)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=4.2, ratios=(1, 1))
    for name in names:
        if name in lines_of(frame, "formula"):
            formula: dict[str, Any] = {"color": styles[name]["color"], "marker": "", **_axes.THEORY}
            draw(axes[0, 0], table, "formula", name, **formula)
        draw(axes[0, 0], table, "recall", name, **styles[name])
    _axes.power_axis(axes[0, 0], "x", table.loc[table["part"] == "recall", "x"])
    _axes.finish(axes[0, 0], _words.axis_name("num_pairs"), "recall among 4,096 codewords", "recall against $N$")
    most = _by_size(axes[0, 1], table, styles)
    _axes.finish(axes[0, 1], "numbers that the state holds", "", f"recall against state size, $N$ = {most:g}")
    axes[0, 1].sharey(axes[0, 0])
    axes[0, 0].set_ylim(-0.03, 1.05)
    handles = [_axes.line_handle(name, **{**_axes.MEASURED, **styles[name]}) for name in names]
    handles.append(_axes.line_handle("closed form (identity)", color="0.3", **_axes.THEORY))
    _grid.add_legend(figure, handles)
    told = "Random keys and values, no training. A state holds D v + D numbers, softmax N (d + v)."
    _grid.add_caption(figure, [told, BAND])
    return _grid.Grid(figure, axes, table)


def _by_size(ax: Axes, table: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> float:
    """Draw one point a state, at the largest N, which is returned."""
    most = float(table.loc[table["part"] == "recall", "x"].max())
    at = table[table["x"] == most].set_index(["part", "line"])["value"]
    sizes = [at["numbers held", name] for name in styles]
    for name, size in zip(styles, sizes, strict=True):
        ax.plot(size, at["recall", name], **{**_axes.MEASURED, **styles[name], "markersize": 5.5})
    _axes.power_axis(ax, "x", sizes)
    return most
