"""Zhong, Xu, Ao, Shi 2025: inverse signal-to-noise ratio by kernel, against N and against d."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid, _palette, _words
from capmem.figures.replications._lines import BAND, draw, lines_of, means

if TYPE_CHECKING:
    import pandas as pd

# Whose colour a kernel has: that of the feature map, or memory, that it belongs to.
MAPS = {"linear": "identity", "relu score": "relu", "power 2": "polynomial", "exp, beta = sqrt(d)": "softmax"}


def inverse_snr(frame: pd.DataFrame) -> _grid.Grid:
    """Draw 1/SNR of each kernel, measured and by formula.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.zhong2025`, with what is quoted.
    """
    table = means(frame)
    names = lines_of(frame, "against N")[::-1]
    styles = {name: _palette.styles([MAPS[name]])[MAPS[name]] for name in names}
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.7, ratios=(1, 1))
    panels = (("against N", _words.axis_name("num_pairs"), "$d$ = 64"),
              ("against d", _words.axis_name("key_dim"), "$N$ = 256"))  # fmt: skip
    for ax, (part, x, title) in zip(axes[0], panels, strict=True):
        for name in names:
            formula: dict[str, Any] = {"color": styles[name]["color"], "marker": "", **_axes.THEORY}
            draw(ax, table, f"formula, {part}", name, **formula)
            draw(ax, table, part, name, **styles[name], linestyle="none")
        rows = table[table["part"] == part]
        _axes.power_axis(ax, "x", rows["x"])
        _axes.power_axis(ax, "y", rows["value"])
        ax.axhline(1, color="0.5", linewidth=0.8)
        _axes.finish(ax, x, "1/SNR (noise over signal power)", title)
    handles = [_axes.line_handle(name, linestyle="none", markersize=4, **styles[name]) for name in names]
    handles += [
        _axes.line_handle("formula", color="0.3", **_axes.THEORY),
        _axes.line_handle("SNR 1", color="0.5", linewidth=0.8),
    ]
    _grid.add_legend(figure, handles)
    _grid.add_caption(figure, ["Unit keys, read with themselves. Formulas re-derived.", BAND])
    return _grid.Grid(figure, axes, table)
