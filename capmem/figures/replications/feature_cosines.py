"""linear-attention-memory-research: mean |cos| between keys after each feature map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid
from capmem.figures.replications._lines import lines_of, means

if TYPE_CHECKING:
    import pandas as pd


def mean_cosines(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the published numbers beside the spread of ours over draws of keys.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.feature_cosines`, with what is quoted.
    """
    table = means(frame)
    ours = frame[frame["part"] == "mean |cos|"]
    names = lines_of(frame, "mean |cos|")
    figure, axes = _grid.plain_grid(width=4.6, height=3.5, ratios=(1,))
    ax = axes[0, 0]
    published = table[table["part"] != "mean |cos|"].sort_values("x")
    draws: dict[str, Any] = {"color": "0.55", "markersize": 3, "markerfacecolor": "none", "markeredgewidth": 0.6}
    ax.plot(ours["x"] - 0.12, ours["value"], "o", **draws)
    ax.plot(published["x"] + 0.12, published["value"], "x", color="black", markersize=7, markeredgewidth=1.3)
    ax.set_xticks(range(len(names)), [name.replace(", nu=", "-").replace("elu_plus_one", "elu+1") for name in names])
    ax.set_yscale("log")
    ax.set_ylim(0.1, 1.1)
    ax.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    ax.minorticks_off()
    _axes.finish(ax, "feature map", "mean $|\\cos|$ of two keys")
    handles = [
        _axes.line_handle("published, one draw", color="black", marker="x", linestyle="none", markersize=6),
        _axes.line_handle("ours, a point a draw", color="0.55", marker="o", markerfacecolor="none", linestyle="none",
                          markersize=4),
    ]  # fmt: skip
    _grid.add_legend(figure, handles)
    _grid.add_caption(figure, ["512 keys, uniform on the unit sphere, $d$ = 16."])
    return _grid.Grid(figure, axes, table)
