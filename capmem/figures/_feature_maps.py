"""Feature maps side by side: effective dimension and capacity, and how close their weights come to softmax's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results
from capmem.figures import _axes, _grid, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SCALES = {"unit": "unit keys", "normal": "$N(0, 1)$ keys"}
_STYLES: dict[str, dict[str, Any]] = {
    "unit": {"color": "#0072B2", "marker": "o", "markerfacecolor": "white"},
    "normal": {"color": "#D55E00", "marker": "o"},
}
_SHIFT = {"unit": -0.16, "normal": 0.16}  # rows apart
_ALARM: dict[str, Any] = {"marker": "x", "color": "black", "markersize": 6, "markeredgewidth": 1.4, "linestyle": "none"}
_TICK: dict[str, Any] = {"marker": "|", "color": "black", "markersize": 6, "markeredgewidth": 1.1, "linestyle": "none"}
_CENTRED = {"marker": "D", "markersize": 3, "linestyle": "none"}
_EQUAL = {"key_dim": "equal key dimension $d$ = {d}", "state": "equal state: $D \\leq$ {D}"}
_QUANTITIES = {"effective_dimension": "effective dimension $D_{\\mathrm{eff}}$", "capacity": "capacity $N^*$ (pairs)"}
_FIT_ENDS = (1e-6, 1e7)
_FIT_END = 1.3  # of the axis that is linear
_FIT_PANELS = (  # what is drawn, of keys at which scales, and the name of its axis
    ("fit_error", ("unit",), "fit error, unit keys"),
    ("fit_error", ("normal",), "fit error,\n$N(0, 1)$ keys"),
    ("entropy", ("unit", "normal"), "entropy of weights\n(1: uniform)"),
    ("largest_weight", ("unit", "normal"), "largest weight"),
)
_CUES = {"stored": "stored keys", "independent": "queries independent of the keys"}


def feature_maps(frame: pd.DataFrame) -> _grid.Grid:
    """Draw the effective dimension and N* of every map at both key scales, at equal d and at equal D.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.feature_maps`; rows of part "map" count.

    Returns
    -------
    Grid
        Two rows (equal d, equal D) of two panels; the table holds the rows drawn.
    """
    table = _axes.part(frame, "map")
    same = table[(table["equal"] == "key_dim") & (table["scale"] == "normal")]
    order = list(same.sort_values("theory_capacity", na_position="first").sort_values("capacity")["feature_map"])
    figure, axes = _axes.panels(2, 2, height=0.42 * len(order) + 2.4)
    for line, equal in zip(axes, _EQUAL, strict=True):
        part = table[table["equal"] == equal]
        for ax, (value, name) in zip(line, _QUANTITIES.items(), strict=True):
            _rows_axis(ax, order, labelled=ax is line[0])
            _draw_value(ax, part, value, order)
            ax.set_xscale("log")
            ax.set_xlabel(name, fontsize=_grid.MEDIUM)
            ax.tick_params(labelbottom=True)
        line[0].set_title(_title(part, equal), fontsize=_grid.MEDIUM, loc="left")
        _name_sizes(line[1], part, order)
    _grid.add_legend(figure, _handles(table))
    _grid.add_caption(figure, _caption(table))
    return _grid.Grid(figure, axes, table)


def softmax_fit(frame: pd.DataFrame) -> _grid.Grid:
    """Draw how far each map's normalised weights are from softmax's, their entropy and their largest weight.

    Parameters
    ----------
    frame : DataFrame
        The table of :mod:`capmem.studies.feature_maps`; rows of part "weights" at the largest N count.

    Returns
    -------
    Grid
        Four panels; the table holds the rows drawn.
    """
    table = _axes.part(frame, "weights")
    table = table[table["num_pairs"] == table["num_pairs"].max()].reset_index(drop=True)
    of = table[table["scale"] == "normal"].sort_values("fit_error", ascending=False)
    order = [*(name for name in of["feature_map"] if name not in ("softmax", "uniform")), "uniform", "softmax"]
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=0.225 * len(order) + 1.9, ratios=(1, 1, 1, 1))
    for ax, (value, scales, name) in zip(axes[0], _FIT_PANELS, strict=True):
        _rows_axis(ax, order, labelled=ax is axes[0, 0])
        _draw_weights(ax, table, value, scales, order)
        ax.set_xlabel(name, fontsize=_grid.MEDIUM)
    _fit_axis(axes[0, 0])
    axes[0, 1].set_xlim(-0.05, _FIT_END)
    axes[0, 3].set_xscale("log")
    axes[0, 3].set_xlim(right=1.6)
    for ax in axes[0, :2]:
        ax.axvline(1, color="0.4", linestyle=":", linewidth=1.2)
    _beyond(axes[0, 1], table[table["scale"] == "normal"].set_index("feature_map").loc[order, "fit_error"], _FIT_END)
    _grid.add_legend(figure, _fit_handles(table))
    _grid.add_caption(figure, _fit_caption(table))
    return _grid.Grid(figure, axes, table)


def _draw_weights(ax: Axes, table: pd.DataFrame, value: str, scales: Sequence[str], order: Sequence[str]) -> None:
    """Draw one quantity of the weights of all maps, and say where signed weights leave none."""
    ax.axhline(len(order) - 2.5, color="0.4", linewidth=0.8)  # baselines above
    for scale in scales:
        part = table[table["scale"] == scale].set_index("feature_map").loc[list(order)]
        _points(ax, results.numbers(part, value), scale, 0 if len(scales) == 1 else _SHIFT[scale])
    for place in np.flatnonzero(part[value].isna()):
        ax.annotate("signed", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center",
                    fontsize=7, color="0.4")  # fmt: skip


def _fit_handles(table: pd.DataFrame) -> list[Any]:
    handles = [
        _axes.line_handle(t, **{**_STYLES[s], "markersize": 4.5, "linestyle": "none"}) for s, t in _SCALES.items()
    ]
    handles.append(_axes.line_handle("no closer than uniform weights", color="0.4", linestyle=":", linewidth=1.2))
    if (results.numbers(table[table["scale"] == "normal"], "fit_error") > _FIT_END).any():
        handles.append(_axes.line_handle("beyond the axis", color="0.3", marker=">", markersize=4.5, linestyle="none"))
    return handles


def _fit_caption(table: pd.DataFrame) -> list[str]:
    first = table.iloc[0]
    told = (
        f"Weights of {first['num_queries']:.0f} {_CUES[first['cues']]} over $N$ = {first['num_pairs']:.0f} keys, "
        f"$d$ = {first['key_dim']:.0f}; softmax of $q\\cdot k/\\sqrt{{d}}$."
    )
    fit = "Fit error: median of $|w-p|^2/|u-p|^2$, $p$ softmax's weights, $u$ uniform."
    signed = "Signed: some weights are negative, which leaves no entropy."
    return [told, fit, signed if (table["negative_weights"] > 0).any() else ""]


def _rows_axis(ax: Axes, order: Sequence[str], labelled: bool) -> None:
    """Give each map a row, the last one on top, with a light band behind every second."""
    labels = [name.replace(", ", ",\n") if len(name) > 26 else name for name in order]
    ax.set_yticks(range(len(order)), labels if labelled else [])
    ax.set_ylim(-0.7, len(order) - 0.3)
    for place in range(0, len(order), 2):
        ax.axhspan(place - 0.5, place + 0.5, color="0.96", linewidth=0, zorder=0)
    ax.grid(axis="x", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=_grid.SMALL)
    for label in ax.get_yticklabels():
        if "\n" in label.get_text():
            label.set(fontsize=6.5, linespacing=1.0)


def _points(ax: Axes, values: np.ndarray[Any, Any], scale: str, shift: float, **more: Any) -> None:
    style = {"linestyle": "none", "markersize": 4.5, **_STYLES[scale], **more}
    ax.plot(values, np.arange(len(values)) + shift, **style)


def _draw_value(ax: Axes, part: pd.DataFrame, value: str, order: Sequence[str]) -> None:
    """Draw one quantity of all maps, its closed form, and, of D_eff, the centred one, D and alarms."""
    for scale in _SCALES:
        rows = part[part["scale"] == scale].set_index("feature_map").loc[list(order)]
        places = np.arange(len(order)) + _SHIFT[scale]
        if value == "effective_dimension":
            ax.barh(places, rows["feature_dim"], 0.3, color="0.86", linewidth=0, zorder=0.5)
            _points(ax, results.numbers(rows, "centred_effective_dimension"), scale, _SHIFT[scale], **_CENTRED)
        else:
            ax.hlines(places, np.maximum(results.numbers(rows, f"{value}_low"), 0.5),
                      results.numbers(rows, f"{value}_high"), color=_STYLES[scale]["color"], linewidth=1.2)  # fmt: skip
        _points(ax, results.numbers(rows, value), scale, _SHIFT[scale])
        ax.plot(results.numbers(rows, f"theory_{value}"), places, **_TICK)
        if value == "effective_dimension":
            alarm = rows["above_width"].to_numpy(dtype=bool)
            largest = results.numbers(rows, "largest_effective_dimension")
            ax.hlines(places[alarm], results.numbers(rows, value)[alarm], largest[alarm], color="black", linewidth=0.8,
                      linestyle=":")  # fmt: skip
            ax.plot(largest[alarm], places[alarm], **_ALARM)


def _name_sizes(ax: Axes, part: pd.DataFrame, order: Sequence[str]) -> None:
    """Write d and D of each map at the right."""
    of = {row["feature_map"]: row for row in part.to_dict("records")}
    for place, name in enumerate(order):
        sizes = f"{of[name]['key_dim']:.0f}, {of[name]['feature_dim']:.0f}"
        ax.annotate(sizes, (1, place), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    va="center", fontsize=_grid.SMALL)  # fmt: skip
    ax.annotate("$d$, $D$", (1, 1), (4, 4), xycoords="axes fraction", textcoords="offset points",
                fontsize=_grid.SMALL)  # fmt: skip


def _title(part: pd.DataFrame, equal: str) -> str:
    text = _EQUAL[equal].format(d=f"{part['key_dim'].iloc[0]:.0f}", D=f"{part['feature_dim'].max():.0f}")
    return text[0].upper() + text[1:]


def _handles(table: pd.DataFrame) -> list[Any]:
    from matplotlib.patches import Patch

    def handle(label: str, style: Mapping[str, Any]) -> Any:
        return _axes.line_handle(label, **{"markersize": 4.5, **style, "linestyle": "none"})

    found = [handle(text, _STYLES[scale]) for scale, text in _SCALES.items()]
    found.append(handle("features centred", {"color": "0.3", **_CENTRED}))
    found.append(handle("closed form", _TICK))
    found.append(Patch(facecolor="0.86", label="up to $D$"))
    if table["above_width"].astype(bool).any():
        found.append(handle("above $D$: not to be trusted", _ALARM))
    return found


def _caption(table: pd.DataFrame) -> list[str]:
    first = table.iloc[0]
    trials = _words.repeats(table["trials"])
    unmeant = table["centred_effective_dimension"].isna().any()
    alarm = "Crosses: largest of the trials, where it is above $D$, which heavy tails of the kernel cause."
    return [
        f"$D_{{\\mathrm{{eff}}}}$: {trials} of {first['num_keys']:.0f} keys. $N^*$: scale-optimal error ≤ 0.5, "
        "Hebbian, simulated; bars: 95% bootstrap interval.",
        "Features that depend on the place of a key have no one mean to take out." if unmeant else "",
        alarm if table["above_width"].astype(bool).any() else "",
    ]


def _fit_axis(ax: Axes) -> None:
    """Make the axis logarithmic; what is exact stands at its left end."""
    low, high = _FIT_ENDS
    for line in ax.lines:
        given = np.asarray(line.get_xdata(), dtype=float)
        if given.size > 2:
            line.set_xdata(np.clip(given, low, high))
    ax.set_xscale("log")
    ax.set_xlim(low / 3, high * 3)
    ax.set_xticks([low, 1, 1e6], ["$\\leq 10^{-6}$", "1", "$10^6$"])
    ax.minorticks_off()


def _beyond(ax: Axes, values: pd.Series[float], end: float) -> None:
    """Mark at the edge what lies beyond it."""
    far = np.flatnonzero(values.to_numpy(dtype=float) > end)
    style = {"linestyle": "none", "marker": ">", "markersize": 4.5, "color": _STYLES["normal"]["color"]}
    ax.plot(np.full(far.size, end * 0.98), far, **style, clip_on=False)
