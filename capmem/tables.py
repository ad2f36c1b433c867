"""Tables for a terminal: capacities by setting, and means where there is one number of pairs only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from capmem import results
from capmem.capacity import CapacityEstimate

if TYPE_CHECKING:
    import pandas as pd


def summary_table(estimates: pd.DataFrame, rows: Sequence[str], column: str = "key_dim") -> str:
    """Return the estimates of `from_table` as text for a terminal: `rows` down, `column` across.

    Cells are N*, ">=" or "<" the end of the grid where it does not bracket N*, and "-" where nothing was run, or where
    no value is finite: an overflow is no bound.
    """
    results.require_columns(estimates, [*rows, column, "criterion", "pairs", "low", "high", "bracketed"])
    if estimates.duplicated([*rows, column]).any():
        raise ValueError(f"several estimates share one cell of {[*rows, column]}: add the column that tells them apart")
    across, left = (results.group(estimates, by)[1] for by in ([column], rows))
    cells = {tuple(_text(row[c]) for c in [*rows, column]): _cell(row) for _, row in estimates.iterrows()}
    heads = [_text(value) for value in across[column]]
    labels = [[_text(row[c]) for c in rows] for _, row in left.iterrows()]
    body = [[*names, *(cells.get((*names, head), "-") for head in heads)] for names in labels]
    lines = _align([[*rows, *heads], *body], len(rows), column)
    dashes = sum(line[len(rows) :].count("-") for line in body)
    overflows = list(cells.values()).count("-")
    reasons = ["not run"] * (dashes > overflows) + ["no finite value"] * (overflows > 0)
    notes = [f"-: {', or '.join(reasons)}"] if reasons else []
    return "\n".join([_headline(estimates, [*rows, column]), "", *lines, *notes])


def means_table(frame: pd.DataFrame, by: Sequence[str]) -> str:
    """Return a table of what was measured, for a sweep of one number of pairs: N* would need several."""
    told = ["scale_optimal_error", "top1_accuracy", "cosine_similarity"]
    metrics = [name for name in told if name in frame.columns]
    table = results.aggregate(frame, by, metrics)
    heads = [name for metric in metrics for name in (results.METRICS[metric], "closed form")]
    lines = [[*by, *heads]]
    for _, row in table.iterrows():
        cells = [_text(row[name]) for name in by]
        for metric in metrics:
            low, high = row[f"{metric}_low"], row[f"{metric}_high"]
            interval = f" ({low:.3f}-{high:.3f})" if low == low else ""
            theory = row.get(f"theory_{metric}", float("nan"))
            cells += [f"{row[metric]:.3f}{interval}", f"{theory:.3f}" if theory == theory else "-"]
        lines.append(cells)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    count, pairs = int(frame["trial"].nunique()), int(frame["num_pairs"].iloc[0])
    bars = "95% interval of the mean" if count >= 6 else "range of their resampled means: too few for an interval"
    head = f"Means of {count} trials at {pairs} pairs ({bars}); several num_pairs give N*"
    body = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([head, "", *body])


def _text(value: Any) -> str:
    import pandas as pd

    if pd.isna(value):
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(row: pd.Series[Any]) -> str:
    estimate = CapacityEstimate(row["pairs"], row["low"], row["high"], bool(row["bracketed"]))
    if estimate.bound == "below" and row.get("finite") == 0:
        return "-"
    return estimate.brief().replace(" ", "" if estimate.bound != "no data" else " ")


def _headline(estimates: pd.DataFrame, shown: Sequence[str]) -> str:
    """Return the line above the table: what N* is here, and what was held fixed."""
    criteria = " or ".join(map(str, estimates["criterion"].unique()))
    facts = []
    if "value_dim" in estimates.columns and "value_dim" not in shown:
        widths = estimates["value_dim"]
        same = "key_dim" in estimates.columns and (widths == estimates["key_dim"]).all()
        facts.append("value_dim = key_dim" if same and widths.nunique() > 1 else f"value_dim {_range(widths)}")
    if "trials" in estimates.columns:
        counts = estimates["trials"]
        facts.append(f"{_range(counts)} trial{'' if (counts == 1).all() else 's'}")
    return "; ".join([f"Pairs held (N*): largest number of pairs with {criteria}", ", ".join(facts)]).rstrip("; ")


def _range(values: pd.Series[Any]) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _align(table: list[list[str]], labels: int, column: str) -> list[str]:
    """Return the lines of `table`, its first `labels` columns flush left, the others right under a heading."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = [
        "  ".join(c.ljust(w) if i < labels else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in table
    ]
    indent = sum(w + 2 for w in widths[:labels])
    return [" " * indent + column, lines[0], "-" * len(lines[0]), *lines[1:]]
