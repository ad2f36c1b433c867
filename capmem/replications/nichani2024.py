"""Nichani, Lee, Bietti 2024: pairs that a d x d linear memory holds at 99%, Hebbian beside the trained law."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from capmem import capacity
from capmem.ensembles import SphereKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import Identity
from capmem.figures.replications import nichani2024 as draw
from capmem.memory import LinearMemory
from capmem.replications.base import Replication, Task
from capmem.replications.measurement import Estimate, Measurement, curves, quoted
from capmem.replications.verdict import Verdict, compare, not_comparable

if TYPE_CHECKING:
    import pandas as pd

DIMS = (32, 45, 64, 91, 128, 181, 256)
CRITERION = capacity.Criterion("top1_accuracy", 0.99)
NEAR = (0.65, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5)  # of the capacity that the formula says
TOP1, TRAINED, FORMULA, HEBBIAN = "top-1 accuracy", "trained, guide", "formula", "hebbian"
GOLDEN = {32: (28, 1.5), 64: (113, 4), 128: (443, 13), 256: (1697, 50)}  # N*, tolerance
BATCHES = 4


def formula(dim: int) -> float:
    """Return the Hebbian capacity N* by the closed form of top-1 accuracy."""
    return capacity.estimate(LinearMemory(Identity()), SphereKeys(), dim, metric="top1_accuracy", threshold=0.99,
                             method="theory").pairs  # fmt: skip


def trained_guide(dim: float) -> float:
    """Return the N with d^2 = 1.3 N ln N, the guide drawn over the trained memories."""
    from scipy.optimize import brentq  # slow to import, and used here only

    return float(brentq(lambda n: 1.3 * n * math.log(n) - dim**2, 1.001, dim**2 + 2))


def repeats(dim: int, trials: int) -> int:
    """Return more trials for small d, where a trial has few failures."""
    return max(2, round(trials * (max(DIMS) / dim) ** 2))


def accuracies(dim: int, first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Yield the top-1 accuracy among the N stored values, for trials from `first` to before `last`."""
    pairs = tuple(int(n) for n in np.unique(np.round(formula(dim) * np.array(NEAR))))
    experiment = Experiment(LinearMemory(Identity()), SphereKeys(), SphereValues(), dim, dim, pairs, last, seed=seed,
                            metrics=("top1_accuracy",))  # fmt: skip
    for record in experiment.run([(trial, n) for trial in range(first, last) for n in pairs]):
        yield Measurement(TOP1, f"d={dim}", record["num_pairs"], record["trial"], record["top1_accuracy"])


def tasks(seed: int, trials: int) -> list[Task]:
    """Return batches of trials at each d, the longest first."""
    batches = []
    for dim in reversed(DIMS):
        ends = np.linspace(0, repeats(dim, trials), BATCHES + 1).astype(int)
        batches += [(dim, int(a), int(b), seed) for a, b in zip(ends, ends[1:], strict=False) if b > a]
    return [Task(accuracies, batch) for batch in batches]


def capacities(table: pd.DataFrame) -> dict[int, Estimate]:
    """Return N* by the measured curves; an end of an interval beyond the checkpoints is infinite or 0."""
    found = {}
    for dim in DIMS:
        estimate = capacity.from_curves(*curves(table, TOP1, f"d={dim}"), CRITERION)
        found[dim] = Estimate(estimate.pairs, estimate.low, estimate.high)
    return found


def references() -> Iterator[Measurement]:
    """Yield the trained guide, and the closed form of the Hebbian memory."""
    yield from quoted(TRAINED, HEBBIAN, [(d, trained_guide(d)) for d in (8, 11, 16, 23, *DIMS)])
    yield from quoted(FORMULA, HEBBIAN, [(d, formula(d)) for d in (16, 23, *DIMS)])


def judge(table: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdicts."""
    found = capacities(table)
    for dim, (pairs, tolerance) in GOLDEN.items():
        yield compare(f"hebbian: pairs at 99%, d={dim}", "our own", pairs, found[dim], tolerance)
    x, guide = curves(table, TRAINED, HEBBIAN)
    trained = dict(zip(x, guide[0], strict=True))
    why = "trained with AdamW, and of Hebbian weights the paper has no numbers"
    for dim in GOLDEN:
        yield not_comparable(f"trained: pairs at 99%, d={dim} (guide)", "published", trained[dim], why, found[dim])
    unread = "d^2 >~ N polylog(N) as quoted by others; the paper's text was not read"
    ours = power(found)
    yield compare("hebbian: slope of N* in d (2, but for logarithms)", "derived from the paper", 2.0, ours, 0.1, unread)


def power(found: dict[int, Estimate]) -> Estimate:
    """Return the slope of log N* over log d; its interval adds those of the independent N* in squares."""
    x = np.log(np.array(list(found), dtype=float))
    low, high = (np.log([getattr(own, end) for own in found.values()]) for end in ("low", "high"))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    value = float(weights @ np.log([own.value for own in found.values()]))
    half = float(np.sqrt((weights**2 * ((high - low) / 2) ** 2).sum()))
    return Estimate(value, value - half, value + half)


NICHANI2024 = Replication(
    "nichani2024",
    "Nichani, Lee, Bietti 2024, Understanding factual recall in transformers via associative memories, "
    "arXiv 2412.06538",
    "the authors' code was read, the paper's text was not",
    8,
    tasks,
    references,
    judge,
    draw.pairs_against_dimension,
)
