"""Stored results as one tidy table: load it, see what varies in it, average over trials with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import intervals
from capmem.intervals import check_resampling

if TYPE_CHECKING:
    import pandas as pd

METRICS = {
    "relative_squared_error": "relative squared error",
    "scale_optimal_error": "scale-optimal error",
    "cosine_similarity": "cosine similarity",
    "signal_to_noise": "signal-to-noise ratio",
    "top1_accuracy": "top-1 accuracy",
}
CONFIGURATION = (
    "memory", "feature_map", "write_rule", "readout", "key_center", "key_norm", "key_scale", "feature_center",
    "feature_norm", "state_dtype", "round_every", "keys", "values", "key_dim", "value_dim", "feature_dim",
    "num_pairs", "query_cosine", "codebook_asked", "max_queries", "dtype", "redraw_map", "seed",
)  # fmt: skip
# Written beside every result, yet no setting: what identifies a row, what was counted, what it cost.
_RECORDED = {
    "point", "status", "reason", "warning", "error", "traceback", "trial", "num_queries", "num_scored", "codebook_size",
    "nonpositive_denominators", "zero_denominators", "zero_keys", "zero_queries", "nonfinite_retrieved",
    "state_elements", "state_bytes", "elapsed_s", "format", "format_version", "numerics",
}  # fmt: skip


def load(folder: str | Path, by_age: bool = False) -> pd.DataFrame:
    """Return everything that is stored in a sweep's `folder`: a row per (sweep point, num_pairs, trial).

    With `by_age`, the second table: a row per (sweep point, num_pairs, trial, age_bin), of a sweep with age_bins.
    """
    from capmem import store

    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"no results folder at {path}")
    return store.read_ages(path) if by_age else store.read(path)


def varying(frame: pd.DataFrame) -> list[str]:
    """Return the configuration columns that take more than one value (absent counts as a value).

    Trials are repetitions and no setting, so `trial` is never among them. The order is that of
    ``CONFIGURATION``, the fields of a choice (``feature_map.nu``) right after it, unknown columns last: it
    does not depend on the order of columns or rows.
    """
    return [c for c in _settings(frame) if frame[c].nunique(dropna=False) > 1]


def mixed(frame: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the settings that differ among rows which agree in all of `by`.

    An average over such a group would mix different experiments. `trial` and `seed` are repetitions, and may
    differ; the codebook size may not, where the number of pairs is the same.
    """
    others = [c for c in varying(frame) if c not in by and c != "seed"]
    if "num_pairs" in by and "codebook_size" in frame.columns and "codebook_size" not in by:
        others.append("codebook_size")
    if not others:
        return []
    codes, _ = group(frame, by)
    return [c for c in others if (frame[c].groupby(codes).nunique(dropna=False) > 1).any()]


def aggregate(
    frame: pd.DataFrame,
    by: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Average over trials, with standard errors and bootstrap intervals.

    Parameters
    ----------
    frame : DataFrame
        The tidy table; only rows with status "ok" count (all rows, where there is no such column).
    by : sequence of str, optional
        Columns that define a group. Default: every setting that varies, but for the seed.
    metrics : sequence of str, optional
        Numeric columns to average. Default: those of ``METRICS`` that the table has.
    confidence : float
        Coverage asked of the bootstrap interval of the mean; see :func:`capmem.intervals.tail_of`.
    resamples : int
        Number of bootstrap resamples.
    seed : int
        Seed of the resampling; 0 is a seed as any other.

    Returns
    -------
    DataFrame
        One row a group, sorted by `by`: `trials` and, for each metric, ``<metric>`` (mean over the finite
        values), ``<metric>_se``, ``<metric>_low``, ``<metric>_high`` (nan with fewer than two values),
        ``<metric>_nonfinite`` (number of values left out) and ``theory_<metric>``.

    Warns
    -----
    UserWarning
        If a group holds rows of different settings: see `mixed`.
    """
    names = [m for m in METRICS if m in frame.columns] if metrics is None else list(metrics)
    require_columns(frame, [*(by or ()), *names])
    check_resampling(confidence, resamples)
    rows = measured(frame)
    keys = [c for c in varying(rows) if c != "seed"] if by is None else list(by)
    if hidden := [c for c in mixed(rows, keys) if c not in names]:
        warnings.warn(f"the groups by {keys} average over different {', '.join(hidden)}", stacklevel=2)
    codes, table = group(rows, keys)
    table["trials"] = np.bincount(codes, minlength=len(table))
    for name in names:
        statistics = intervals.statistics(numbers(rows, name), codes, len(table), confidence, resamples, seed)
        for suffix, column in statistics.items():
            table[name + suffix] = column
        if (theory := f"theory_{name}") in rows.columns:
            table[theory] = intervals.means(numbers(rows, theory), codes, len(table))
    return table


def measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with status "ok", ordered by seed and trial: row order then changes no result."""
    rows = frame[frame["status"] == "ok"] if "status" in frame.columns else frame
    repeats = [c for c in ("seed", "trial") if c in rows.columns]
    return rows.sort_values(repeats, kind="stable") if repeats else rows


def group(frame: pd.DataFrame, by: Sequence[str]) -> tuple[np.ndarray[Any, Any], pd.DataFrame]:
    """Return each row's group number, and the table of groups in order; missing values are a group.

    The order is ascending, "none" (a step that is left out) before all other names.
    """
    import pandas as pd

    if not by:
        return np.zeros(len(frame), dtype=np.intp), pd.DataFrame(index=range(min(len(frame), 1)))
    if frame.empty:
        return np.zeros(0, dtype=np.intp), frame[list(by)].reset_index(drop=True)
    sorting = frame[list(by)].apply(lambda column: column.mask(column.isin(["none"]), ""))
    codes = sorting.groupby(list(by), dropna=False, sort=True, observed=True).ngroup().to_numpy()
    _, first = np.unique(codes, return_index=True)
    return codes, frame[list(by)].iloc[first].reset_index(drop=True)


def require_columns(frame: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise ValueError for an empty table, or for columns that it does not have."""
    if frame.empty:
        raise ValueError("the table has no rows")
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        given = ", ".join(sorted(map(str, frame.columns)))
        raise ValueError(f"no column {', '.join(map(repr, missing))} in the table; it has {given}")


def numbers(frame: pd.DataFrame, column: str) -> np.ndarray[Any, Any]:
    """Return a column as float64, missing values as nan."""
    import pandas as pd

    try:
        return pd.to_numeric(frame[column]).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(f"column {column!r} is not numeric, it holds {frame[column].iloc[0]!r}") from None


def _settings(frame: pd.DataFrame) -> list[str]:
    def place(column: str) -> tuple[int, str]:
        root = column.partition(".")[0]
        return (CONFIGURATION.index(root) if root in CONFIGURATION else len(CONFIGURATION), column)

    left_out = _RECORDED | METRICS.keys()
    columns = [str(c) for c in frame.columns if c not in left_out and not str(c).startswith("theory_")]
    return sorted(columns, key=place)
