"""What figures call things, and which colours, markers and hatches stand for them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.results import METRICS

if TYPE_CHECKING:
    import pandas as pd

_AXES = {
    "num_pairs": "stored pairs $N$",
    "age": "age (1: the newest pair)",
    "key_dim": "key dimension $d$",
    "value_dim": "value dimension",
    "feature_dim": "feature dimension $D$",
    "state_bytes": "state size (bytes)",
    "keys.correlation": "key correlation",
    "keys.name": "key array",
    "query_cosine": "cosine of cue to key",
    "key_scale": "factor of keys",
    "feature_map": "feature map",
    "write_rule": "write rule",
    "readout": "read-out",
    "relative_squared_error": "relative squared error\n(fraction of $|v|^2$)",
    "scale_optimal_error": "scale-optimal error\n(fraction of $|v|^2$)",
    "cosine_similarity": "cosine similarity\n(1: exact direction)",
    "signal_to_noise": "signal-to-noise ratio\n(power)",
    "top1_accuracy": "top-1 accuracy\n(fraction of pairs)",
    "elapsed_s": "time (s)",
}
_SCALES = {
    "relative_squared_error": "relative squared error (0: exact, 1: as bad as reading zero)",
    "scale_optimal_error": "scale-optimal error (0: exact, 1: nothing retrieved)",
    "cosine_similarity": "cosine similarity (1: exact direction)",
    "signal_to_noise": "signal-to-noise ratio (power)",
    "top1_accuracy": "top-1 accuracy (fraction of pairs)",
}
_HEADINGS = {
    "keys.correlation": "correlation",
    "key_scale": "keys times",
    "key_dim": "key dimension",
    "value_dim": "value dimension",
    "num_pairs": "stored pairs",
    "query_cosine": "cue cosine",
    # Their values name themselves.
    "feature_map": "",
    "write_rule": "",
    "readout": "",
    "keys": "",
    "keys.name": "",
    "values": "",
    "memory": "",
}
# What a step of the memory is called where it is compared with being left out.
_STEPS = {
    "key_center": {"none": "keys as they are", "mean": "keys centred"},
    "feature_center": {"none": "features as they are", "mean": "features centred"},
    "key_norm": {"none": "keys as they are", "l2": "keys of unit norm", "sum": "keys of unit sum"},
    "feature_norm": {"none": "features as they are", "l2": "features of unit norm", "sum": "features of unit sum"},
}
_FIXED = {
    "memory": "{} memory",
    "feature_map": "feature map {}",
    "write_rule": "write rule {}",
    "readout": "read-out {}",
    "keys": "{} keys",
    "keys.correlation": "key correlation {}",
    "key_center": "keys centred",
    "key_norm": "keys normalised ({})",
    "key_scale": "keys times {}",
    "feature_center": "features centred",
    "feature_norm": "features normalised ({})",
    "state_dtype": "state in {}",
    "values": "{} values",
    "key_dim": "key dimension {}",
    "value_dim": "value dimension {}",
    "num_pairs": "{} stored pairs",
    "query_cosine": "cue cosine {}",
    "dtype": "{}",
}
_USUAL = {"memory": "linear", "query_cosine": "1", "key_scale": "1.0"}  # goes without saying, as "none" does
# States of a cell without a number: legend text and hatch.
HATCHES = {
    "not run": ("not run", "///"),
    "skipped": ("skipped", "..."),
    "failed": ("failed", "xxx"),
    "not finite": ("not finite", "\\\\\\"),
}
MARKERS = "osD^vPX<>*"
# Okabe and Ito's colours, which stay apart under every common colour blindness.
_CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
BOUNDED = {"scale_optimal_error", "top1_accuracy"}  # always in [0, 1]


def axis_name(column: str) -> str:
    """Return the name of an axis, with its unit."""
    return _AXES.get(column, METRICS.get(column, column))


def scale_name(column: str) -> str:
    """Return the name of a colour scale, with what its ends mean."""
    return _SCALES.get(column, axis_name(column))


def text(value: Any) -> str:
    """Return a value as a label; a missing one is "none"."""
    import pandas as pd

    if pd.isna(value):
        return "none"
    if value == "sqrt_dim":
        return "$\\sqrt{d}$"
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def describe(row: Any, table: pd.DataFrame) -> str:
    """Return the label of one row of a table of levels: the name, then the fields that it has.

    Of several fields, those that are the same for every row of this name say nothing, and are left out.
    """
    name, *fields = row
    same = table[table.iloc[:, 0] == name]
    given = {i: text(field) for i, field in enumerate(fields, start=1) if text(field) != "none"}
    telling = [i for i in given if len(given) == 1 or same.iloc[:, i].nunique(dropna=False) > 1]
    return ", ".join([text(name), *(f"{table.columns[i].partition('.')[2]}={given[i]}" for i in telling)])


def step(column: str, label: str) -> str:
    """Return the words for a choice of a step, e.g. "keys centred" for key_center=mean; else `label` itself."""
    return _STEPS.get(column, {}).get(label, label)


def heading(column: str, label: str) -> str:
    """Return a panel's title, e.g. "correlation 0.3"."""
    if column in _STEPS:
        return label
    prefix = _HEADINGS.get(column, column)
    return f"no {prefix}" if label == "none" and prefix else f"{prefix} {label}".strip()


def colours(count: int, ordered: bool) -> list[Any]:
    """Return `count` colours for lines: steps of one scale for an ordered quantity, else distinct ones."""
    from matplotlib import colormaps

    if ordered or count > len(_CATEGORIES):
        return [colormaps["viridis"](i) for i in np.linspace(0, 0.82, count)]
    return list(_CATEGORIES[:count])


def repeats(trials: pd.Series[Any]) -> str:
    """Return "mean of 8 trials", or what the range is."""
    low, high = (0, 0) if trials.empty else (int(trials.min()), int(trials.max()))
    if high <= 1:
        return "one trial"
    return f"mean of {low} trials" if low == high else f"mean of {low} to {high} trials"


def held_fixed(frame: pd.DataFrame, shown: Collection[str | None]) -> str:
    """Return the sentence that names the settings which no axis shows and which are the same in all rows."""
    columns = [c for c in _FIXED if c in frame.columns and c not in shown]
    fixed = {c: text(frame[c].iloc[0]) for c in columns if frame[c].nunique(dropna=False) == 1}
    facts = [_FIXED[c].format(label) for c, label in fixed.items() if label != _USUAL.get(c, "none")]
    unbroken = [fact.replace(" ", "\u00a0") for fact in facts]
    return f"Held fixed: {', '.join(unbroken)}." if facts else ""


def span(values: np.ndarray[Any, Any]) -> float:
    """Return the decades that the positive finite `values` span, 0 where some are not positive."""
    finite = values[np.isfinite(values)]
    if finite.size == 0 or finite.min() <= 0:
        return 0.0
    return math.log10(finite.max() / finite.min())
