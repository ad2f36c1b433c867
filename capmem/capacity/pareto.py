"""Which memories hold more pairs than every other of at most their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results

if TYPE_CHECKING:
    import pandas as pd

_TASK = ("keys", "values", "query_cosine", "codebook_asked")


def task_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns that say what is to be held, not by which memory: only within these are sizes compared."""
    return [str(c) for c in table.columns if str(c).partition(".")[0] in _TASK]


def pareto(table: pd.DataFrame, by: Sequence[str] | None = None) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows hold more pairs than every row of at most as many bytes, a row without a number aside.

    Parameters
    ----------
    table : DataFrame
        Columns pairs and state_bytes.
    by : sequence of str, optional
        Rows are compared within groups that agree in these columns (default: keys, values and cues).
    """
    codes, _ = results.group(table, task_columns(table) if by is None else list(by))
    pairs, size = results.numbers(table, "pairs"), results.numbers(table, "state_bytes")
    best = np.zeros(len(table), dtype=bool)
    for code in np.unique(codes):
        most = 0.0
        members = np.flatnonzero((codes == code) & np.isfinite(pairs))
        for i in members[np.lexsort((-pairs[members], size[members]))]:
            best[i] = pairs[i] > most
            most = max(most, pairs[i])
    return best
