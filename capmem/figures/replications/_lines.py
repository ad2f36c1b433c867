"""What these figures share: means over trials, and a line with its band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results
from capmem.figures import _axes, _words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

QUOTED: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markersize": 3.6, "markeredgewidth": 0.8}
BAND = "Bands and bars: 95% bootstrap intervals."


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over trials of every point, with its interval: the numbers that are drawn."""
    table = results.aggregate(frame, ["part", "line", "x"], ["value"])
    return table.drop(columns=["value_se", "value_nonfinite"])


def draw(ax: Axes, table: pd.DataFrame, part: str, line: str, **style: Any) -> None:
    """Draw one line of a part with the band of its interval, or its points with bars where the style has no line."""
    rows = table[(table["part"] == part) & (table["line"] == line)].sort_values("x")
    if rows.empty:
        raise KeyError(f"the table has no line {line!r} in {part!r}")
    spread = bool(rows["value_low"].notna().any())
    if spread and style.get("linestyle") == "none":
        reach = [rows["value"] - rows["value_low"], rows["value_high"] - rows["value"]]
        ax.errorbar(rows["x"], rows["value"], np.maximum(reach, 0), fmt="none", ecolor=style["color"], elinewidth=0.9)
    elif spread:
        ax.fill_between(rows["x"], rows["value_low"], rows["value_high"], color=style["color"], alpha=0.25, linewidth=0)
    ax.plot(rows["x"], rows["value"], **{**_axes.MEASURED, **style})


def lines_of(table: pd.DataFrame, part: str) -> list[str]:
    """Return the lines of a part, in their order in the table of measurements."""
    return list(dict.fromkeys(table.loc[table["part"] == part, "line"]))


def in_turn(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a colour and a marker of its own for each label, whatever it is called."""
    shades = _words.colours(len(labels), ordered=False)
    return {label: {"color": c, "marker": m} for label, c, m in zip(labels, shades, _words.MARKERS, strict=False)}


def without_marker(style: dict[str, Any]) -> dict[str, Any]:
    """Return a style with its colour alone."""
    return {"color": style["color"]}
