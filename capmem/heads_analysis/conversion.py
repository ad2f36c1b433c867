"""Which heads are worth converting: one row a query head, and the rank correlations that say what decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from capmem.heads_analysis.arrays import AS_THEY_ARE, CENTRED, Floats
from capmem.heads_analysis.equivalents import random_keys_hold
from capmem.heads_analysis.fit import BASELINES
from capmem.heads_analysis.recall import RANDOM, TEXT, Case
from capmem.heads_analysis.task import ALL

if TYPE_CHECKING:
    import pandas as pd

KEY = ["layer", "head"]
SETS = {"effective_dim": "effective_dim", "pairs": "pairs_random_values", "random_keys_hold": "random_keys_hold"}
WAYS = {AS_THEY_ARE: "", CENTRED: "_centred"}  # how the columns of each end
RESAMPLES = 400


def overview(tables: Mapping[str, pd.DataFrame], attended: pd.DataFrame) -> pd.DataFrame:
    """Return a row a query head: attended tokens, effective dimension, N*, best map and its error, both ways.

    `random_keys_hold` is N* of random keys of the effective dimension, with random values, by the closed form.
    `pairs` is N* by index, random order, head's own values; where it is only bounded, the bound counts
    (`pairs_shown`, with the interval, says so); `pairs_random_values` the same with random values.
    """
    table, told = attended, tables["capacity"]
    accuracy = float(told[told["criterion"] == "top1_accuracy"]["threshold"].iloc[0])
    if attended.empty:
        table = tables["dimensions"][KEY].drop_duplicates().assign(query_head=lambda t: t["head"])
    for way, end in WAYS.items():
        dims = tables["dimensions"]
        dims = dims[(dims["choice"] == ALL) & (dims["keys"] == way)]
        names = {name: f"{name}{end}" for name in ("mean_cosine", "effective_dim", "random_keys_hold")}
        hold = [random_keys_hold(d, int(v), accuracy) for d, v in dims[["effective_dim", "value_dim"]].to_numpy()]
        table = table.merge(dims.assign(random_keys_hold=hold)[[*KEY, *names]].rename(columns=names), on=KEY)
        for values, column in (("own", f"pairs{end}"), ("random", f"pairs_random_values{end}")):
            found = {"least": column, "shown": f"{column}_shown"}
            held = capacities(tables["capacity"], way, values)[[*KEY, *found]]
            table = table.merge(held.rename(columns=found), on=KEY, how="left")
        if len(tables["fit"]):
            table = table.merge(best_fit(tables["fit"], way, end), on=[*KEY, "query_head"], how="left")
    return table


def capacities(
    table: pd.DataFrame, keys: str, values: str = "own", order: str = "shuffled", criterion: str = "top1_accuracy"
) -> pd.DataFrame:
    """Return the rows of a case and criterion, all tokens, with `least`: N*, or the bound where it is not bracketed."""
    told = {"choice": ALL, "keys": keys, "values": values, "order": order, "criterion": criterion}
    found = table
    for column, value in told.items():
        found = found[found[column] == value]
    edge = found["low"].where(found["bound"] == "at least", found["high"])
    return found.assign(least=found["pairs"].where(found["bound"] == "", edge))


def best_fit(fit: pd.DataFrame, way: str, end: str = "") -> pd.DataFrame:
    """Return the map of least error of every query head, baselines aside, with its error."""
    tried = fit[(fit["keys"] == way) & ~fit["map"].isin(BASELINES) & np.isfinite(fit["error"])]
    best = tried.loc[tried.groupby([*KEY, "query_head"])["error"].idxmin()]
    names = {"map": f"best_map{end}", "error": f"best_error{end}", "floats": f"best_floats{end}"}
    chosen: pd.DataFrame = best[[*KEY, "query_head", *names]].rename(columns=names)
    return chosen


class Correlation(NamedTuple):
    """A rank correlation over `count` rows, with its 95% bootstrap interval over them."""

    value: float
    low: float
    high: float
    rows: int

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f}, {self.rows} rows)"


def rank_correlation(x: pd.Series[float], y: pd.Series[float], seed: int = 0) -> Correlation:
    """Return Spearman's correlation of two columns: that of their ranks, ties at their mean rank."""
    given = np.stack([np.asarray(x, float), np.asarray(y, float)])
    given = given[:, np.isfinite(given).all(axis=0)]
    count = given.shape[1]
    if count < 3:
        return Correlation(float("nan"), float("nan"), float("nan"), count)
    rng = np.random.default_rng(seed)
    drawn = np.array([_of_ranks(given[:, rng.integers(count, size=count)]) for _ in range(RESAMPLES)])
    low, high = np.nanquantile(drawn, [0.025, 0.975]) if np.isfinite(drawn).any() else (np.nan, np.nan)
    return Correlation(_of_ranks(given), float(low), float(high), count)


def _of_ranks(given: Floats) -> float:
    ranks = np.stack([_ranks(row) for row in given])
    ranks -= ranks.mean(axis=1, keepdims=True)
    size = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float((ranks[0] * ranks[1]).sum()) / size if size else float("nan")


def _ranks(row: Floats) -> Floats:
    _, place, counts = np.unique(row, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: Floats = (ends - (counts - 1) / 2)[place]
    return means


def key_sets(heads: pd.DataFrame) -> pd.DataFrame:
    """Return a row a key head and way (as they are, centred): the columns of SETS, under their names there."""
    import pandas as pd

    once = heads.drop_duplicates(KEY)
    parts = [
        once[KEY].assign(keys=way, **{name: once[f"{column}{end}"] for name, column in SETS.items()})
        for way, end in WAYS.items()
    ]
    return pd.concat(parts, ignore_index=True)


SWAPS = {
    "keys centred": (Case(AS_THEY_ARE), Case(CENTRED)),
    "keys random": (Case(AS_THEY_ARE), Case(RANDOM)),
    "values random": (Case(AS_THEY_ARE), Case(AS_THEY_ARE, RANDOM)),
    "values random, keys centred": (Case(CENTRED), Case(CENTRED, RANDOM)),
    "text order": (Case(AS_THEY_ARE), Case(AS_THEY_ARE, order=TEXT)),
    "text order, keys centred": (Case(CENTRED), Case(CENTRED, order=TEXT)),
}


def swap_ratios(capacity: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """Return, for each swap, N* after over N* before, a key head a row; a bound counts as N*."""
    found = {}
    for name, cases in SWAPS.items():
        before, after = (capacities(capacity, *case).set_index(KEY)["least"] for case in cases)
        found[name] = (after / before).dropna()
    return found
