"""Softmax against linear memories, from a swept table: errors, errors at equal bytes, and capacities at SNR 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from capmem import capacity, results
from capmem.theory import classical
from capmem.theory.softmax import log_0f1

if TYPE_CHECKING:
    import pandas as pd

ERROR = "scale_optimal_error"
FAILURE = 0.001  # probability that Ramsauer's guarantee leaves


def softmax_capacity(key_dim: int, beta: float) -> float:
    """Return the N at which softmax attention on unit keys has SNR 1: 1 + e^(2 beta) / 0F1(; d/2; beta^2).

    References
    ----------
    Zhong, Xu, Ao, Shi 2025, arXiv 2505.19488, for the exponential growth; the form is exact for uniform unit keys.
    """
    return 1 + math.exp(2 * beta - log_0f1(key_dim, 2 * beta))


def median_separation(key_dim: int, num_pairs: int) -> float:
    """Return 1 - the median of the largest cosine of a unit key with N - 1 others, all uniform on the sphere."""
    below = 0.5 ** (1 / (num_pairs - 1))  # P(cosine < t), which the largest needs of each
    return 1 - math.sqrt(betaincinv(0.5, (key_dim - 1) / 2, 2 * below - 1))


def guaranteed_error(key_dim: int, beta: float, num_pairs: int) -> float:
    """Return Ramsauer's bound on the relative squared error of a key of median separation, read with itself."""
    separation = median_separation(key_dim, num_pairs)
    return float(min(classical.ramsauer_error_bound(num_pairs, beta, separation, 1.0), 1e9) ** 2)


def guaranteed_pairs(key_dim: int, beta: float) -> float:
    """Return how many unit keys Ramsauer's Theorem 3 stores but for probability 0.001; nan where it does not apply."""
    found = classical.ramsauer_capacity(key_dim, beta, (key_dim - 1) ** -0.5, FAILURE)
    return found.patterns if found.valid else math.nan


def labelled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the measured rows with a column `label`: "softmax, beta = 8", or a map with its width D."""
    frame = frame[frame["status"] == "ok"]
    softmax = frame["memory"] == "softmax"
    label = frame["feature_map"].where(~softmax, "softmax")
    detail = [
        f"beta = {beta:g}" if kept else f"D = {width:.0f}"
        for kept, beta, width in zip(softmax, frame["memory.beta"], frame["feature_dim"], strict=True)
    ]
    return frame.assign(label=label.str.cat(detail, sep=", ").to_numpy())


def errors(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean error for each memory and N, with interval, closed form, bytes and Ramsauer's bound."""
    rows = labelled(frame)
    by = ["label", "memory", "memory.beta", "feature_map", "feature_dim", "key_dim", "num_pairs", "state_bytes"]
    table = results.aggregate(rows, by, [ERROR])
    bounds = zip(table["memory"], table["key_dim"], table["memory.beta"], table["num_pairs"], strict=True)
    table["guaranteed_error"] = [
        guaranteed_error(d, beta, n) if memory == "softmax" and n > 1 else math.nan for memory, d, beta, n in bounds
    ]
    return table.sort_values(["memory", "feature_dim", "memory.beta", "num_pairs"], ignore_index=True)


def at_equal_bytes(table: pd.DataFrame) -> pd.DataFrame:
    """Return, of :func:`errors`, each linear memory at the N whose cache takes (almost) as many bytes as its state.

    Columns <ERROR>, and softmax_error at that N for the largest beta.
    """
    cache = table[table["memory"] == "softmax"]
    sharpest = cache[cache["memory.beta"] == cache["memory.beta"].max()].set_index("num_pairs")
    linear = table[table["memory"] == "linear"]
    counts = (linear["state_bytes"] // (sharpest["state_bytes"].iloc[0] / sharpest.index[0])).astype(int)
    chosen = linear[linear["num_pairs"] == counts].sort_values("state_bytes", ignore_index=True)
    same = sharpest.reindex(chosen["num_pairs"])
    columns = {"softmax_error": ERROR, "softmax_beta": "memory.beta", "cache_bytes": "state_bytes"}
    added: pd.DataFrame = chosen.assign(**{name: same[column].to_numpy() for name, column in columns.items()})
    return added


def capacities(frame: pd.DataFrame) -> pd.DataFrame:
    """Return N* (scale-optimal error 0.5, SNR 1) of each memory, with softmax's closed form and guarantee."""
    import pandas as pd

    rows = labelled(frame)
    by = ["label", "memory", "memory.beta", "feature_dim", "key_dim"]
    table = capacity.from_table(rows, capacity.Criterion(ERROR, 0.5), by)
    pairs = list(zip(table["memory"], table["key_dim"], table["memory.beta"], strict=True))
    for name, of in (("closed_form", softmax_capacity), ("guaranteed", guaranteed_pairs)):
        table[name] = [of(d, beta) if memory == "softmax" else math.nan for memory, d, beta in pairs]
    table = table.sort_values(["memory", "feature_dim", "memory.beta"], ignore_index=True)
    return pd.concat([table, _closed_forms(int(table["key_dim"].iloc[0]), table["memory.beta"])], ignore_index=True)


def _closed_forms(key_dim: int, measured: pd.Series[float]) -> pd.DataFrame:
    """Return rows of memory "closed form": softmax's capacity at betas between those measured."""
    import pandas as pd

    betas = np.geomspace(measured.min(), measured.max(), 33)
    told = {"memory": "closed form", "label": "softmax, closed form", "key_dim": key_dim}
    return pd.DataFrame([told | {"memory.beta": b, "closed_form": softmax_capacity(key_dim, b)} for b in betas])
