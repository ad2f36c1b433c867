"""Heatmaps of a metric over any two settings, with the capacity N*, or a level of the metric, drawn in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from capmem import capacity, results
from capmem.figures import _contours, _grid, _panels, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

HALF = capacity.Criterion()
HATCHES = {**_words.HATCHES, "infinite": ("infinite", "++")}
DECADES = 2  # that values above 0 must span for a logarithmic colour scale

Scale = Literal["auto", "linear", "log"]


# fmt: off
@overload
def heatmap(frame: pd.DataFrame, x: str = ..., y: str = ..., value: str = ..., facet: str | None = ...,
            facet_row: str | None = ..., ax: None = ..., contours: capacity.Criterion | None = ...,
            cmap: str = ..., scale: Scale = ...) -> _grid.Grid: ...
@overload
def heatmap(frame: pd.DataFrame, x: str = ..., y: str = ..., value: str = ..., facet: str | None = ...,
            facet_row: str | None = ..., *, ax: Axes, contours: capacity.Criterion | None = ...,
            cmap: str = ..., scale: Scale = ...) -> Axes: ...
# fmt: on
def heatmap(
    frame: pd.DataFrame,
    x: str = "key_dim",
    y: str = "num_pairs",
    value: str = "scale_optimal_error",
    facet: str | None = "feature_map",
    facet_row: str | None = None,
    ax: Axes | None = None,
    contours: capacity.Criterion | None = HALF,
    cmap: str = "viridis",
    scale: Scale = "auto",
) -> _grid.Grid | Axes:
    """Draw the mean of `value` over trials as colour over `x` and `y`, on one colour scale for all panels.

    Every cell is equally large, whatever its values are. A cell without a number is hatched by its reason.

    Parameters
    ----------
    frame : DataFrame
        The tidy table of results.
    x, y, value, facet, facet_row : str
        Columns; the facets can be None. If one more setting varies, it becomes the facet rows.
    ax : Axes, optional
        Draw one panel here, with its own legend and colour bar; the table must then hold a single facet.
    contours : Criterion, optional
        Draw N* by this criterion, where `x` or `y` is num_pairs; over two other numbers, the line where `value`
        is at its threshold; closed forms dashed. None: no line. The default is drawn over its own metric only: N* of
        another one would mislead.
    cmap : str
        Colour map; one of even lightness can be read in grey.
    scale : {"auto", "linear", "log"}
        Of colour. "auto" is from 0 to 1 for errors and accuracies that lie there, else logarithmic for positive
        values over more than two decades; values below a logarithmic scale have its lowest colour.

    Returns
    -------
    Grid or Axes
        A `Grid`, whose table holds every cell (N* in the columns ``capacity_*``); or `ax`, if it was given.

    Raises
    ------
    ValueError
        For a missing column, an empty table, or cells that would average over different settings.
    """
    from matplotlib.cm import ScalarMappable

    if contours is HALF and value != HALF.metric:
        contours = None
    roles = {"facet_row": facet_row, "facet": facet, "x": x, "y": y}
    arranged = _panels.arrange(frame, value, roles, one_panel=ax is not None)
    table = _complete(_told_apart(_panels.cells(frame, arranged, value), frame, arranged, value), arranged)
    if contours is not None and "num_pairs" in (x, y):
        table = _contours.add_capacity(table, frame, arranged, contours)
    norm, extend = _colour_scale(results.numbers(table, value), value, scale)
    colours = ScalarMappable(norm, cmap), extend
    level = _contours.level_of(arranged, contours, value)
    handles = _handles(table, contours, "x" if x == "num_pairs" else "y", (value, level))
    draw = partial(_panel, value=value, arranged=arranged, norm=norm, cmap=cmap, level=level)
    if ax is not None:
        draw(ax, table, panel_width=3.0)
        _grid.name_axes(np.array([[ax]]), 1, _words.axis_name(x), _words.axis_name(y))
        if handles:
            ax.legend(handles=handles, fontsize=_grid.SMALL, loc="upper center", bbox_to_anchor=(0.5, -0.2))
        _scale_bar(ax.figure, ax, colours, value, height=2.0)
        return ax
    height = max(1.3, 0.19 * len(arranged["y"]) + 0.1)
    figure, axes, panels = _panels.panel_grid(arranged, table, height)
    for panel, part in panels:
        draw(panel, part, panel_width=(figure.get_figwidth() - 1.4) / axes.shape[1] - 0.1)
    _grid.name_axes(axes, len(panels), _words.axis_name(x), _words.axis_name(y))
    bar = _scale_bar(figure, axes, colours, value, height * axes.shape[0], aspect=30, pad=0.02)
    bar.ax.tick_params(labelsize=_grid.SMALL)
    _grid.add_legend(figure, handles)
    _grid.add_caption(figure, _caption(frame, arranged, table, value))
    return _grid.Grid(figure, axes, _panels.readable(table, arranged))


def _complete(table: pd.DataFrame, arranged: Mapping[str, _panels.Levels]) -> pd.DataFrame:
    """Return `table` with a row for each cell of every panel; those that nothing was stored for are "not run"."""
    import pandas as pd

    index = pd.MultiIndex.from_product([range(len(found)) for found in arranged.values()], names=list(arranged))
    table = index.to_frame(index=False).merge(table, on=list(arranged), how="left")
    table["state"] = table["state"].fillna("not run")
    counts = ["trials", "failed", "skipped"]
    return table.assign(**{c: table[c].fillna(0).astype(int) for c in counts})


def _told_apart(
    table: pd.DataFrame, frame: pd.DataFrame, arranged: Mapping[str, _panels.Levels], value: str
) -> pd.DataFrame:
    """Return `table` with the state "infinite" for cells of which every trial is +inf, where a metric can be that."""
    if value in _words.BOUNDED:
        return table
    rows = results.measured(_panels.coded(frame, arranged))
    infinite = np.isposinf(results.numbers(rows, value))
    every = rows.assign(_infinite=infinite).groupby(list(arranged))["_infinite"].all()
    cells = every.reindex(table.set_index(list(arranged)).index, fill_value=False).to_numpy(dtype=bool)
    return table.assign(state=table["state"].mask(cells, "infinite"))


def _colour_scale(values: np.ndarray[Any, Any], value: str, scale: Scale) -> tuple[Normalize, str]:
    """Return one colour scale for all panels, and at which ends values lie beyond it."""
    from matplotlib.colors import LogNorm, Normalize

    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    within = value in _words.BOUNDED or finite.size == 0 or (finite.min() >= 0 and 0.3 <= finite.max() <= 1)
    norm: Normalize
    if scale == "log" and not positive.size:
        raise ValueError(f"scale must not be log: no mean of {value} is above 0")
    if scale == "log" or (scale == "auto" and not within and _spread(finite)):
        norm = LogNorm(*_ends(positive, factor=1.1))
    elif within:
        norm = Normalize(0, 1)
    else:
        norm = Normalize(*_ends(finite))
    beyond = (finite.size and finite.min() < norm.vmin, finite.size and finite.max() > norm.vmax)
    extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    return norm, extend[bool(beyond[0]), bool(beyond[1])]


def _spread(finite: np.ndarray[Any, Any]) -> bool:
    """Whether values are not negative and those above 0, most of them, span decades."""
    positive = finite[finite > 0]
    if finite.min() < 0 or 2 * positive.size < finite.size:
        return False
    low, high = np.quantile(positive, [0.02, 0.98])
    return bool(high > 10**DECADES * low)


def _ends(values: np.ndarray[Any, Any], factor: float | None = None) -> tuple[float, float]:
    """Return the ends of a colour scale, without the outermost 2% of values; a single one stands in its middle."""
    low, high = map(float, np.quantile(values, [0.02, 0.98]))
    if low < high:
        return low, high
    return (low - 0.5, high + 0.5) if factor is None else (low / factor, high * factor)


def _panel(
    ax: Axes,
    part: pd.DataFrame,
    value: str,
    arranged: Mapping[str, _panels.Levels],
    norm: Normalize,
    cmap: str,
    panel_width: float,
    level: float | None,
) -> None:
    """Draw the cells of one panel, its hatches and its capacity lines."""
    width, height = len(arranged["x"]), len(arranged["y"])
    image = np.full((height, width), np.nan)
    image[part["y"], part["x"]] = np.where(part["state"] == "ok", results.numbers(part, value), np.nan)
    edges = np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5
    shown = np.maximum(image, 0.5 * (norm.vmin or 0)) if _logarithmic(norm) else image  # a log of 0 would be blank
    ax.pcolormesh(*edges, np.ma.masked_invalid(shown), norm=norm, cmap=cmap, rasterized=True)
    for cell in part[part["state"] != "ok"].itertuples():
        patch = _hatch(str(cell.state), (float(str(cell.x)) - 0.5, float(str(cell.y)) - 0.5))
        ax.add_patch(patch)
    _contours.draw_capacity(ax, part, arranged)
    if level is not None:
        _contours.draw_level(ax, part, value, image.shape, level)
    ax.set(xlim=(-0.5, width - 0.5), ylim=(-0.5, height - 0.5))
    labels = arranged["x"].labels
    if arranged["x"].numbers() is None and _grid.thin_labels(labels, panel_width) != labels:
        ax.set_xticks(range(width), labels, rotation=90)  # names cannot be guessed from their neighbours
    else:
        ax.set_xticks(range(width), _grid.thin_labels(labels, panel_width))
    ax.set_yticks(range(height), arranged["y"].labels)


def _scale_bar(figure: Any, axes: Any, colours: tuple[Any, str], value: str, height: float, **how: Any) -> Any:
    """Add the colour bar; its name is broken to fit `height` inches."""
    mappable, extend = colours
    bar = figure.colorbar(mappable, ax=axes, extend=extend, **how)
    bar.set_label(_grid.wrap_scale(_words.scale_name(value), height), fontsize=_grid.SMALL)
    return bar


def _logarithmic(norm: Normalize) -> bool:
    from matplotlib.colors import LogNorm

    return isinstance(norm, LogNorm)


def _hatch(state: str, corner: tuple[float, float] = (0, 0)) -> Any:
    from matplotlib.patches import Rectangle

    label, hatch = HATCHES[state]
    patch = Rectangle(corner, 1, 1, facecolor="0.93", edgecolor="0.35", linewidth=0, hatch=hatch, label=label)
    return patch


def _handles(
    table: pd.DataFrame, contours: capacity.Criterion | None, along: str, level: tuple[str, float | None]
) -> list[Any]:
    found = [] if contours is None else _contours.handles(table, contours, along)
    found += _contours.level_handles(table, *level)
    return found + [_hatch(state) for state in HATCHES if (table["state"] == state).any()]


def _caption(
    frame: pd.DataFrame, arranged: Mapping[str, _panels.Levels], table: pd.DataFrame, value: str
) -> Sequence[str]:
    drawn = table[table["state"] == "ok"]
    cell = f"Cell: {_words.repeats(drawn['trials'])}."
    line = "$N^*$ is interpolated between cells." if "capacity_pairs" in table.columns else ""
    shown = [found.column for found in arranged.values()]
    return [cell, line, _panels.left_out(table, value), _words.held_fixed(frame, shown)]
