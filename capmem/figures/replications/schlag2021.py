"""Schlag, Irie, Schmidhuber 2021, their figures 2 and 3: loss against unique keys, by map and by update rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.figures import _axes, _grid, _palette
from capmem.figures.replications._lines import QUOTED, draw, means, without_marker

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAPS = ["elu_plus_one", "dpfp, nu=1", "dpfp, nu=2", "dpfp, nu=3"]
FAVOR, SOFTMAX = "positive_random_features, m=512", "softmax"
NAMES = {"elu_plus_one": "linear (elu+1), D=64", "dpfp, nu=1": "DPFP-1, D=128", "dpfp, nu=2": "DPFP-2, D=256",
         "dpfp, nu=3": "DPFP-3, D=384", FAVOR: "FAVOR+, m=512", SOFTMAX: "softmax"}  # fmt: skip
RULES = {"dpfp, nu=1, sum": "sum, DPFP-1", "dpfp, nu=1, delta": "delta, DPFP-1", "elu_plus_one, delta": "delta, linear"}
OURS: dict[str, Any] = {"marker": "", "linewidth": 1.4}


def capacity_and_update(frame: pd.DataFrame) -> _grid.Grid:
    """Draw both settings: logged losses as points, ours as lines.

    Parameters
    ----------
    frame : DataFrame
        The measurements of :mod:`capmem.replications.schlag2021`, with what is quoted.

    Returns
    -------
    Grid
        Two panels; the table holds means over trials.
    """
    table = means(frame)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=4.3, ratios=(1.45, 1))
    names = [*MAPS, FAVOR, SOFTMAX]
    styles = _palette.shaded(_palette.styles(names), [name for name in MAPS if name.startswith("dpfp")])
    styles[SOFTMAX] |= {"marker": "x"}  # which has no face to leave open
    _capacity(axes[0, 0], table, styles)
    rules = dict(zip(RULES, _palette.styles(["hebbian", "delta", "delta, elu_plus_one"]).values(), strict=True))
    _update(axes[0, 1], table, rules, styles)
    handles = [_axes.line_handle(NAMES[n], **{**QUOTED, **styles[n]}) for n in names]
    handles += [_axes.line_handle(RULES[n], **{**QUOTED, **rules[n]}) for n in RULES]
    handles += [
        _axes.line_handle("logged, trained", **{**QUOTED, "color": "0.3", "marker": "o"}),
        _axes.line_handle("ours, not trained", color="0.3", **OURS),
        _axes.line_handle("floors", color="black", linestyle=":", linewidth=1.2),
        _axes.line_handle("random keys in $R^D$", color="0.3", **_axes.THEORY),
    ]
    _grid.add_legend(figure, handles)
    told = "Left: sum rule, ours by pseudo-inverse on a map's features; dotted: tight frames, rank floor .5 (1 - D/S)."
    more = "Right: keys and values drawn with replacement, the last value of a key is asked for; ours with orthonormal"
    last = "keys; floors: stale values (sum), rank (delta)."
    _grid.add_caption(figure, [told, more, last])
    return _grid.Grid(figure, axes, table)


def _capacity(ax: Axes, table: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    for name in MAPS:
        own = without_marker(styles[name])
        draw(ax, table, "random keys", name, **{**own, **_axes.THEORY, "marker": "", "linewidth": 0.9, "alpha": 0.7})
        draw(ax, table, "pseudo-inverse", name, **own, **OURS)
        draw(ax, table, "tight frame", name, color="black", linestyle=":", linewidth=1.2, marker="")
    for name in styles:
        draw(ax, table, "logged, trained", name, **{**QUOTED, **styles[name]})
    _finish(ax, "setting 1: capacity", 0.53)


def _update(ax: Axes, table: pd.DataFrame, rules: dict[str, dict[str, Any]], styles: dict[str, dict[str, Any]]) -> None:
    for line, rule in (("hebbian", "dpfp, nu=1, sum"), ("delta", "dpfp, nu=1, delta")):
        draw(ax, table, "update rule", line, **without_marker(rules[rule]), **OURS)
    dotted: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.2, "marker": ""}
    last = table["x"].where(table["part"] == "update rule").max()
    for name in ("elu_plus_one", "dpfp, nu=1", "hebbian"):
        draw(ax, table[table["x"] <= last], "rank floor", name, **dotted)
    for name, own in rules.items():
        draw(ax, table, "update rule, logged, trained", name, **{**QUOTED, **own})
    _finish(ax, "setting 2: update rule", 0.4)


def _finish(ax: Axes, title: str, top: float) -> None:
    ax.set_ylim(-0.015, top)
    ax.margins(x=0.02)
    _axes.finish(ax, "unique keys $S$", "loss, squared error / 2", title)
