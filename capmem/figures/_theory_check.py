"""Theory against simulation: predicted against measured, a panel a metric, and the standard errors between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from capmem.figures import _axes, _grid, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_METRICS = (
    "relative_squared_error", "scale_optimal_error", "signal_to_noise", "cosine_similarity", "top1_accuracy",
)  # fmt: skip
_KINDS: dict[str, dict[str, Any]] = {  # told apart by shape and fill, in grey print too
    "approximate": {"marker": "^", "markersize": 3.6, "markeredgecolor": "#d1822f", "markerfacecolor": "none"},
    "exact": {"marker": "o", "markersize": 2.6, "markeredgecolor": "none", "markerfacecolor": "#1f3b73"},
    "cannot tell": {"marker": "s", "markersize": 5.5, "markeredgecolor": "0.3", "markerfacecolor": "none"},
    "fails": {"marker": "X", "markersize": 7, "markeredgecolor": "white", "markerfacecolor": "#b3161b"},
}
_LEAST = 1e-6  # below it is rounding, or nearly
_EDGE = 6.0


def theory_check(frame: pd.DataFrame) -> _grid.Grid:
    """Draw predicted against measured for each metric, and the histogram of z of exact predictions.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.theory_check`.

    Returns
    -------
    Grid
        Five panels of means, one of z-scores; the table holds the numbers drawn.
    """
    positive = (frame["measured"] > _LEAST) & (frame["predicted"] > _LEAST) & np.isfinite(frame["predicted"])
    told = np.where(frame["exact"], "exact", "approximate")
    kinds = frame["verdict"].where(frame["verdict"].isin(["fails", "cannot tell"]), told)
    table = frame.assign(kind=kinds)[positive].reset_index(drop=True)
    figure = _grid.new_figure(_grid.PAGE_WIDTH, 5.6)
    axes: _axes.Panels = figure.subplots(2, 3, squeeze=False)
    for ax, metric in zip(axes.flat, _METRICS, strict=False):
        _scatter(ax, table[table["metric"] == metric], metric)
    exact = frame[frame["exact"] & (frame["standard_error"] > 0) & np.isfinite(frame["z"])]
    _histogram(axes.flat[-1], exact[exact["z"] != 0]["z"].to_numpy(float), float(frame["limit"].iloc[0]))
    drawn = [kind for kind in _KINDS if kind != "fails" or (kinds == "fails").any()]
    handles = [_axes.line_handle(_name(k), linestyle="none", **_KINDS[k]) for k in drawn]
    _grid.add_legend(figure, [*handles, _axes.line_handle("equal", color="0.4", linewidth=0.9)])
    combinations = frame["combination"].nunique()
    caption = [
        f"Each point: the mean of {_trials(frame)} trials of one of {combinations} combinations of memory, map, keys, "
        "values, rule, read-out, step and cue, at one size; what is zero (below 1e-6) or infinite is not drawn.",
        f"Last panel: measured less predicted, in standard errors, for exact formulas; those beyond {_EDGE:g} are in "
        "the outer bars.",
    ]
    _grid.add_caption(figure, caption)
    return _grid.Grid(figure, axes, table)


def _scatter(ax: Axes, part: pd.DataFrame, metric: str) -> None:
    name = _words.axis_name(metric)
    if len(part):
        both = np.concatenate([part["predicted"], part["measured"]])
        low, high = both.min() / 1.3, both.max() * 1.3
        ax.plot([low, high], [low, high], color="0.4", linewidth=0.9, zorder=1)
        for kind, style in _KINDS.items():
            own = part[part["kind"] == kind]
            ax.plot(own["predicted"], own["measured"], linestyle="none", alpha=0.75, rasterized=True, **style)
        for which in ("x", "y"):
            _log_axis(ax, which, low, high)
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
    _axes.finish(ax, "predicted", "measured", name)


def _log_axis(ax: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis logarithmic, with ticks at 1, 2, 5 where it has few powers."""
    from matplotlib.ticker import NullLocator

    if high / low > 300:
        return _axes.power_axis(ax, which, [low * 10**0.5, high / 10**0.5], base=10, most_ticks=5)
    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [step * 10.0**p for p in powers for step in ((1, 2, 5) if high / low < 30 else (1, 3))]
    inside = [t for t in ticks if low <= t <= high]
    axis.set_ticks(inside, [f"{t:g}" for t in inside])
    axis.set_minor_locator(NullLocator())


def _histogram(ax: Axes, z: np.ndarray[Any, Any], limit: float) -> None:
    edges = np.linspace(-_EDGE, _EDGE, 49)
    if z.size:
        ax.hist(np.clip(z, -_EDGE, _EDGE), list(edges), color="#8fa3c7", density=True)
    x = np.linspace(-_EDGE, _EDGE, 241)
    ax.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi), color="black", linewidth=1.1)
    for side in (-limit, limit):
        ax.axvline(side, color="0.4", linestyle=":", linewidth=1)
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # no line runs through the words
    corners = ((0.03, "left", f"{z.size} exact\nnumbers"), (0.97, "right", "line: N(0, 1)\ndots: limit"))
    for place, aligned, told in corners:
        ax.text(place, 0.96, told, transform=ax.transAxes, va="top", ha=aligned, fontsize=_grid.SMALL, bbox=plain)
    _axes.finish(ax, "z (standard errors)", "density", "measured $-$ predicted")


def _name(kind: str) -> str:
    return {"exact": "exact formula", "approximate": "approximation", "cannot tell": "cannot be told"}.get(kind, kind)


def _trials(frame: pd.DataFrame) -> str:
    low, high = frame["trials"].min(), frame["trials"].max()
    return f"{low}" if low == high else f"{low}-{high}"
