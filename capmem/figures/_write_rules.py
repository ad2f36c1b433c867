"""Write rules compared: error against load, a repeated key, and least squares with noisy cues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem import results
from capmem.figures import _axes, _grid, _palette, _words
from capmem.figures._ages import caption, handles
from capmem.figures._axes import Panels
from capmem.figures._signal import visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RAW, OPTIMAL = "relative_squared_error", "scale_optimal_error"


def error_by_load(frame: pd.DataFrame) -> _grid.Grid:
    """Draw both errors against N / d, a line for each rule.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.write_rules`; rows of part "load" count.

    Returns
    -------
    Grid
        Two panels; the table holds means over trials, with intervals.
    """
    load = frame[frame["part"] == "load"]
    table = _means(load, ["rule", "num_pairs", "load"], [RAW, OPTIMAL])
    names = list(dict.fromkeys(load["rule"]))
    styles = _palette.styles(names)
    figure, axes = _grid.plain_grid(_grid.PAGE_WIDTH, 3.7, (1, 1))
    _both_errors(axes[0], table, "load", "load $N/d$", styles)
    for ax in axes[0]:
        _axes.power_axis(ax, "x", table["load"])
    _grid.add_legend(figure, [*handles(names, styles), *_axes.measured_and_theory()])
    exact = "Errors of exactly zero (least squares up to $N = d$) are not on the logarithmic axis."
    _grid.add_caption(figure, caption(table, _shape(load), exact))
    return _grid.Grid(figure, axes, table)


def overwriting(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the error of the latest values: against the chance of a repeat, and of keys drawn with replacement.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.write_rules`; rows of parts "overwrite" and "replacement" count.

    Returns
    -------
    Grid
        Three panels; the table holds the means of both parts, told apart by the column `part`.
    """
    left, right = (frame[frame["part"] == part] for part in ("overwrite", "replacement"))
    names = list(dict.fromkeys(left["rule"]))
    table = _means(left, ["rule", "fraction"], [RAW, OPTIMAL])
    pooled = _means(right, ["rule", "num_pairs"], [RAW])
    styles = _palette.styles(names)
    figure, axes = _grid.plain_grid(_grid.PAGE_WIDTH, 3.8, (1, 1, 1))
    _both_errors(axes[0], table, "fraction", "chance of a repeated key", styles)
    ax, drawn = axes[0, 2], _palette.styles(list(dict.fromkeys(right["rule"])))
    _axes.lines(ax, pooled, "num_pairs", RAW, "rule", drawn)
    _name_lines(ax, pooled)
    ax.set_ylim(-0.02, max(0.3, 1.3 * pooled[RAW].max()))
    _axes.finish(ax, "orthonormal keys $S$", _words.axis_name(RAW))
    for ax, title in zip(axes[0], ("unit keys", "unit keys, best gain", "drawn with replacement"), strict=True):
        ax.set_title(title, fontsize=_grid.MEDIUM)
    _grid.add_legend(figure, [*handles(names, styles), *_axes.measured_and_theory()])
    told = (
        f"{_shape(left)} Left and middle: {left['num_pairs'].iloc[0]:g} pairs; only the latest value of a key counts."
    )
    told += " Zero is not on the logarithmic axis."
    replaced = (
        "Right: $S$ pairs of $S$ orthonormal keys and one-hot values; Hebbian is read divided by its denominator."
    )
    _grid.add_caption(figure, caption(table, told, replaced))
    return _grid.Grid(figure, axes, _stacked(overwrite=table, replacement=pooled))


def double_descent(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the error of noisy cues against N / d, for several ridges, and against the ridge at N = d.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.write_rules`; rows of parts "noise" and "ridge" count.

    Returns
    -------
    Grid
        Two panels; the table holds the means of both parts, told apart by the column `part`.
    """
    noise, scan = (frame[frame["part"] == part] for part in ("noise", "ridge"))
    names = list(dict.fromkeys(noise["rule"]))
    table = _means(noise, ["rule", "num_pairs", "load"], [RAW])
    ridges = _means(scan, ["rule", "ridge"], [RAW])
    least = [name for name in names if name.startswith("least_squares")]
    styles = _palette.shaded(_palette.styles(names), least)
    figure, axes = _grid.plain_grid(_grid.PAGE_WIDTH, 3.8, (3, 2))
    left, right = axes[0]
    _axes.lines(left, table, "load", RAW, "rule", styles)
    _open_where_infinite(left, table, int(noise["key_dim"].iloc[0]), styles)
    _axes.power_axis(left, "x", table["load"])
    _axes.fitted_axis(left, table[RAW], 1.5)
    _axes.finish(left, "load $N/d$", _words.axis_name(RAW))
    plain = {"color": "0.35", "marker": "P"}
    _axes.lines(right, ridges, "ridge", RAW, "rule", {"least_squares": plain})
    _axes.power_axis(right, "x", ridges["ridge"])
    _axes.fitted_axis(right, ridges[RAW], 1.5, base=2)
    _axes.finish(right, "ridge (units of $|k|^2$)", "relative squared error", "least squares at $N = d$")
    _grid.add_legend(figure, [*handles(names, styles), *_axes.measured_and_theory()])
    told = f"{_shape(noise)} Cues of cosine {noise['query_cosine'].iloc[0]:g} to their keys."
    infinite = "Open: the mean over all draws is infinite, so no closed form; these trials' mean says little."
    drawn = _stacked(noise=table, ridge=ridges)
    _grid.add_caption(figure, caption(drawn, told, infinite))
    return _grid.Grid(figure, axes, drawn)


def _both_errors(axes: Panels, table: pd.DataFrame, x: str, name: str, styles: dict[Any, dict[str, Any]]) -> None:
    """Draw the raw error, on a logarithmic axis, and the scale-optimal one, from 0 to 1, against `x`."""
    for ax, value in zip(axes, (RAW, OPTIMAL), strict=False):
        _axes.lines(ax, visible(table, value) if value == RAW else table, x, value, "rule", styles)
        _axes.finish(ax, name, _words.axis_name(value))
    _axes.fitted_axis(axes[0], visible(table, RAW)[RAW], 1.5, base=2)
    axes[1].set_ylim(-0.04, 1.04)


def _open_where_infinite(ax: Axes, table: pd.DataFrame, key_dim: int, styles: dict[Any, dict[str, Any]]) -> None:
    name = "least_squares, ridge=0"
    part = table[(table["rule"] == name) & (abs(table["num_pairs"] - key_dim) < 2)]
    if len(part):
        style = styles[name] | {"markerfacecolor": "white", "markersize": 5, "linestyle": "none", "zorder": 3}
        ax.plot(part["load"], part[RAW], **style)


def _name_lines(ax: Axes, table: pd.DataFrame) -> None:
    """Write the last number of each line above its end."""
    for _, part in table.groupby("rule"):
        x, y = part.sort_values("num_pairs").iloc[-1][["num_pairs", RAW]]
        ax.annotate(f"{abs(y):.3f}", (x, y), (2, 8), textcoords="offset points", ha="right", fontsize=_grid.SMALL)


def _means(frame: pd.DataFrame, by: list[str], values: list[str]) -> pd.DataFrame:
    theory = [f"theory_{v}" for v in values if f"theory_{v}" in frame]
    return results.aggregate(frame[[*by, "trial", *values, *theory]], by, values)


def _stacked(**parts: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.concat([part.assign(part=name) for name, part in parts.items()], ignore_index=True)


def _shape(frame: pd.DataFrame) -> str:
    return (
        f"Identity map, unit keys on the sphere, $d$ = {frame['key_dim'].iloc[0]}, $v$ = {frame['value_dim'].iloc[0]}."
    )
