"""A cache that grows against a state of fixed size: error against N, at equal bytes, and capacity against beta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.figures import _axes, _grid, _palette, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ERROR = "scale_optimal_error"
# Where N* is drawn, and by which marker: itself, or the end of the grid that it lies beyond.
_PLACES = {"": ("pairs", "o"), "at least": ("low", "^"), "below": ("high", "v"), "no data": ("pairs", "o")}


def softmax_vs_linear(errors: pd.DataFrame, equal: pd.DataFrame, capacities: pd.DataFrame) -> _grid.Grid:
    """Draw error against N, error at equal bytes, and the capacity of softmax against its beta.

    Parameters
    ----------
    errors, equal, capacities : DataFrame
        The tables of :mod:`capmem.studies._equal_bytes`, of the functions `errors`, `at_equal_bytes`, `capacities`.

    Returns
    -------
    Grid
        Three panels; the table holds all three, told apart by the column `panel`.
    """
    import pandas as pd

    styles = _styles(errors)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=4.0, ratios=(1.25, 1, 1))
    _draw_errors(axes[0, 0], errors, styles)
    _draw_equal(axes[0, 1], axes[0, 0], equal, styles)
    _draw_capacity(axes[0, 2], capacities, styles)
    handles = [_axes.line_handle(name, **{**_axes.MEASURED, **style}) for name, style in styles.items()]
    handles += _axes.measured_and_theory()
    handles.append(_axes.line_handle("bound of Ramsauer et al.", color="black", linestyle=":", linewidth=1.2))
    _grid.add_legend(figure, handles)
    first, trials = errors.iloc[0], _words.repeats(errors["trials"])
    sizes = f"Unit keys, $d$ = {first['key_dim']}, read with themselves; Hebbian; all in float32."
    told = f"Points: {trials}; bands: 95% bootstrap intervals. Triangles: $N^*$ beyond the grid."
    places = "Left: Ramsauer's bound at the median separation of a key, largest beta. Middle: the numbers are $N$."
    places += " Right: level lines are the linear states."
    _grid.add_caption(figure, [told, sizes, places])
    named = {"error": errors, "equal bytes": equal, "capacity": capacities}
    table = pd.concat([part.assign(panel=name) for name, part in named.items()], ignore_index=True)
    return _grid.Grid(figure, axes, table)


def _styles(errors: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return black to grey for softmax, colours for linear memories."""
    softmax = list(dict.fromkeys(errors.loc[errors["memory"] == "softmax", "label"]))
    linear = list(dict.fromkeys(errors.loc[errors["memory"] == "linear", "label"]))
    greys = [str(grey) for grey in np.linspace(0.65, 0, len(softmax))]
    own = {
        name: {"color": grey, "marker": "1234+x"[i % 6], "markersize": 5}
        for i, (name, grey) in enumerate(zip(softmax, greys, strict=True))
    }
    return _palette.styles(linear) | own


def _draw_errors(ax: Axes, errors: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    _axes.lines(ax, errors, "num_pairs", _ERROR, "label", styles)
    sharpest = errors[errors["memory.beta"] == errors["memory.beta"].max()].sort_values("num_pairs")
    ax.plot(sharpest["num_pairs"], sharpest["guaranteed_error"], ":", color="black", linewidth=1.2)
    _axes.power_axis(ax, "x", errors["num_pairs"], most_ticks=6)
    _axes.power_axis(ax, "y", errors[_ERROR])
    ax.set_ylim(errors[_ERROR].min() / 2, 2)
    _axes.finish(ax, _words.axis_name("num_pairs"), _words.axis_name(_ERROR), "error")


def _draw_equal(ax: Axes, beside: Axes, equal: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    for row in equal.to_dict("records"):
        ax.plot(row["state_bytes"], row[_ERROR], **{**_axes.MEASURED, **styles[row["label"]], "markersize": 6})
    beta = equal["softmax_beta"].iloc[0]
    sharpest = next(style for name, style in styles.items() if name == f"softmax, beta = {beta:g}")
    ax.plot(equal["cache_bytes"], equal["softmax_error"], **{**_axes.MEASURED, **sharpest})
    for count, size, error in zip(equal["num_pairs"], equal["cache_bytes"], equal["softmax_error"], strict=True):
        ax.annotate(str(count), (size, error), (0, 5), textcoords="offset points", ha="center",
                    fontsize=_grid.SMALL)  # fmt: skip
    ax.sharey(beside)
    ax.margins(x=0.12)
    _axes.power_axis(ax, "x", [*equal["state_bytes"]], most_ticks=5)
    _axes.finish(ax, "bytes of state = of cache", "", "error at equal bytes")


def _draw_capacity(ax: Axes, capacities: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    softmax = capacities[capacities["memory"] == "softmax"].sort_values("memory.beta")
    betas = softmax["memory.beta"]
    curve = capacities[capacities["memory"] == "closed form"].sort_values("memory.beta")
    ax.plot(curve["memory.beta"], curve["closed_form"], color="black", **_axes.THEORY)
    ax.plot(betas, softmax["guaranteed"], ":", color="black", linewidth=1.2)
    for row in softmax.to_dict("records"):
        column, marker = _PLACES[row["bound"]]
        ax.plot(row["memory.beta"], row[column], **{**styles[row["label"]], "marker": marker})
    for row in capacities[capacities["memory"] == "linear"].to_dict("records"):
        if row["bracketed"]:
            own = {**_axes.MEASURED, **styles[row["label"]], "markevery": [1]}
            ax.plot([betas.min(), betas.max()], [row["pairs"]] * 2, **own)
    _axes.power_axis(ax, "x", betas)
    _axes.power_axis(ax, "y", [*softmax["closed_form"], *capacities["pairs"]])
    _axes.finish(ax, "$\\beta$ of softmax", "$N^*$ (error 0.5, SNR 1)", "capacity")
