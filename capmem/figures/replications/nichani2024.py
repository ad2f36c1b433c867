"""Nichani, Lee, Bietti 2024, their figure 1, left: pairs at 99% accuracy against d."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from capmem import capacity
from capmem.figures import _axes, _grid, _palette, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ACCURACY = "top-1 accuracy"


def pairs_against_dimension(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the Hebbian memory's N*, measured and by formula, beside the guide of the trained ones.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.nichani2024`, with what is quoted.

    Returns
    -------
    Grid
        Two panels; the table holds N* (part "pairs at 99%"), mean accuracies, and the quoted lines.
    """
    import pandas as pd

    accuracies = frame[frame["part"] == ACCURACY]
    means = accuracies.groupby(["part", "line", "x"], sort=False, as_index=False)[["value"]].mean()
    found = pd.DataFrame([_capacity(line, accuracies) for line in dict.fromkeys(accuracies["line"])])
    found = found.sort_values("x", ignore_index=True)
    rest = frame[frame["part"] != ACCURACY].drop(columns="trial")
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.6, ratios=(1.15, 1))
    own = _palette.styles(["hebbian"])["hebbian"]
    _draw_pairs(axes[0, 0], found, rest, own["color"])
    styles = _palette.styles(list(found["line"]), ordered=True)
    for line in found["line"]:
        rows = means[means["line"] == line].sort_values("x")
        axes[0, 1].plot(rows["x"], rows["value"], **{**_axes.MEASURED, **styles[line]})
    axes[0, 1].axhline(0.99, color="0.4", linestyle=":", linewidth=1.2)
    _axes.power_axis(axes[0, 1], "x", means["x"])
    _axes.finish(axes[0, 1], _words.axis_name("num_pairs"), _words.axis_name("top1_accuracy"), "where $N^*$ is read")
    handles = [
        _axes.line_handle("Hebbian, measured (95% interval)", markersize=4, linestyle="none", **own),
        _axes.line_handle("Hebbian, formula", color=own["color"], **_axes.THEORY),
        _axes.line_handle("trained, the authors' guide $d^2 = 1.3\\,N \\ln N$", color="black", linewidth=1.2),
        *(_axes.line_handle(line.replace("=", " = "), markersize=3, linewidth=0.9, **styles[line])
          for line in found["line"]),
    ]  # fmt: skip
    _grid.add_legend(figure, handles)
    told = "Keys and values on the sphere, $d$ dimensions each; the $N$ stored values compete. No training."
    _grid.add_caption(figure, [told])
    parts: list[pd.DataFrame] = [found, means, rest]
    return _grid.Grid(figure, axes, pd.concat(parts, ignore_index=True))


def _capacity(line: str, accuracies: pd.DataFrame) -> dict[str, object]:
    wide = accuracies[accuracies["line"] == line].pivot(index="trial", columns="x", values="value")
    criterion = capacity.Criterion("top1_accuracy", 0.99)
    found = capacity.from_curves(wide.columns.to_numpy(dtype=float), wide.to_numpy(dtype=float), criterion)
    at = {"part": "pairs at 99%", "line": line, "x": float(line.partition("=")[2])}
    return at | {"value": found.pairs, "value_low": found.low, "value_high": found.high}


def _draw_pairs(ax: Axes, found: pd.DataFrame, rest: pd.DataFrame, color: str) -> None:
    for part, style in (("trained, guide", {"color": "black", "linewidth": 1.2}),
                        ("formula", {"color": color, **_axes.THEORY})):  # fmt: skip
        rows = rest[rest["part"] == part].sort_values("x")
        ax.plot(rows["x"], rows["value"], **style)
    reach = np.abs(found[["value_low", "value_high"]].to_numpy().T - found["value"].to_numpy())
    ax.errorbar(found["x"], found["value"], reach, color=color, marker="o", markersize=3.5, linestyle="none",
                capsize=2, elinewidth=0.9)  # fmt: skip
    _axes.power_axis(ax, "x", rest["x"])
    _axes.power_axis(ax, "y", rest["value"], base=10)
    _axes.finish(ax, _words.axis_name("key_dim"), "pairs at 99% accuracy $N^*$", "capacity")
