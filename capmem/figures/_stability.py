"""Numerical stability: denominators and errors against N, narrow states, and FAVOR+ against key norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results
from capmem.figures import _axes, _grid, _palette, _words

if TYPE_CHECKING:
    import pandas as pd

_DOTTED: dict[str, Any] = {"linestyle": ":", "markerfacecolor": "white"}


def stability(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the share of denominators that are not positive, and median and mean errors of two read-outs.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.stability`; rows of part "denominator" count.

    Returns
    -------
    Grid
        Three panels; the table holds the rows drawn.
    """
    table = _axes.part(frame, "denominator")
    names = list(dict.fromkeys(table["feature_map"]))
    styles = _palette.styles(names)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.4, ratios=(1, 1, 1))
    shares = table.drop_duplicates(["feature_map", "num_pairs"])
    _axes.lines(axes[0, 0], shares, "num_pairs", "nonpositive_fraction", "feature_map", styles)
    axes[0, 0].set_ylim(-0.02, 0.52)
    _axes.finish(axes[0, 0], "", "share of denominators $\\leq 0$", "denominators")
    readouts = {"normalized": "normalised read-out", "rms_norm": "output norm (RMSNorm)"}
    errors = table[["median_error", "mean_error"]].to_numpy().ravel()
    for ax, (readout, title) in zip(axes[0, 1:], readouts.items(), strict=True):
        part = table[table["readout"] == readout]
        _axes.lines(ax, part, "num_pairs", "median_error", "feature_map", styles)
        _axes.lines(ax, part, "num_pairs", "mean_error", "feature_map", {n: styles[n] | _DOTTED for n in names})
        _axes.fitted_axis(ax, errors, 1.5)
        _axes.finish(ax, "", "relative squared error\n(fraction of $|v|^2$)" if ax is axes[0, 1] else "", title)
    for ax in axes[0]:
        _axes.power_axis(ax, "x", table["num_pairs"], most_ticks=5)
        ax.set_xlabel(_words.axis_name("num_pairs"), fontsize=_grid.MEDIUM)
    handles = [_axes.line_handle(n, **_axes.MEASURED, **styles[n]) for n in names]
    handles += [_axes.line_handle("median", color="0.3", marker="o", linewidth=0.9, markersize=4)]
    handles += [_axes.line_handle("mean", color="0.3", marker="o", linewidth=0.9, markersize=4, **_DOTTED)]
    handles += [_axes.line_handle("Student's t", color="0.3", **_axes.THEORY)]
    _grid.add_legend(figure, handles)
    read = f"{int(table['num_queries'].min())} or more stored keys from N(0, 1) are read at each point."
    told = f"Hebbian, {_shape(table)}. Where mean and median part, a few errors are huge."
    _grid.add_caption(figure, [read, told, _never(shares)])
    return _grid.Grid(figure, axes, table)


def precision(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the error that rounding a state adds, against N and the pairs between roundings, and what becomes of z.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.stability`; rows of part "precision" count.

    Returns
    -------
    Grid
        Three panels; the table holds means over trials.
    """
    part = _axes.part(frame, "precision")
    by = ["feature_map", "state_dtype", "round_every", "num_pairs"]
    table = part.groupby(by, sort=False)[["added_error", "state_error", "z_ratio"]].agg(_mean).reset_index()
    formats = list(dict.fromkeys(table["state_dtype"]))
    styles = _palette.styles(formats)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.3, ratios=(1, 1, 1))
    least, most = table["round_every"].min(), table["num_pairs"].max()
    identity, positive = (table[table["feature_map"] == name] for name in ("identity", "elu_plus_one"))
    drawn = (
        (identity[identity["round_every"] == least], "num_pairs", "added_error"),
        (identity[identity["num_pairs"] == most], "round_every", "added_error"),
        (positive[positive["round_every"] == least], "num_pairs", "z_ratio"),
    )
    for ax, (rows, x, y) in zip(axes[0], drawn, strict=True):
        _axes.lines(ax, rows, x, y, "state_dtype", styles)
        _axes.power_axis(ax, "x", rows[x], most_ticks=5)
    errors = np.concatenate([results.numbers(rows, "added_error") for rows, _, _ in drawn[:2]])
    for ax in axes[0, :2]:
        _axes.fitted_axis(ax, errors)
    axes[0, 2].set_ylim(0, None)
    pairs = _words.axis_name("num_pairs")
    _axes.finish(axes[0, 0], pairs, "error added by rounding\n(fraction of $|v|^2$)", "identity, unit keys")
    _axes.finish(axes[0, 1], "pairs between roundings", "", f"identity, $N$ = {most:.0f}")
    _axes.finish(axes[0, 2], pairs, "$z$ held / $z$ true", "elu_plus_one")
    _grid.add_legend(figure, [_axes.line_handle(f, **_axes.MEASURED, **styles[f]) for f in formats])
    every = "pair" if least == 1 else f"{least:.0f} pairs"
    told = f"{_words.repeats(part.groupby(by).size())}. Hebbian, {_shape(part)}, against a float64 state."
    _grid.add_caption(figure, [f"Points: {told} Left and right: rounded after every {every}."])
    return _grid.Grid(figure, axes, table)


def kernel_variance(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the relative variance of FAVOR+'s kappa(k, k) against the size of the key.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.stability`; rows of part "favor" count.

    Returns
    -------
    Grid
        One panel; the table holds the rows drawn.
    """
    table = _axes.part(frame, "favor")
    styles = _palette.styles(["independent", "orthogonal"])
    figure, axes = _grid.plain_grid(width=4.4, height=3.6, ratios=(1,))
    ax, values = axes[0, 0], table["theory_relative_variance"]
    measured = table.drop(columns="theory_relative_variance")
    _axes.lines(ax, measured, "key_square", "relative_variance", "directions", styles)
    independent = table[table["directions"] == "independent"]
    ax.plot(independent["key_square"], independent["theory_relative_variance"], color=styles["independent"]["color"],
            **_axes.THEORY)  # fmt: skip
    _axes.power_axis(ax, "x", table["key_square"])
    _axes.power_axis(ax, "y", [*values, *table["relative_variance"]])
    d = int(table["key_dim"].iloc[0])
    for square, name in ((d**-0.5, "unit keys"), (d**0.5, "$N(0, 1)$ keys")):
        ax.axvline(square, color="0.6", linewidth=0.9, linestyle=":")
        ax.annotate(name, (square, 0.42), (-3, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
                    rotation=90, ha="right", va="bottom", fontsize=_grid.SMALL, color="0.3")  # fmt: skip
    _axes.finish(ax, "$|k|^2 / \\sqrt{d}$", "relative variance of $\\kappa(k, k)$")
    handles = [_axes.line_handle(f"{n} directions", **_axes.MEASURED, **s) for n, s in styles.items()]
    handles.append(_axes.line_handle("$(e^{4|x|^2} - 1)/m$", color=styles["independent"]["color"], **_axes.THEORY))
    _grid.add_legend(figure, handles)
    first = table.iloc[0]
    told = f"FAVOR+, $m$ = {first['num_features']:.0f}, $d$ = {d}; {first['draws']:.0f} draws of the map; band: 95%."
    _grid.add_caption(figure, [told, "Where the points fall behind, the draws miss the rare directions that count."])
    return _grid.Grid(figure, axes, table)


def _never(shares: pd.DataFrame) -> str:
    """Return the sentence on lines that lie on each other, at 0."""
    most = shares.groupby("feature_map", sort=False)["nonpositive_fraction"].max()
    names = [str(name) for name, share in most.items() if share == 0]
    return f"No denominator of {' or '.join(names)} is $\\leq$ 0." if names else ""


def _mean(column: pd.Series[float]) -> float:
    return float(column.mean(skipna=False))  # a state that overflowed in one trial has no mean


def _shape(table: pd.DataFrame) -> str:
    return f"$d$ = {int(table['key_dim'].iloc[0])}, $v$ = {int(table['value_dim'].iloc[0])}"
