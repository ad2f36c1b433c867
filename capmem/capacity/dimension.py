"""The inverse of capacity: the least key dimension at which a memory holds a wanted number of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from capmem.capacity.criterion import CapacityEstimate, Criterion
from capmem.capacity.decide import DECIDERS, LEAST_DIM, bracket
from capmem.capacity.estimate import SEARCHES, Effort, Way
from capmem.capacity.problem import Problem
from capmem.ensembles import Ensemble, SphereValues
from capmem.experiment import DType
from capmem.memory import Memory
from capmem.schema import require, unknown

if TYPE_CHECKING:
    import pandas as pd


class Found(NamedTuple):
    """How it was decided, the largest dimension that fails and the least that holds."""

    method: str
    low: int | None
    high: int | None


@dataclass(frozen=True)
class RequiredDim:
    """The least key dimension for a number of pairs, by one criterion.

    Attributes
    ----------
    num_pairs : int
        What is to be held.
    criterion : Criterion
        What counts as held.
    method : {"theory", "simulation"}
        What it was decided by.
    bracketed : bool
        Whether the criterion fails at the dimension below and holds at `key_dim`.
    low, high : int or None
        The largest dimension seen to fail, and the least seen to hold.
    key_dim, value_dim, feature_dim : int or None
        d, v and D there; None where d is not bracketed (D also for a memory without features).
    state_elements, state_bytes : int or None
        The size of the state there.
    capacity : CapacityEstimate or None
        N* there: at least `num_pairs`, but for the noise of a simulation, which its interval tells.
    """

    num_pairs: int
    criterion: Criterion
    method: str
    bracketed: bool
    low: int | None
    high: int | None
    key_dim: int | None = None
    value_dim: int | None = None
    feature_dim: int | None = None
    state_elements: int | None = None
    state_bytes: int | None = None
    capacity: CapacityEstimate | None = None

    @property
    def bound(self) -> str:
        """Return "" for a bracketed dimension, else "at most" (`high`) or "more than" (`low`)."""
        if self.bracketed:
            return ""
        return "more than" if self.high is None else "at most"

    def __str__(self) -> str:
        if self.bracketed:
            return str(self.key_dim)
        return f"> {self.low}" if self.high is None else f"<= {self.high}"


def required_dim(
    num_pairs: int,
    memory: Memory,
    keys: Ensemble,
    metric: str = "top1_accuracy",
    threshold: float = 0.99,
    values: Ensemble | None = None,
    value_dim: int | None = None,
    method: Way = "auto",
    query_cosine: float = 1.0,
    codebook_size: int | None = None,
    trials: int = 64,
    precision: float = 0.1,
    max_dim: int = 1024,
    start: int | None = None,
    seed: int = 0,
    dtype: DType = "float32",
) -> RequiredDim:
    """Find the least key dimension at which N* is at least `num_pairs`.

    Parameters
    ----------
    num_pairs : int
        N, the pairs to be held.
    memory, keys, metric, threshold, values, method, query_cosine, codebook_size, seed, dtype
        As in :func:`estimate`.
    value_dim : int, optional
        v (default: that of the keys, at every dimension that is looked at).
    trials : int
        The most trials of a simulation: at each dimension they are doubled from 8 until the mean is four standard
        errors from the threshold; and for the capacity at the answer.
    precision : float
        Of the capacity at the answer.
    max_dim : int
        The largest dimension to look at; the least one is 2.
    start : int, optional
        Where to begin; a good guess saves time.

    Raises
    ------
    TheoryUnavailable
        With ``method="theory"``, where there is no prediction.
    ValueError
        For a value out of range, or keys of a file, which have one dimension.

    Notes
    -----
    The criterion is checked at 1, 2, 4, ... up to N pairs. It is taken to hold at every dimension above one where
    it holds: the search brackets by steps of a factor two (1.25 from a given `start`), and bisects over integers.
    """
    from capmem.theory import TheoryUnavailable

    _check(num_pairs, keys, codebook_size, trials, max_dim, start, method)
    criterion = Criterion(metric, threshold)
    laws = (SphereValues() if values is None else values, query_cosine, codebook_size, seed, dtype)

    def problem(dim: int) -> Problem:
        return Problem(memory, keys, dim, dim if value_dim is None else value_dim, *laws)

    def search(way: str) -> Found:
        holds = lru_cache(None)(lambda dim: DECIDERS[way](problem(dim), criterion, num_pairs, trials))
        return Found(way, *bracket(holds, max_dim, start))

    try:
        found = search("theory" if method == "auto" else method)
    except TheoryUnavailable:
        if method == "theory":
            raise
        found = search("simulation")
    bracketed = found.low is not None and found.high is not None
    answer = RequiredDim(num_pairs, criterion, found.method, bracketed, found.low, found.high)
    if found.low is None or found.high is None:
        return answer
    there = problem(found.high)
    size = memory.state_size(there.key_dim, there.value_dim, num_pairs, dtype)
    return replace(
        answer,
        key_dim=there.key_dim,
        value_dim=there.value_dim,
        feature_dim=memory.feature_dim(there.key_dim),
        state_elements=size.elements,
        state_bytes=size.bytes,
        capacity=SEARCHES[found.method](there, criterion, Effort(4 * num_pairs, trials, precision)),
    )


def required_table(
    num_pairs: Sequence[int], memories: Mapping[str, Memory], keys: Ensemble, **options: Any
) -> pd.DataFrame:
    """Return :func:`required_dim` for several memories by name, and several numbers of pairs: a row each."""
    import pandas as pd

    found = [(name, required_dim(n, m, keys, **options)) for name, m in memories.items() for n in num_pairs]
    return pd.DataFrame([{"memory": name} | as_row(answer) for name, answer in found])


def as_row(found: RequiredDim) -> dict[str, Any]:
    """Return an answer as a row of a table: `shown` is d or its bound, numbers are nan where it is not bracketed."""
    numbers = ("key_dim", "value_dim", "feature_dim", "state_elements", "state_bytes")
    row: dict[str, Any] = {"num_pairs": found.num_pairs, "shown": str(found)}
    row |= {name: np.nan if getattr(found, name) is None else getattr(found, name) for name in numbers}
    at = found.capacity
    row |= {name: np.nan if at is None else getattr(at, name) for name in ("pairs", "low", "high")}
    return row | {"bracketed": found.bracketed, "method": found.method, "criterion": str(found.criterion)}


def _check(
    num_pairs: int, keys: Ensemble, codebook: int | None, trials: int, max_dim: int, start: int | None, method: str
) -> None:
    require(num_pairs >= 1, "num_pairs", num_pairs, "an integer of at least 1")
    require(max_dim >= LEAST_DIM, "max_dim", max_dim, f"an integer of at least {LEAST_DIM}")
    require(trials >= 1, "trials", trials, "an integer of at least 1")
    require(start is None or LEAST_DIM <= start <= max_dim, "start", start, f"from {LEAST_DIM} to max_dim = {max_dim}")
    require(codebook is None or codebook >= num_pairs, "codebook_size", codebook, f"at least num_pairs = {num_pairs}")
    if keys.file_dim() is not None:
        raise ValueError(f"keys must be a law of any dimension, got {type(keys).__name__}")
    if method not in DECIDERS and method != "auto":
        raise ValueError(unknown("method", method, ["auto", *DECIDERS]))
