"""Whether a dimension is large enough for a number of pairs, and the search for the least one that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from capmem.capacity.criterion import DIRECTIONS, Criterion
from capmem.capacity.estimate import FIRST_PASS, PILOT
from capmem.capacity.problem import Curves, Problem, ladder

LEAST_DIM = 2  # in one dimension unit vectors are signs, and no formula for angles holds
Holds = Callable[[int], bool]


def bracket(holds: Holds, max_dim: int, start: int | None) -> tuple[int | None, int | None]:
    """Return the largest dimension that fails and the least that holds, next to each other; None where none does."""
    step = 2.0 if start is None else 1.25
    dim = min(8, max_dim) if start is None else start
    low, high = (None, dim) if holds(dim) else (dim, None)
    while high is None and low is not None and low < max_dim:
        dim = min(max_dim, max(low + 1, round(low * step)))
        low, high = (low, dim) if holds(dim) else (dim, None)
    while low is None and high is not None and high > LEAST_DIM:
        dim = max(LEAST_DIM, min(high - 1, round(high / step)))
        low, high = (None, dim) if holds(dim) else (dim, high)
    while low is not None and high is not None and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _predicted(problem: Problem, criterion: Criterion, num_pairs: int, trials: int) -> bool:
    return problem.limit(num_pairs) == num_pairs and all(
        _met(criterion, np.array([problem.predicted(criterion.metric, n)[0]])) for n in ladder(num_pairs)
    )


def _simulated(problem: Problem, criterion: Criterion, num_pairs: int, trials: int) -> bool:
    """Whether the mean curve meets the criterion up to N pairs; trials are doubled until that is clear."""
    if problem.limit(num_pairs) < num_pairs:
        return False
    curves, rungs, count = Curves(problem, criterion.metric), ladder(num_pairs), min(PILOT, trials)
    while True:
        for part in ([n for n in rungs if n <= FIRST_PASS], rungs):
            values = curves.at(count, part)
            if _clear(values, criterion, -1).any():
                return False
        if count == trials or _clear(values, criterion, 1)[-1]:
            return _met(criterion, values.mean(axis=0))
        count = min(2 * count, trials)


def _clear(values: np.ndarray[Any, Any], criterion: Criterion, side: int) -> np.ndarray[Any, Any]:
    """Return which columns of (trials, checkpoints) meet (side 1) or miss (-1) the threshold by 4 standard errors."""
    if len(values) < 2:
        return np.zeros(values.shape[1], dtype=bool)
    good = 1 if DIRECTIONS[criterion.metric] == ">=" else -1
    with np.errstate(invalid="ignore"):
        error = values.std(axis=0, ddof=1) / len(values) ** 0.5
        return np.asarray(side * good * (values.mean(axis=0) - criterion.threshold) > 4 * error)


def _met(criterion: Criterion, values: np.ndarray[Any, Any]) -> bool:
    """Whether all values meet the criterion; a prediction that is the threshold itself does, however it is rounded."""
    close = np.isclose(values, criterion.threshold, rtol=1e-9, atol=0)
    return bool((criterion.met(values) | close).all())


DECIDERS: dict[str, Callable[[Problem, Criterion, int, int], bool]] = {"theory": _predicted, "simulation": _simulated}
