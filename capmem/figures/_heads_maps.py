"""Maps of a model: a cell for each layer and query head, a panel for each number that decides about converting it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from capmem.figures import _grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh


class Panel(NamedTuple):
    """Columns that share a scale, their titles, the name of the scale, and whether it is logarithmic."""

    columns: tuple[str, ...]
    titles: tuple[str, ...]
    scale: str
    logarithmic: bool
    map: str


PANELS = (
    Panel(("attended",), ("attended tokens",), "tokens", True, "viridis"),
    Panel(("mean_cosine",), ("mean cosine of keys",), "cosine", False, "cividis"),
    Panel(
        ("effective_dim", "effective_dim_centred"),
        ("effective dimension\nkeys as they are", "effective dimension\nkeys centred"),
        "dimensions", True, "cividis",
    ),
    Panel(
        ("pairs_random_values", "pairs_random_values_centred"),
        ("N*, random values\nkeys as they are", "N*, random values\nkeys centred"),
        "pairs", True, "cividis",
    ),
    Panel(
        ("best_error", "best_error_centred"),
        ("best fit error\nkeys as they are", "best fit error\nkeys centred"),
        "error (0: exact)", False, "magma_r",
    ),
)  # fmt: skip
MOST_TICKS = 12
WRITTEN = 150  # cells at most that have their number written in


def head_maps(heads: pd.DataFrame) -> _grid.Grid:
    """Draw attended tokens, effective dimension, N* and best fit error of every head, layer against head.

    Parameters
    ----------
    heads : DataFrame
        A row a query head: layer, query_head, and the columns of PANELS; panels without numbers are left out.

    Returns
    -------
    Grid
        The table holds the numbers drawn.
    """
    drawn = [panel for panel in PANELS if all(c in heads and heads[c].notna().any() for c in panel.columns)]
    layers, numbers = sorted(set(heads["layer"])), sorted(set(heads["query_head"]))
    count = sum(len(panel.columns) for panel in drawn)
    height = max(0.24 * len(layers), 0.8)
    figure, axes = _new(count, height)
    place = iter(axes.flat)
    for panel in drawn:
        own = [next(place) for _ in panel.columns]
        norm = _norm(heads[list(panel.columns)].to_numpy(dtype=float), panel.logarithmic)
        for ax, column, title in zip(own, panel.columns, panel.titles, strict=True):
            mesh = _map(ax, heads, column, (layers, numbers), norm, panel.map)
            ax.set_title(title, fontsize=_grid.MEDIUM)
            bar = figure.colorbar(mesh, ax=ax, pad=0.02, aspect=max(8, int(12 * height)))
            bar.set_label(panel.scale, fontsize=_grid.SMALL)
            _plain_ticks(bar, norm, panel.logarithmic)
    for ax in place:
        ax.set_axis_off()
    told = "A cell is a query head; numbers of keys are those of the key head that it uses."
    scales = "Two maps of one quantity share their scale. Fit error: the best map against the head's own output."
    _grid.add_caption(figure, [told, scales])
    columns = ["layer", "query_head", *(c for panel in drawn for c in panel.columns)]
    return _grid.Grid(figure, axes, heads[columns])


def _new(count: int, height: float) -> tuple[Any, Any]:
    columns = 2
    rows = math.ceil(count / columns)
    figure = _grid.new_figure(_grid.PAGE_WIDTH, rows * (height + 0.95) + 0.6)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _norm(values: Any, logarithmic: bool) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    finite = values[np.isfinite(values) & ((values > 0) | (not logarithmic))]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (1.0, 2.0)
    if low == high:
        low, high = low * 0.9, high * 1.1 or 1.0
    return LogNorm(low, high) if logarithmic else Normalize(0.0, max(high, 1e-3))


def _map(
    ax: Axes, heads: pd.DataFrame, column: str, axes: tuple[list[int], list[int]], norm: Any, name: str
) -> QuadMesh:
    layers, numbers = axes
    image = np.full((len(layers), len(numbers)), np.nan)
    for row in heads[["layer", "query_head", column]].itertuples(index=False):
        image[layers.index(row[0]), numbers.index(row[1])] = row[2]
    ax.set_facecolor("0.85")
    mesh = ax.pcolormesh(np.ma.masked_invalid(image), norm=norm, cmap=name, edgecolors="white", linewidth=0.4)
    for axis, labels in ((ax.xaxis, numbers), (ax.yaxis, layers)):
        step = math.ceil(len(labels) / MOST_TICKS)
        axis.set_ticks(np.arange(0, len(labels), step) + 0.5, [str(n) for n in labels[::step]])
    ax.invert_yaxis()
    ax.tick_params(labelsize=_grid.SMALL, length=0)
    ax.set_xlabel("query head", fontsize=_grid.SMALL)
    ax.set_ylabel("layer", fontsize=_grid.SMALL)
    if image.size <= WRITTEN:
        _write(ax, image, norm, name)
    return mesh


def _write(ax: Axes, image: Any, norm: Any, name: str) -> None:
    """Write each number into its cell, light on dark."""
    from matplotlib import colormaps

    for (i, j), value in np.ndenumerate(image):
        if np.isfinite(value):
            red, green, blue, _ = colormaps[name](float(norm(value)))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            text = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}".lstrip("0")
            size = 5.5 if len(image[0]) > 8 else 7
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=size, color="white" if dark else "black")


def _plain_ticks(bar: Any, norm: Any, logarithmic: bool) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    bar.ax.tick_params(labelsize=_grid.SMALL)
    if logarithmic:
        ticks = [m * 10.0**p for p in range(-3, 7) for m in (1, 2, 5) if norm.vmin <= m * 10.0**p <= norm.vmax]
        bar.set_ticks(ticks or [norm.vmin, norm.vmax])
        bar.set_ticklabels([f"{tick:.3g}" for tick in ticks or [norm.vmin, norm.vmax]])
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
