"""The capacity of a memory, by prediction or by simulation: the search for where a criterion stops to hold."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from capmem.capacity.criterion import CapacityEstimate, Criterion
from capmem.capacity.problem import Curves, Problem, ladder
from capmem.capacity.table import from_curves
from capmem.ensembles import Ensemble, SphereValues
from capmem.experiment import DType
from capmem.intervals import check_resampling
from capmem.memory import Memory
from capmem.schema import require, unknown
from capmem.trial import CHUNK

Way = Literal["auto", "theory", "simulation"]

PILOT = 8  # trials of the search; below 6 no bootstrap interval covers what it says
FAILURES = 10  # that a top-1 accuracy at the threshold must rest on; with none, an interval has no width
FIRST_PASS = 64  # checkpoints up to here cost nothing, and are read at once
TRUSTED = 0.05  # largest relative error of a formula that "auto" goes by
MOST_PAIRS = {"theory": 2**30, "simulation": 2**14}


class Effort(NamedTuple):
    """How far and how precisely to look."""

    max_pairs: int | None = None
    trials: int = 256
    precision: float = 0.05
    confidence: float = 0.95


def estimate(
    memory: Memory,
    keys: Ensemble,
    key_dim: int,
    value_dim: int | None = None,
    metric: str = "top1_accuracy",
    threshold: float = 0.99,
    values: Ensemble | None = None,
    method: Way = "auto",
    query_cosine: float = 1.0,
    codebook_size: int | None = None,
    trials: int = 256,
    precision: float = 0.05,
    max_pairs: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    dtype: DType = "float32",
) -> CapacityEstimate:
    """Estimate N*, the number of pairs up to which the mean of `metric` is on the good side of `threshold`.

    Parameters
    ----------
    memory : Memory
        What is asked about.
    keys, values : Ensemble
        The laws of keys and values (default: :class:`SphereValues`).
    key_dim, value_dim : int
        d and v (default: d).
    metric, threshold : str, float
        The criterion; see :class:`Criterion`.
    method : {"auto", "theory", "simulation"}
        "theory" finds the crossing of :func:`capmem.theory.predict`; "simulation" runs experiments; "auto" is
        theory where it has the metric, within 5% at N* as far as is known, else simulation. The estimate says
        which, and what is known of the formula's error.
    query_cosine : float
        Cosine between a cue and its stored key.
    codebook_size : int, optional
        M, what top-1 competes against (default: the N stored values); no more pairs than M are looked at.
    trials : int
        The most trials of a simulation.
    precision : float
        Half the width of the interval, relative to N*, that a simulation goes on for while it has trials left. A
        top-1 criterion also goes on until ten failures are expected in all trials at N*.
    max_pairs : int, optional
        The most pairs to look at (default: 2^30 by theory, 2^14 by simulation); keys that are fewer stop there.
    confidence : float
        Of the bootstrap interval over whole trials.
    seed : int
        Trial t draws the same pairs here as in any other experiment of this seed.
    dtype : {"float32", "float64"}
        What a simulated memory computes in.

    Returns
    -------
    CapacityEstimate
        By theory without an interval. `pairs` is nan, and `bound` says "at least" or "below", where the criterion
        holds as far as was looked, or not even for one pair.

    Raises
    ------
    TheoryUnavailable
        With ``method="theory"``, where there is no prediction.
    ValueError
        For a value out of range.

    Notes
    -----
    Metrics need not be monotone in N: N* is the first crossing, seen at a resolution of factors of two, then
    bisected. By theory the metric is taken as linear between integers N. In a simulation above 4,096 pairs,
    top-1 without `codebook_size` competes against 4,096 of the stored values, by theory against all.
    """
    from capmem.theory import TheoryUnavailable

    if method not in SEARCHES and method != "auto":
        raise ValueError(unknown("method", method, ["auto", *SEARCHES]))
    effort = Effort(max_pairs, trials, precision, confidence)
    _check(effort)
    criterion = Criterion(metric, threshold)
    laws = (SphereValues() if values is None else values, query_cosine, codebook_size, seed, dtype)
    problem = Problem(memory, keys, key_dim, key_dim if value_dim is None else value_dim, *laws)
    if method != "auto":
        return SEARCHES[method](problem, criterion, effort)
    try:
        found = by_theory(problem, criterion, effort)
    except TheoryUnavailable:
        return by_simulation(problem, criterion, effort)
    return found if _trusted(problem, found) else by_simulation(problem, criterion, effort)


def _trusted(problem: Problem, found: CapacityEstimate) -> bool:
    """Whether the prediction is exact, or known to be close, at the number of pairs that decides the estimate."""
    ends = [end for end in (found.pairs, found.low, found.high) if math.isfinite(end)]
    decisive = max(round(ends[0]), 1)
    _, source = problem.predicted(found.criterion.metric, decisive)
    return source.exact or source.known_error.at(problem.key_dim, problem.value_dim, decisive) <= TRUSTED


def by_theory(problem: Problem, criterion: Criterion, effort: Effort) -> CapacityEstimate:
    """Return the real-valued crossing of the prediction."""
    limit = problem.limit(effort.max_pairs or MOST_PAIRS["theory"])
    _, source = problem.predicted(criterion.metric, 1)
    exact = "exact" if source.exact else f"known error: {source.known_error}"

    def value(num_pairs: int) -> float:
        return problem.predicted(criterion.metric, num_pairs)[0]

    found = first_crossing(value, limit, criterion)
    return replace(found, method="theory", source=f"{source.formula} ({exact})")


def first_crossing(value: Callable[[int], float], limit: int, criterion: Criterion) -> CapacityEstimate:
    """Return where `value` first leaves the criterion: doubling, then bisection, then linear between integers."""
    held, failed = 0, None
    for num_pairs in ladder(limit):
        if not criterion.met(np.asarray(value(num_pairs))):
            failed = num_pairs
            break
        held = num_pairs
    if failed is None:
        return CapacityEstimate(math.nan, float(limit), math.nan, False, criterion)
    if held == 0:
        return CapacityEstimate(math.nan, math.nan, 1.0, False, criterion)
    while failed - held > 1:
        middle = (held + failed) // 2
        if criterion.met(np.asarray(value(middle))):
            held = middle
        else:
            failed = middle
    before, after = value(held), value(failed)
    share = (criterion.threshold - before) / (after - before) if math.isfinite(before - after) else 0.0
    return CapacityEstimate(held + share, math.nan, math.nan, True, criterion)


def by_simulation(problem: Problem, criterion: Criterion, effort: Effort) -> CapacityEstimate:
    """Return the crossing of simulated curves: grow N, bisect, add trials, until the interval is narrow.

    All trials are read at all checkpoints, so that the interval resamples whole curves.
    """
    limit = problem.limit(effort.max_pairs or MOST_PAIRS["simulation"])
    curves = Curves(problem, criterion.metric)
    grid, trials = ladder(min(FIRST_PASS, limit)), min(PILOT, effort.trials)
    while True:
        found = from_curves(grid, curves.at(trials, grid), criterion, effort.confidence)
        narrow = _narrow(found, trials, effort.precision)
        if grid[-1] < limit and (found.bound == "at least" or math.isinf(found.high)):
            grid = [*grid, min(2 * grid[-1], limit)]
        elif more := _between(grid, found, effort.precision):
            grid = sorted({*grid, *more})
        elif not narrow and trials < effort.trials:
            trials = min(2 * trials, effort.trials)
            grid = [n for n in grid if n <= 4 * found.high]  # further trials need not be read far beyond
        else:
            sampled = criterion.metric == "top1_accuracy" and problem.codebook_size is None and grid[-1] > CHUNK
            source = f"above {CHUNK} pairs, top-1 competes against {CHUNK} of the stored values" if sampled else ""
            return replace(found, method="simulation", source=source, trials=trials, narrow=narrow)


def _narrow(found: CapacityEstimate, trials: int, precision: float) -> bool:
    """Whether an interval is as narrow as asked, and rests on enough failures, where single failures are counted."""
    if not found.bracketed:
        return True
    criterion = found.criterion
    failures = trials * found.pairs * (1 - criterion.threshold)
    counted = criterion.metric != "top1_accuracy" or criterion.threshold >= 1 or failures >= FAILURES
    return counted and found.high - found.low <= 2 * precision * found.pairs


def _between(grid: list[int], found: CapacityEstimate, precision: float) -> set[int]:
    """Return checkpoints to add: the middle of each gap that is wide and holds N* or an end of its interval."""
    more = set()
    for pairs in (found.pairs, found.low, found.high):
        place = bisect_left(grid, pairs) if found.bracketed and math.isfinite(pairs) else 0
        if not 0 < place < len(grid):
            continue
        below, above = grid[place - 1], grid[place]
        if above - below > 1 and above > (1 + precision) * below:
            more.add(min(max(round(math.sqrt(below * above)), below + 1), above - 1))
    return more


def _check(effort: Effort) -> None:
    most = effort.max_pairs
    require(most is None or most >= 1, "max_pairs", most, "an integer of at least 1")
    require(effort.trials >= 1, "trials", effort.trials, "an integer of at least 1")
    require(0 < effort.precision < math.inf, "precision", effort.precision, "a number above 0")
    check_resampling(effort.confidence, 1)


SEARCHES = {"theory": by_theory, "simulation": by_simulation}
