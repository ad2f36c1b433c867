"""Cabannes, Dohmatob, Bietti 2024: error against d by weighting, and against the number of samples T."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid
from capmem.figures.replications._lines import BAND, draw, in_turn, lines_of, means

if TYPE_CHECKING:
    import pandas as pd


def error_against_size(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the error of each weighting against d with the authors' guides, and against T.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.cabannes2024`, with what is quoted.
    """
    table = means(frame)
    weightings, data = lines_of(frame, "error against d"), lines_of(frame, "error against T")
    styles = in_turn(weightings)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.9, ratios=(1.4, 1))
    guide: dict[str, Any] = {"color": "0.35", "marker": "", **_axes.THEORY, "linewidth": 1.1}
    for name in weightings:
        draw(axes[0, 0], table, "error against d", name, **styles[name])
    for name in lines_of(frame, "guide"):
        draw(axes[0, 0] if name in weightings else axes[0, 1], table, "guide", name, **guide)
    sample = {"color": "black", "marker": "o"}
    for name in data:
        draw(axes[0, 1], table, "error against T", name, **sample)
    for ax, x, title in ((axes[0, 0], "key dimension $d$", "embeddings"), (axes[0, 1], "samples $T$", "data")):
        shown = "error against d" if title == "embeddings" else "error against T"
        rows = table[table["part"] == shown]
        _axes.power_axis(ax, "x", rows["x"], base=10)
        _axes.power_axis(ax, "y", rows["value"])
        ax.set_ylim(rows["value"].min() / 1.5, 1.2)
        ax.set_xlim(rows["x"].min() / 1.25, rows["x"].max() * 1.25)
        _axes.finish(ax, x, "error" if title == "embeddings" else "", title)
    handles = [_axes.line_handle(name, **{**_axes.MEASURED, **styles[name]}) for name in weightings]
    handles += [_axes.line_handle(name, **_axes.MEASURED, **sample) for name in data]
    told = "authors' guides; missing mass"
    _grid.add_legend(figure, [*handles, _axes.line_handle(told, **guide)])
    law = "$n$ = 1000 inputs, $p(x) \\propto x^{-2}$, 5 outputs, $f(x) = x$ mod 5; Gaussian input embeddings."
    guides = "Error: the sum of $p(x)$ over wrong answers. Guides: $0.35\\,d^{-1/4}$ and $3.5\\,d^{-1}$."
    _grid.add_caption(figure, [law, guides, BAND])
    return _grid.Grid(figure, axes, table)
