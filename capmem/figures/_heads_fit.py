"""Which map fits the heads at which state size, and what the write rules give: medians over heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.figures import _axes, _grid, _palette
from capmem.figures._heads_keys import WAYS

if TYPE_CHECKING:
    import pandas as pd

BASELINES = {"uniform": (0, (5, 2)), "mean output": (0, (1, 1.2))}
RULES = ("hebbian", "decay", "delta", "least_squares")
ASIDE = 1.09  # maps of equal size are drawn side by side, a factor apart
ABOVE = 1.3  # errors above are drawn at the edge: worse than reading nothing


def head_fit(fit: pd.DataFrame) -> _grid.Grid:
    """Draw the error of each feature map against the heads' own attention, by floats in the state, with Pareto line.

    Parameters
    ----------
    fit : DataFrame
        The table of :mod:`capmem.heads_analysis`.

    Returns
    -------
    Grid
        Two panels, keys as they are and centred; the table holds the medians and the middle half of the heads.
    """
    table = _medians(fit)
    maps = [name for name in dict.fromkeys(table["map"]) if name not in BASELINES]
    styles = _palette.styles(maps)
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=4.4, ratios=(1, 1))
    for ax, way in zip(axes[0], WAYS, strict=True):
        part = table[table["keys"] == way]
        _points(ax, part, styles)
        _pareto(ax, part)
        for name, dash in BASELINES.items():
            level = table.loc[table["map"] == name, "error"].iloc[0]
            ax.axhline(level, color="0.4", linestyle=dash, linewidth=1.2)
        _axes.power_axis(ax, "x", part["floats"])
        _axes.finish(ax, "floats in the state, $m (d_v + 1)$", "fit error $|y - o| / |o|$", f"keys {way}")
        ax.set_ylim(0, ABOVE + 0.08)
    axes[0, 1].set_ylabel("")
    handles = _variants(styles)
    handles += [_axes.line_handle(f"{n} (baseline)", color="0.4", linestyle=d) for n, d in BASELINES.items()]
    handles += [_axes.line_handle("least error so far", color="black", linewidth=0.8)]
    _grid.add_legend(figure, handles)
    heads = len(fit[["layer", "query_head"]].drop_duplicates())
    told = f"Median over {heads} query heads; bar: middle half of them." if heads > 1 else "One query head."
    told += " Maps of equal size are drawn side by side."
    _grid.add_caption(figure, [told, f"At the upper edge, hollow: above {ABOVE}; denominators near zero, most often."])
    return _grid.Grid(figure, axes, table)


def _variants(styles: dict[Any, dict[str, Any]]) -> list[Any]:
    """Return a legend entry for each map, variants of one together: "dpfp, nu=1, 2, 3"."""
    found: dict[str, list[str]] = {}
    for name in styles:
        found.setdefault(name.partition("=")[0], []).append(name)
    entries = []
    for first, names in found.items():
        values = ", ".join(name.partition("=")[2] for name in names)
        label = f"{first}={values}" if values else first
        size = 4.5 if len(names) == 1 else 3.4
        entries.append(tuple(_axes.line_handle(label, linestyle="none", markersize=size, **styles[n]) for n in names))
    return entries


def _medians(fit: pd.DataFrame) -> pd.DataFrame:
    grouped = fit.groupby(["keys", "map", "features", "floats"], sort=False)
    table = _quartiles(grouped["error"])
    share = grouped["nonpositive_share"].mean().reset_index()
    joined: pd.DataFrame = table.merge(share, on=["keys", "map", "features", "floats"])
    return joined


def _quartiles(grouped: Any) -> pd.DataFrame:
    """Return the median as `error`, and the middle half as `error_low` and `error_high`, a row a group."""
    import pandas as pd

    parts = {"error_low": 0.25, "error": 0.5, "error_high": 0.75}
    return pd.DataFrame({name: grouped.quantile(q) for name, q in parts.items()}).reset_index()


def _points(ax: Any, part: pd.DataFrame, styles: dict[Any, dict[str, Any]]) -> None:
    columns = ["floats", "error_low", "error", "error_high"]
    for name, numbers in zip(part["map"], part[columns].to_numpy(dtype=float), strict=True):
        equal = part[part["floats"] == numbers[0]]["map"].tolist()
        floats = float(numbers[0]) * ASIDE ** (equal.index(name) - (len(equal) - 1) / 2)
        low, middle, high = np.minimum(numbers[1:], ABOVE)
        face = {"markerfacecolor": "white"} if numbers[2] > ABOVE else {}
        ax.vlines(floats, low, high, color=styles[name]["color"], linewidth=1)
        ax.plot(floats, middle, linestyle="none", markersize=5, **styles[name], **face)


def _pareto(ax: Any, part: pd.DataFrame) -> None:
    """Draw the least error that so many floats reach, as steps."""
    best = part.sort_values(["floats", "error"])
    reached = np.minimum.accumulate(best["error"].to_numpy())
    shown = reached < ABOVE
    ax.step(best["floats"][shown], reached[shown], where="post", color="black", linewidth=0.8, zorder=0)


def head_rules(rules: pd.DataFrame) -> _grid.Grid:
    """Draw the error that each write rule leaves with all tokens stored, by feature map; medians over heads.

    Parameters
    ----------
    rules : DataFrame
        The table of :mod:`capmem.heads_analysis`.

    Returns
    -------
    Grid
        Two panels, keys as they are and centred; the table holds medians and the middle half of the heads.
    """
    values = rules.groupby(["keys", "map", "features", "rule", "order"], sort=False)["scale_optimal_error"]
    table = _quartiles(values)
    lines = sorted(set(zip(table["rule"], table["order"], strict=True)), key=lambda line: (RULES.index(line[0]), line))
    styles = _palette.styles([f"{rule}, {order}" for rule, order in lines])
    maps = list(dict.fromkeys(table["map"]))
    figure, axes = _grid.plain_grid(width=_grid.PAGE_WIDTH, height=3.5, ratios=(1, 1))
    widths = table.drop_duplicates("map").set_index("map")["features"]
    for ax, way in zip(axes[0], WAYS, strict=True):
        for number, (rule, order) in enumerate(lines):
            part = table[(table["keys"] == way) & (table["rule"] == rule) & (table["order"] == order)]
            shift = 0.11 * (number - (len(lines) - 1) / 2)
            _beside(ax, part.set_index("map").reindex(maps), shift, {**styles[f"{rule}, {order}"], **_face(order)})
        ax.set_xticks(range(len(maps)), ["\n".join([*name.split(", "), f"({widths[name]})"]) for name in maps])
        _axes.finish(ax, "feature map (features)", "scale-optimal error", f"keys {way}")
        ax.set_ylim(-0.03, 1.03)
    axes[0, 1].set_ylabel("")
    looks = {_rule(*line): {**styles[", ".join(line)], **_face(line[1])} for line in lines}
    _grid.add_legend(figure, [_axes.line_handle(n, linestyle="none", markersize=5, **s) for n, s in looks.items()])
    tokens, heads = int(rules["tokens"].max()), len(rules[["layer", "head"]].drop_duplicates())
    told = f"All {tokens} tokens stored and read with their own keys; median over {heads} key heads, bar: middle half."
    _grid.add_caption(figure, [told, "Least squares is the best that any linear read-out of these features can do."])
    return _grid.Grid(figure, axes, table)


def _beside(ax: Any, part: pd.DataFrame, shift: float, style: dict[str, Any]) -> None:
    """Draw the medians of one line, a place for each map, with the middle half of the heads as bars."""
    places = np.arange(len(part)) + shift
    ax.vlines(places, part["error_low"], part["error_high"], color=style["color"], linewidth=1)
    ax.plot(places, part["error"], linestyle="none", markersize=5, **style)


def _face(order: str) -> dict[str, str]:
    return {"markerfacecolor": "white"} if order == "text" else {}


def _rule(rule: str, order: str) -> str:
    name = rule.replace("_", " ")
    return name if order == "any" else f"{name}, {order} order" if order == "text" else f"{name}, {order}"
