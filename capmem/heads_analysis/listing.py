"""The table of heads for a terminal: those that fit best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MOST = 40  # lines
COLUMNS = {  # column -> heading and digits
    "attended": ("attended", 1),
    "mean_cosine": ("mean cosine", 2),
    "effective_dim": ("effective dim", 1),
    "effective_dim_centred": ("centred", 1),
    "pairs_shown": ("N*", 0),
    "pairs_centred_shown": ("centred", 0),
    "best_map": ("best map", 0),
    "best_error": ("error", 2),
    "best_map_centred": ("best map, centred", 0),
    "best_error_centred": ("error", 2),
}


def listing(heads: pd.DataFrame) -> str:
    """Return a line a query head: the least fit error first, or the largest N* where nothing was fitted."""
    columns = [name for name in COLUMNS if name in heads and heads[name].notna().any()]
    by_fit = "best_error_centred" in columns
    order = heads.sort_values("best_error_centred" if by_fit else "pairs_random_values_centred", ascending=by_fit)
    table = [["head", *(COLUMNS[name][0] for name in columns)]]
    for _, row in order.head(MOST).iterrows():
        key = f" (key head {row['head']})" if row["head"] != row["query_head"] else ""
        table.append([f"L{row['layer']}H{row['query_head']}{key}", *(_cell(row[name], name) for name in columns)])
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    more = len(heads) - MOST
    title = "Heads, best fit first" if by_fit else "Heads, largest N* first"
    lines = [
        f"{title} (N*: top-1 by index, own values, with its 95% interval over random subsets)",
        lines[0],
        "-" * len(lines[0]),
        *lines[1:],
    ]
    return "\n".join([*lines, f"... and {more} more, see tables/heads.csv"] if more > 0 else lines)


def _cell(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if not COLUMNS[name][1]:
        return "-"
    return f"{value:.{COLUMNS[name][1]}f}" if np.isfinite(value) else "-"
