"""The classics: overlap of a Hopfield network against load, bits a parameter, accuracy of a superposition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid, _palette
from capmem.figures.replications._lines import BAND, draw, lines_of, means

if TYPE_CHECKING:
    import pandas as pd

LINE = "measured"


def classics(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the three measured classics beside their formulas.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.classical`, with what is quoted.
    """
    table = means(frame)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.3, ratios=(1, 1, 1))
    own: dict[str, Any] = {"color": "black", "marker": "o"}
    formula: dict[str, Any] = {"color": "0.45", "marker": "", **_axes.THEORY}
    limit_line: dict[str, Any] = {"color": "0.45", "linewidth": 0.9, "linestyle": ":"}
    overlap, bits, items = axes[0]
    for ax, part in ((bits, "bits a parameter"), (items, "superposition accuracy")):
        draw(ax, table, f"formula, {part}", LINE, **formula)
        draw(ax, table, part, LINE, **own, linestyle="none")
    networks = lines_of(frame, "hopfield overlap")
    styles = _palette.styles(networks)
    for name in networks:
        draw(overlap, table, "hopfield overlap", name, **styles[name])
    draw(overlap, table, "formula, hopfield overlap", LINE, **formula)
    limit = table.loc[table["part"] == "formula, hopfield overlap", "x"].max()
    overlap.axvline(limit, **limit_line)
    overlap.set_ylim(0, 1.03)
    _axes.power_axis(bits, "x", table.loc[table["part"] == "bits a parameter", "x"])
    bits.set_ylim(0, 0.48)
    items.set_ylim(0, 1.03)
    _axes.finish(overlap, "patterns a neuron", "final overlap", "Hopfield")
    _axes.finish(bits, "load $N/d$", "bits a parameter", "Hebbian, values $\\pm 1$")
    _axes.finish(items, "items", "accuracy of an item", "superposition")
    looks = {"measured": {**_axes.MEASURED, **own}}
    looks |= {f"{name[2:]} neurons": {**_axes.MEASURED, **styles[name]} for name in networks}
    looks |= {"critical load": limit_line, "formula": formula}
    _grid.add_legend(figure, [_axes.line_handle(name, **look) for name, look in looks.items()])
    told = "Hopfield: started at its patterns; the formula is of infinitely many neurons."
    _grid.add_caption(figure, [told, "Superposition: 500 neurons, 27 symbols.", BAND])
    return _grid.Grid(figure, axes, table)
