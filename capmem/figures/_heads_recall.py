"""How much a head remembers: recall against stored tokens with baselines and theory, swaps, dimension against N*."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.figures import _axes, _grid, _words
from capmem.figures._heads_keys import place_of, way_styles

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RANDOM, MEAN = "random", "none: mean of values"
NAMES = {
    "as they are": "keys as they are",
    "centred": "keys centred",
    RANDOM: "random keys",
    MEAN: "mean of the values",
}
BY_TOKEN: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (1, 1.2))}


def _styles() -> dict[str, dict[str, Any]]:
    colours = _words.colours(4, ordered=False)
    rest = {RANDOM: {"color": colours[2], "marker": "D"}, MEAN: {"color": "0.45", "marker": "v"}}
    return {**{way: dict(own) for way, own in way_styles().items()}, **rest}


def head_recall(curves: pd.DataFrame, dimensions: pd.DataFrame) -> _grid.Grid:
    """Draw top-1 accuracy and errors of one head against the number of stored tokens.

    Parameters
    ----------
    curves, dimensions : DataFrame
        The tables of :mod:`capmem.heads_analysis`, of one head.

    Returns
    -------
    Grid
        Three panels: top-1 and scale-optimal error with the head's own values (random ones, where it has none), and
        relative error with random values, against (N - 1) mean cos^2, which holds there. The table holds the curves.
    """
    table = _within(curves[(curves["choice"] == "all") & (curves["order"] == "shuffled")])
    own = table[table["values"] == ("own" if (table["values"] == "own").any() else RANDOM)]
    random = _with_theory(table[table["values"] == RANDOM], dimensions)
    dim = int(dimensions["key_dim"].iloc[0])
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.7, ratios=(1, 1, 1))
    styles = {keys: style for keys, style in _styles().items() if (own["keys"] == keys).any()}
    several = random[random["num_pairs"] > 1]
    drawn = {"top1_accuracy": own, "scale_optimal_error": own, "relative_squared_error": several}
    for ax, (column, part) in zip(axes[0], drawn.items(), strict=True):
        there = {k: s for k, s in styles.items() if (part["keys"] == k).any()}
        _axes.lines(ax, part, "num_pairs", column, "keys", there)
        _mark(ax, dim)
        _axes.power_axis(ax, "x", table["num_pairs"])
    _by_token(axes[0, 0], own, styles)
    _axes.finish(axes[0, 0], "stored tokens $N$", "top-1 accuracy")
    _axes.finish(axes[0, 1], "stored tokens $N$", "scale-optimal error")
    _axes.finish(axes[0, 2], "stored tokens $N$", "relative squared error\n(random values)")
    _axes.power_axis(axes[0, 2], "y", several["relative_squared_error"])
    for ax in axes[0, :2]:
        ax.set_ylim(-0.03, 1.05)
    _grid.add_legend(figure, _recall_handles(styles))
    told = f"Mean of {int(table['trials'].iloc[0])} random subsets; band: 95% interval of the mean."
    rule = "Hebbian, identity map, keys divided by their norms. Left, middle: the head's own values."
    _grid.add_caption(figure, [place_of(curves), told, rule])
    return _grid.Grid(figure, axes, table)


def _within(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the curves with the intervals of top-1 accuracies, 1.96 standard errors each way, cut to 0 to 1."""
    ends = [f"{name}_{end}" for name in ("top1_accuracy", "top1_by_token") for end in ("low", "high")]
    return curves.assign(**{name: curves[name].clip(0, 1) for name in ends if name in curves})


def _with_theory(random: pd.DataFrame, dimensions: pd.DataFrame) -> pd.DataFrame:
    """Return rows of random values with their closed form, (N - 1) mean cos^2 of the keys."""
    squared = 1 / dimensions[dimensions["choice"] == "all"].set_index("keys")["effective_dim"]
    per_pair = {**squared.to_dict(), RANDOM: 1 / int(dimensions["key_dim"].iloc[0])}
    return random.assign(theory_relative_squared_error=(random["num_pairs"] - 1) * random["keys"].map(per_pair))


def _recall_handles(styles: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    return [
        *(_axes.line_handle(NAMES[k], linewidth=0.9, markersize=4, **s) for k, s in styles.items()),
        _axes.line_handle("an equal token counts as right", color="0.3", **BY_TOKEN),
        _axes.line_handle("$(N-1)$ mean $\\cos^2$", color="0.3", **_axes.THEORY),
        _axes.line_handle("$N = d$", color="0.6", linewidth=1),
    ]


def _by_token(ax: Axes, own: pd.DataFrame, styles: Mapping[str, Mapping[str, Any]]) -> None:
    for keys, style in styles.items():
        part = own[(own["keys"] == keys) & (own["num_pairs"] > 1)].sort_values("num_pairs")
        ax.plot(part["num_pairs"], part["top1_by_token"], color=style["color"], **BY_TOKEN)


def _mark(ax: Axes, dim: int) -> None:
    ax.axvline(dim, color="0.6", linewidth=1, zorder=0)


def head_swaps(ratios: Mapping[str, pd.Series[float]]) -> _grid.Grid:
    """Draw by what factor N* changes when keys, values or order are exchanged, a point a head.

    Parameters
    ----------
    ratios : mapping
        Name of a swap -> N* after over N* before, a head a row; empty ones are left out.

    Returns
    -------
    Grid
        One panel; the table holds the factors.
    """
    import pandas as pd

    shown = {name: ratio.to_numpy(dtype=float) for name, ratio in ratios.items() if len(ratio)}
    figure, axes = _grid.plain_grid(width=5.8, height=0.42 * len(shown) + 1.6, ratios=(1,))
    ax, rng = axes[0, 0], np.random.default_rng(0)
    colours = _words.colours(3, ordered=False)
    for place, (name, values) in enumerate(shown.items()):
        colour = colours[0] if name.startswith("keys") else colours[1] if name.startswith("values") else colours[2]
        heights = place + rng.uniform(-0.22, 0.22, len(values))
        ax.plot(values, heights, "o", color=colour, markersize=2.6, alpha=0.55, markeredgewidth=0)
        ax.plot([np.median(values)] * 2, [place - 0.36, place + 0.36], color="black", linewidth=1.8)
    ax.axvline(1, color="0.4", linewidth=1, linestyle="-.")
    ax.set_yticks(range(len(shown)), list(shown))
    ax.invert_yaxis()
    _factors(ax, np.concatenate(list(shown.values())))
    _axes.finish(ax, "$N^*$ after the swap / $N^*$ before", "")
    count = max(len(values) for values in shown.values())
    told = f"$N^*$: top-1 by index; a point is a key head ({count}), vertical spread only for sight; bar: median."
    _grid.add_caption(figure, [told, "Right of 1: remembers more. A bound counts as $N^*$."])
    table = pd.concat([pd.DataFrame({"swap": name, "factor": values}) for name, values in shown.items()])
    return _grid.Grid(figure, axes, table)


def _factors(ax: Axes, values: np.ndarray[Any, Any]) -> None:
    """Make the x axis logarithmic, with factors of two as ticks: 1/4, 1/2, 1, 2."""
    from matplotlib.ticker import NullLocator

    ends = np.log2([values.min(), values.max()])
    powers = range(int(np.floor(ends[0])), int(np.ceil(ends[1])) + 1)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_ticks([2.0**p for p in powers], [str(2**p) if p >= 0 else f"1/{2**-p}" for p in powers])
    ax.xaxis.set_minor_locator(NullLocator())


def head_dimensions(sets: pd.DataFrame) -> _grid.Grid:
    """Draw N* with random values against effective dimension, a point a key head and way.

    Parameters
    ----------
    sets : DataFrame
        keys ("as they are" or "centred"), effective_dim, pairs, random_keys_hold (drawn dashed).

    Returns
    -------
    Grid
        One panel; the table holds the points.
    """
    figure, axes = _grid.plain_grid(width=4.6, height=3.9, ratios=(1,))
    ax, styles = axes[0, 0], way_styles()
    for way, style in styles.items():
        part = sets[sets["keys"] == way]
        ax.plot(part["effective_dim"], part["pairs"], linestyle="none", markersize=3.4, alpha=0.75, **style)
    known = sets[np.isfinite(sets["random_keys_hold"])].sort_values("effective_dim")
    ax.plot(known["effective_dim"], known["random_keys_hold"], color="0.3", **_axes.THEORY)
    _axes.power_axis(ax, "x", sets["effective_dim"], base=2)
    _axes.power_axis(ax, "y", sets["pairs"], base=2)
    _axes.finish(ax, "effective dimension, 1 / mean $\\cos^2$", "tokens remembered $N^*$, random values")
    handles = [_axes.line_handle(f"keys {way}", linestyle="none", markersize=4, **s) for way, s in styles.items()]
    handles += [_axes.line_handle("random keys of that dimension", color="0.3", **_axes.THEORY)]
    _grid.add_legend(figure, handles)
    _grid.add_caption(figure, [f"A point is a key head ({len(sets) // 2}). $N^*$: top-1 by index, random subsets."])
    return _grid.Grid(figure, axes, sets)
