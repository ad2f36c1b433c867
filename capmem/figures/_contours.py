"""Lines on a heatmap: the capacity N* through the columns, or a level of the metric; and both from closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import capacity, results
from capmem.figures import _panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_EDGE = 0.3  # how far outside the outermost cell centres a mark for "beyond the grid" sits


def add_capacity(
    table: pd.DataFrame, frame: pd.DataFrame, arranged: Mapping[str, _panels.Levels], criterion: capacity.Criterion
) -> pd.DataFrame:
    """Return `table` with N* of each cell's column of cells, as columns ``capacity_*``."""
    by = [role for role, found in arranged.items() if found.column != "num_pairs"]
    found = capacity.from_table(_panels.coded(frame, arranged), criterion, by)
    names = {"pairs": "pairs", "low": "low", "high": "high", "bound": "bound", "theory_pairs": "theory"}
    found = found[[*by, *names]].rename(columns={old: f"capacity_{new}" for old, new in names.items()})
    return table.merge(found, on=by, how="left")


def draw_capacity(ax: Axes, part: pd.DataFrame, arranged: Mapping[str, _panels.Levels]) -> None:
    """Draw measured and predicted N* of one panel, and triangles where N* is beyond the grid."""
    if "capacity_pairs" not in part.columns:
        return
    along, across = ("x", "y") if arranged["x"].column == "num_pairs" else ("y", "x")
    columns = part.drop_duplicates(across).sort_values(across)
    grid = arranged[along].numbers()
    if grid is None:
        return
    centres = np.arange(grid.size)
    for name, handle in (("capacity_pairs", measured_line), ("capacity_theory", theory_line)):
        pairs = results.numbers(columns, name)
        # Cells are equally large, so N* is placed by its logarithm between the cell centres beside it.
        place = np.where(np.isfinite(pairs), np.interp(np.log(pairs), np.log(grid), centres), np.nan)
        line = handle()
        if arranged[across].numbers() is None:
            line.set_linestyle("none")  # nothing lies between two names
        _plot(ax, line, columns[across].to_numpy(), place, along)
    for bound, marker, edge in (("at least", 1, grid.size - 1 + _EDGE), ("below", -1, -_EDGE)):
        where = columns.loc[columns["capacity_bound"] == bound, across].to_numpy()
        _plot(ax, beyond_marker(marker, along), where, np.full(where.size, edge), along)


def level_of(arranged: Mapping[str, _panels.Levels], criterion: capacity.Criterion | None, value: str) -> float | None:
    """Return the threshold that a line can be drawn at: of `value` itself, over two numbers, neither of them N."""
    if criterion is None or criterion.metric != value:
        return None
    axes = arranged["x"], arranged["y"]
    lines = all(found.numbers() is not None and len(found) > 1 and found.column != "num_pairs" for found in axes)
    return criterion.threshold if lines else None


def draw_level(ax: Axes, part: pd.DataFrame, value: str, shape: tuple[int, int], level: float) -> None:
    """Draw where `value`, interpolated between cells, is at `level`; its closed form dashed."""
    from matplotlib.patheffects import Normal, Stroke

    for column, line in ((value, measured_line()), (f"theory_{value}", theory_line())):
        image = np.full(shape, np.nan)
        if column in part.columns:
            image[part["y"], part["x"]] = results.numbers(part, column)
        finite = image[np.isfinite(image)]
        if not finite.size or not finite.min() < level < finite.max():
            continue
        colour, width = line.get_color(), line.get_linewidth()
        drawn = ax.contour(np.ma.masked_invalid(image), [level], colors=[colour], linewidths=width,
                           linestyles=[line.get_linestyle() if column == value else "--"])  # fmt: skip
        drawn.set_path_effects([Stroke(linewidth=width + 1.3, foreground=line.get_markeredgecolor()), Normal()])


def level_handles(table: pd.DataFrame, value: str, level: float | None) -> list[Any]:
    """Return the legend entries of the lines that :func:`draw_level` draws somewhere."""
    entries = []
    for column, line, ending in ((value, measured_line, ""), (f"theory_{value}", theory_line, ", closed form")):
        numbers = results.numbers(table, column) if column in table.columns else np.empty(0)
        finite = numbers[np.isfinite(numbers)]
        if level is not None and finite.size and finite.min() < level < finite.max():
            entries.append(line(f"{results.METRICS.get(value, value)} = {level:g}{ending}"))
            entries[-1].set_marker("")
    return entries


def handles(table: pd.DataFrame, criterion: capacity.Criterion, along: str) -> list[Any]:
    """Return the legend entries of what is drawn for N*."""
    if "capacity_pairs" not in table.columns:
        return []
    entries = []
    text = str(criterion).replace("<=", "≤").replace(">=", "≥")
    if np.isfinite(results.numbers(table, "capacity_pairs")).any():
        entries.append(measured_line(f"$N^*$: {text}"))
    if np.isfinite(results.numbers(table, "capacity_theory")).any():
        entries.append(theory_line("$N^*$, closed form"))
    ends = {"at least": (1, "$N^*$ above the grid"), "below": (-1, "$N^*$ below the grid")}
    bounds = set(table["capacity_bound"].dropna())
    entries += [beyond_marker(side, along, label) for bound, (side, label) in ends.items() if bound in bounds]
    return entries


def measured_line(label: str = "") -> Any:
    """Return a white line with a black edge, which shows on every colour."""
    return _line("white", "black", 1.5, "o", "-", label)


def theory_line(label: str = "") -> Any:
    """Return a black dashed line with a white edge: it shows on the measured one too."""
    return _line("black", "white", 1.2, "D", (0, (2.5, 1.8)), label)


def beyond_marker(side: int, along: str, label: str = "") -> Any:
    """Return a triangle that points out of the grid."""
    from matplotlib.lines import Line2D

    marker = {("y", 1): "^", ("y", -1): "v", ("x", 1): ">", ("x", -1): "<"}[along, side]
    line = Line2D([], [], marker=marker, label=label, linestyle="none", markersize=5.5)
    line.set(markerfacecolor="white", markeredgecolor="black")
    return line


def _line(colour: str, edge: str, width: float, marker: str, dashes: Any, label: str) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import Normal, Stroke

    line = Line2D([], [], color=colour, linewidth=width, linestyle=dashes, marker=marker, label=label)
    line.set(markersize=5.5 if marker == "o" else 2.4, markeredgecolor=edge, markeredgewidth=0.4)
    line.set_path_effects([Stroke(linewidth=width + 1.3, foreground=edge), Normal()])
    return line


def _plot(ax: Axes, line: Any, across: np.ndarray[Any, Any], place: np.ndarray[Any, Any], along: str) -> None:
    if np.isfinite(place).any():
        line.set_data(*((across, place) if along == "y" else (place, across)))
        ax.add_line(line)
