"""Gram matrices as heatmaps: which keys point the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import numpy as np

from capmem import results
from capmem.figures import _grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh


@overload
def gram_heatmap(frame: pd.DataFrame, value: str = ..., facet: str = ..., ax: None = ...) -> _grid.Grid: ...
@overload
def gram_heatmap(frame: pd.DataFrame, value: str = ..., facet: str = ..., *, ax: Axes) -> Axes: ...
def gram_heatmap(
    frame: pd.DataFrame, value: str = "inner_product", facet: str = "keys", ax: Axes | None = None
) -> _grid.Grid | Axes:
    """Draw a Gram matrix as colour, white at 0: the entries off the diagonal are what interferes.

    Parameters
    ----------
    frame : DataFrame
        A row for each entry: `i`, `j` (from 1), `value`, `facet`; rows without an `i` are left out.
    value, facet : str
        Columns.
    ax : Axes, optional
        Draw one panel here; the table must then hold one facet.

    Returns
    -------
    Grid or Axes
        A `Grid`, whose table holds the entries; or `ax`, if it was given.
    """
    results.require_columns(frame, ["i", "j", value, facet])
    table = frame[frame["i"].notna()].dropna(axis=1, how="all").reset_index(drop=True)
    names = list(dict.fromkeys(table[facet]))
    if ax is not None:
        if len(names) > 1:
            raise ValueError(f"ax is one panel, but {facet} has {len(names)} values: {', '.join(names)}")
        mesh = _panel(ax, table, value)
        ax.figure.colorbar(mesh, ax=ax).set_label("inner product", fontsize=_grid.SMALL)
        return ax
    figure, axes = _grid.new_grid(1, len(names), panel_height=1.0)
    for panel, name in zip(axes[0], names, strict=True):
        mesh = _panel(panel, table[table[facet] == name], value)
    axes[0, 0].set_ylabel("key $i$", fontsize=_grid.MEDIUM)
    _grid.name_panels(axes, names, None)
    bar = figure.colorbar(mesh, ax=axes, aspect=15, pad=0.02, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.set_label("inner product $k_i \\cdot k_j$", fontsize=_grid.SMALL)
    bar.ax.tick_params(labelsize=_grid.SMALL)
    _grid.add_caption(figure, ["What is off the diagonal is crosstalk: reading $k_i$ mixes in $v_j$ by this factor."])
    return _grid.Grid(figure, axes, table)


def _panel(ax: Axes, table: pd.DataFrame, value: str) -> QuadMesh:
    """Draw one matrix on the scale from -1 to 1."""
    rows, columns = (table[c].to_numpy(dtype=int) for c in ("i", "j"))
    image = np.full((rows.max(), columns.max()), np.nan)
    image[rows - 1, columns - 1] = results.numbers(table, value)
    edges = np.arange(columns.max() + 1) + 0.5, np.arange(rows.max() + 1) + 0.5
    mesh = ax.pcolormesh(*edges, image, vmin=-1, vmax=1, cmap="RdBu_r", rasterized=True)
    ax.set(aspect="equal", ylim=(rows.max() + 0.5, 0.5))
    ax.set_xticks([1, int(columns.max())])
    ax.set_yticks([1, int(rows.max())])
    ax.set_xlabel("key $j$", fontsize=_grid.MEDIUM)
    return mesh
