"""What line panels share: logarithmic axes with powers as ticks, light grids, dashed theory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from capmem import results
from capmem.figures import _grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panels = np.ndarray[Any, Any]
MEASURED: dict[str, Any] = {"linewidth": 0.9, "markersize": 3.2}
THEORY: dict[str, Any] = {"linewidth": 1.7, "linestyle": (0, (2.2, 1.6))}


def panels(rows: int, columns: int, height: float, width: float = _grid.PAGE_WIDTH) -> tuple[Figure, Panels]:
    """Return an empty figure that lays itself out, and its axes (rows, columns); each column shares a y axis."""
    figure = _grid.new_figure(width, height)
    return figure, figure.subplots(rows, columns, sharex=True, sharey="col", squeeze=False)


def power_axis(
    ax: Axes, which: Literal["x", "y"], values: Iterable[float], base: int | None = None, most_ticks: int = 7
) -> None:
    """Make an axis logarithmic, with whole powers as ticks.

    Parameters
    ----------
    ax : Axes
    which : {"x", "y"}
    values : iterable of float
        What is drawn along it; only positive finite ones count.
    base : int, optional
        Of the powers (default: 2 along x, 10 along y).
    most_ticks : int
        Powers between are left out until so many are left.
    """
    from matplotlib.ticker import NullLocator

    given = np.asarray(list(values), dtype=float)
    given = given[np.isfinite(given) & (given > 0)]
    if not given.size:
        return
    base = base or {"x": 2, "y": 10}[which]
    low, high = math.floor(math.log(given.min(), base) + 1e-9), math.ceil(math.log(given.max(), base) - 1e-9)
    step = -(-(high - low + 1) // most_ticks)
    powers = range(low, high + 1, step)
    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log", base=base)
    axis.set_ticks([float(base) ** p for p in powers], [f"${base}^{{{p}}}$" for p in powers])
    axis.set_minor_locator(NullLocator())


def fitted_axis(ax: Axes, values: Iterable[float], room: float = 2.0, **how: Any) -> None:
    """Make y logarithmic, from the least to the largest of what is drawn, and a factor of `room` more (bands aside).

    Further arguments are those of :func:`power_axis`.
    """
    known = np.asarray(list(values), dtype=float)
    known = known[np.isfinite(known) & (known > 0)]
    if known.size:
        power_axis(ax, "y", known, **how)
        ax.set_ylim(known.min() / room, known.max() * room)


def lines(ax: Axes, table: pd.DataFrame, x: str, y: str, line: str, styles: Mapping[Any, Mapping[str, Any]]) -> None:
    """Draw y against x, a line for each level of `line` in `styles`, with its band and its theory.

    Bands come from the columns ``<y>_low`` and ``<y>_high``, dashed lines from ``theory_<y>``, where there are any.
    """
    for level, own in styles.items():
        part = table[table[line] == level].sort_values(x)
        if f"{y}_low" in part:
            ax.fill_between(part[x], part[f"{y}_low"], part[f"{y}_high"], color=own["color"], alpha=0.25, linewidth=0)
        ax.plot(part[x], part[y], **{**MEASURED, **own})
        if f"theory_{y}" in part:
            ax.plot(part[x], part[f"theory_{y}"], color=own["color"], **THEORY)


def part(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of one part of a study's table, with the columns that they have."""
    return frame[frame["part"] == name].dropna(axis=1, how="all").reset_index(drop=True)


def finish(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Name the axes and lay a light grid under the lines."""
    ax.set_xlabel(x, fontsize=_grid.MEDIUM)
    ax.set_ylabel(y, fontsize=_grid.MEDIUM)
    if title:
        ax.set_title(title, fontsize=_grid.MEDIUM)
    ax.tick_params(labelsize=_grid.SMALL)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def has_theory(table: pd.DataFrame, value: str) -> bool:
    """Return whether the table has any prediction of this metric."""
    column = f"theory_{value}"
    return column in table and bool(np.isfinite(results.numbers(table, column)).any())


def line_handle(label: str, **style: Any) -> Any:
    """Return a legend entry for a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)


def measured_and_theory() -> list[Any]:
    """Return the legend entries that say what solid and dashed mean."""
    return [
        line_handle("measured", color="0.3", marker="o", linewidth=0.9, markersize=4),
        line_handle("closed form", color="0.3", **THEORY),
    ]
