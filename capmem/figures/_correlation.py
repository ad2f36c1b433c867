"""Keys and features that share a mean: error against correlation, and effective dimension against d with its limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from capmem import results
from capmem.figures import _axes, _grid, _palette, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ERROR = "scale_optimal_error"
_CENTRED = {"none": "as they are", "keys": "keys centred", "features": "features centred", "both": "both centred"}
_DIMENSIONS = {"effective_dimension": "as they are", "centred_effective_dimension": "features centred"}
_NAMED = {math.pi**2: "\\pi^2", math.pi**4: "\\pi^4"}


def correlation(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the error against key correlation by map: as they are, keys centred, features centred, both.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.correlation`; rows of part "error" count.

    Returns
    -------
    Grid
        A row of four panels for each N; the table holds means over trials, with intervals.
    """
    rows = _axes.part(frame, "error")
    table = results.aggregate(rows, ["feature_map", "centred", "num_pairs", "key_dim", "correlation"], [_ERROR])
    styles = _palette.styles(list(dict.fromkeys(rows["feature_map"])))
    counts = sorted(set(table["num_pairs"]))
    figure, axes = _grid.new_grid(len(counts), len(_CENTRED), panel_height=2.2)
    for line, n in zip(axes, counts, strict=True):
        for ax, centred in zip(line, _CENTRED, strict=True):
            part = table[(table["num_pairs"] == n) & (table["centred"] == centred)]
            _axes.lines(ax, part, "correlation", _ERROR, "feature_map", styles)
            ax.set_ylim(-0.04, 1.04)
            ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            ax.grid(color="0.9", linewidth=0.6)
            ax.set_axisbelow(True)
    _grid.name_panels(axes, list(_CENTRED.values()), [f"$N$ = {n:.0f}" for n in counts] if len(counts) > 1 else None)
    _grid.name_axes(axes, axes.size, "key correlation", _words.axis_name(_ERROR))
    handles = [_axes.line_handle(name, **{**_axes.MEASURED, **own}) for name, own in styles.items()]
    _grid.add_legend(figure, handles + _axes.measured_and_theory())
    first = rows.iloc[0]
    means = _words.repeats(table["trials"])
    told = f"Correlation: expected cosine of two keys. Points: {means}; band: 95% bootstrap interval."
    pairs = f"$N$ = {counts[0]:.0f}, " if len(counts) == 1 else ""
    sizes = (
        f"Hebbian, {pairs}$d$ = {first['key_dim']:.0f}, $v$ = {first['value_dim']:.0f}; unit keys times $\\sqrt{{d}}$."
    )
    _grid.add_caption(
        figure,
        [told, sizes, "Centred by the mean of other keys of the same law. Dashed: closed form, where one exists."],
    )
    return _grid.Grid(figure, axes, table)


def mean_feature(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the effective dimension of N(0, 1) keys against d, as they are and with features centred.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.correlation`; rows of part "dimension" count.

    Returns
    -------
    Grid
        Two panels; the table holds the rows drawn. Thin lines are the limits of D_eff.
    """
    table = _axes.part(frame, "dimension")
    styles = _palette.styles(list(dict.fromkeys(table["feature_map"])))
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.8, ratios=(1, 1))
    drawn = results.numbers(table, "effective_dimension"), results.numbers(table, "centred_effective_dimension")
    for ax, (value, title) in zip(axes[0], _DIMENSIONS.items(), strict=True):
        for name, own in styles.items():
            part = table[table["feature_map"] == name].sort_values("key_dim")
            ax.plot(part["key_dim"], part[value], **{**_axes.MEASURED, **own, "linestyle": "none", "markersize": 4.5})
            if f"theory_{value}" in part:
                ax.plot(part["key_dim"], part[f"theory_{value}"], color=own["color"], **_axes.THEORY)
        _axes.power_axis(ax, "x", table["key_dim"])
        _axes.power_axis(ax, "y", np.concatenate(drawn))
        _axes.finish(ax, _words.axis_name("key_dim"), "", title)
    axes[0, 1].sharey(axes[0, 0])
    axes[0, 0].set_ylim(1, 2 * np.nanmax(drawn))
    axes[0, 1].tick_params(labelleft=False)
    axes[0, 0].set_ylabel("effective dimension $D_{\\mathrm{eff}}$", fontsize=_grid.MEDIUM)
    _draw_limits(axes[0, 0], table, styles)
    handles = [
        _axes.line_handle(name, **{**own, "linestyle": "none", "markersize": 4.5}) for name, own in styles.items()
    ]
    handles += [_axes.line_handle("closed form", color="0.3", **_axes.THEORY)]
    handles += [_axes.line_handle("limit $(m_1/\\mu)^2$", color="0.3", linewidth=0.8)]
    _grid.add_legend(figure, handles)
    first = table.iloc[0]
    told = f"Points: {_words.repeats(table['trials'])} of {first['num_keys']:.0f} keys from $N(0, I)$."
    why = "$\\mu$ = |mean feature|$^2$, $m_1$ = mean |feature|$^2$: above $(m_1/\\mu)^2$ no effective dimension goes."
    _grid.add_caption(figure, [told, why, _on_each_other(table)])
    return _grid.Grid(figure, axes, table)


def _on_each_other(table: pd.DataFrame) -> str:
    """Return which maps have a centred D_eff of d, so that only the last one drawn is seen."""
    near = abs(table["centred_effective_dimension"] / table["key_dim"] - 1) < 0.05
    same = [name for name, all_near in near.groupby(table["feature_map"], sort=False).all().items() if all_near]
    return f"Right: {', '.join(map(str, same))} lie on each other, at $d$." if len(same) > 1 else ""


def _draw_limits(ax: Axes, table: pd.DataFrame, styles: dict[str, dict[str, str]]) -> None:
    """Draw the limits at the largest d, each with its value at the right end."""
    last = table[table["key_dim"] == table["key_dim"].max()].set_index("feature_map")
    if "limit" not in last:
        return
    for name, own in styles.items():
        value = float(last.loc[name, "limit"])
        if not math.isfinite(value):
            continue
        ax.axhline(value, color=own["color"], linewidth=0.8)
        known = next((f"{text} = " for exact, text in _NAMED.items() if math.isclose(exact, value, rel_tol=1e-6)), "")
        ax.annotate(f"${known}{value:.2f}$", (1, value), (3, 0), xycoords=("axes fraction", "data"), va="center",
                    textcoords="offset points", fontsize=_grid.SMALL, color=own["color"])  # fmt: skip
