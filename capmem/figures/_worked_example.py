"""The notes' worked example as a picture: the keys as arrows, and what reading k1 gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.figures import _grid, _words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from capmem.worked_example import ThreePairs

_ROLES = (("v1", "$v_1$: signal", ""), ("v2", "$v_2$", ""), ("v3", "$v_3$: crosstalk", "///"))


def worked_example(example: ThreePairs) -> _grid.Grid:
    """Draw the three keys, and which shares of v1, v2, v3 reading k1 gives from each memory.

    Parameters
    ----------
    example : ThreePairs
        The example; it is computed here.

    Returns
    -------
    Grid
        Two panels; the table holds every reading, measured and in closed form.
    """
    import pandas as pd

    table = pd.DataFrame(example.readings())
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.1, ratios=(1.0, 1.5))
    _draw_keys(axes[0, 0], example)
    _draw_readings(axes[0, 1], table[table["query"] == "k1"])
    told = f"Left: unit keys; $k_2$ points out of the page; cosine of $k_1$ and $k_3$: {example.cosine:g}."
    _grid.add_caption(figure, [told, "Right: bars are measured, black ticks the closed form."])
    return _grid.Grid(figure, axes, table)


def _draw_keys(ax: Axes, example: ThreePairs) -> None:
    colours = _words.colours(3, ordered=False)
    angle = np.arccos(example.cosine)
    places = {"$k_1$": (1.0, 0.0, colours[0]), "$k_3$": (np.cos(angle), np.sin(angle), colours[1])}
    for name, (x, y, colour) in places.items():
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0})
        ax.annotate(name, (x, y), (4, 4), textcoords="offset points", color=colour, fontsize=11)
    ax.plot(0, 0, "o", markersize=11, markerfacecolor="white", markeredgecolor=colours[2], markeredgewidth=2)
    ax.plot(0, 0, "o", markersize=3.5, color=colours[2])
    ax.annotate("$k_2$", (0, 0), (-16, -14), textcoords="offset points", color=colours[2], fontsize=11)
    ax.plot([example.cosine] * 2, [0, np.sin(angle)], ":", color="0.4", linewidth=1)
    ax.annotate(f"$k_1 \\cdot k_3 = {example.cosine:g}$", (example.cosine / 2, 0), (0, -14),
                textcoords="offset points", ha="center", fontsize=_grid.SMALL)  # fmt: skip
    ax.set(xlim=(-0.3, 1.3), ylim=(-0.3, 1.2), aspect="equal")
    ax.set_axis_off()
    ax.set_title("Three keys", fontsize=_grid.MEDIUM)


def _draw_readings(ax: Axes, readings: Any) -> None:
    """Draw a group of bars for each memory; the first is the one before the third pair was written."""
    from matplotlib.patches import Patch

    labels = ["hebbian, two pairs", *readings["memory"].iloc[1:]]
    colours = [_words.colours(3, ordered=False)[i] for i in (0, 2, 1)]  # v3 as k3
    height = 0.26
    for i, (name, _, hatch) in enumerate(_ROLES):
        places = np.arange(len(labels)) + (i - 1) * height
        ax.barh(places, readings[name], height, color=colours[i], hatch=hatch, edgecolor="white", linewidth=0)
        ends = readings[f"closed_{name}"]
        ax.vlines(ends, places - height / 2, places + height / 2, color="black", linewidth=1.5)
    ax.set_yticks(range(len(labels)), labels, fontsize=_grid.SMALL)
    ax.invert_yaxis()
    ax.axvline(0, color="0.5", linewidth=0.8)
    ax.set_xlabel("share of each value in what $k_1$ reads", fontsize=_grid.MEDIUM)
    ax.tick_params(labelsize=_grid.SMALL)
    handles = [
        Patch(facecolor=c, hatch=h, edgecolor="white", label=t) for c, (_, t, h) in zip(colours, _ROLES, strict=True)
    ]
    ax.legend(handles=handles, fontsize=_grid.SMALL, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
