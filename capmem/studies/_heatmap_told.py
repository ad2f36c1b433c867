"""What a heatmap shows, in words: N* along the axis that is not N, the ends of the metric, and the closed form."""

from __future__ import annotations

import math
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import capacity, results

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("x", "y", "facet", "facet_row")
SHOWN = ("metric", *ROLES, "threshold", "scale")  # settings that the figure and the finding read from the table
ERRORS = 5  # standard errors, of few trials, that a closed form may be away


def shown(table: pd.DataFrame) -> dict[str, Any]:
    """Return how the table is to be drawn; what was left out is None."""
    first = table.iloc[0]
    found = {name: first[f"shown_{name}"] for name in SHOWN}
    return {name: None if value is None or value != value else value for name, value in found.items()}


def criterion(table: pd.DataFrame) -> capacity.Criterion | None:
    """Return what N* is told by, where the metric has a good side and there is a threshold."""
    told = shown(table)
    if told["threshold"] is None or told["metric"] not in results.METRICS:
        return None
    return capacity.Criterion(told["metric"], told["threshold"])


def finding(table: pd.DataFrame) -> str:
    """Return N* along the other axis, where N is one; where the metric is least and largest; and the closed form."""
    told = shown(table)
    by = [told[role] for role in ROLES if told[role] is not None]
    metric, theory = told["metric"], f"theory_{told['metric']}"
    means = results.aggregate(table, by, [metric])
    cells = means[np.isfinite(results.numbers(means, metric))]
    sentences = [_capacities(table, told), _range(cells, metric, by)]
    if theory in cells:
        sentences.append(_closed_form(cells, metric))
    if missing := math.prod(table[column].nunique(dropna=False) for column in by) - len(cells):
        sentences.append(f"{missing} cells hold no number.")
    return " ".join(sentence for sentence in sentences if sentence)


def _capacities(table: pd.DataFrame, told: dict[str, Any]) -> str:
    """Return N* at both ends of the axis that is not N, for each panel."""
    limit = criterion(table)
    if limit is None or "num_pairs" not in (told["x"], told["y"]):
        return ""
    across = told["y"] if told["x"] == "num_pairs" else told["x"]
    panels = [told[role] for role in ("facet", "facet_row") if told[role] is not None]
    found = capacity.from_table(table, limit, [*panels, across])
    found["told"] = [
        capacity.CapacityEstimate(row["pairs"], row["low"], row["high"], row["bracketed"], limit).brief()
        for row in found.to_dict("records")
    ]
    codes, groups = results.group(found, panels)
    ends = []
    for i in range(len(groups)):
        part = found[codes == i]
        names = [f"{c} = {v}" if isinstance(v, Number) else str(v) for c, v in groups.iloc[i].items()]
        name = ", ".join(names)
        first, last = found[across].iloc[0], found[across].iloc[-1]
        own = part[across].iloc[0], part[across].iloc[-1]
        at = "" if own == (first, last) else f" (from {own[0]} to {own[1]})" if own[0] != own[1] else f" (at {own[0]})"
        both = [part["told"].iloc[0], part["told"].iloc[-1]] if own[0] != own[1] else [part["told"].iloc[0]]
        ends.append(f"{name} {' to '.join(both)}{at}".strip())
    span = f"from {across} = {first} to {last}" if first != last else f"at {across} = {first}"
    return f"N* ({limit}) {span}: {'; '.join(ends)}."


def _range(cells: pd.DataFrame, metric: str, by: list[str]) -> str:
    if not len(cells):
        return f"No cell has a finite {results.METRICS.get(metric, metric)}."
    ends = []
    rows = cells.sort_values(metric, kind="stable").to_dict("records")
    for row in (rows[0], rows[-1]):
        ends.append(f"{row[metric]:.3g} ({', '.join(f'{column} = {row[column]}' for column in by)})")
    return f"The mean {results.METRICS.get(metric, metric)} goes from {ends[0]} to {ends[1]}."


def _closed_form(cells: pd.DataFrame, metric: str) -> str:
    """Return how far the means are from the closed form, by share of it and by standard errors."""
    known = cells[np.isfinite(results.numbers(cells, f"theory_{metric}")) & (cells[f"theory_{metric}"] != 0)]
    if not len(known):
        return ""
    away = (known[metric] - known[f"theory_{metric}"]).abs()
    far = int((away > ERRORS * known[f"{metric}_se"]).sum())
    median = (away / known[f"theory_{metric}"]).median()
    return (
        f"The closed form, which {len(known)} of {len(cells)} cells have, is {median:.1%} "
        f"away in the median cell, and by more than {ERRORS} standard errors in {far}."
    )
