"""Ramsauer et al. 2021: the error of one softmax update against its bound, and constants of the capacity theorem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from capmem import geometry
from capmem.ensembles import SphereValues
from capmem.figures.replications import ramsauer2021 as draw
from capmem.memory import SoftmaxMemory
from capmem.replications.base import Replication, Task
from capmem.replications.measurement import Floats, Measurement, exact, measured
from capmem.replications.verdict import Verdict, compare
from capmem.theory.classical import ramsauer_capacity, ramsauer_error_bound

if TYPE_CHECKING:
    import pandas as pd

DIM, NOISE = 32, 0.1  # d, and the noise of a cue's coordinates; patterns have norm sqrt(d)
BETAS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
SIZES = (50, 200, 800)
ERROR, BOUND, BROKEN = "error, median", "bound, median", "share beyond the bound"
SETTLED = 20  # updates until a fixed point
ROUNDING = 1e-12


class Update(NamedTuple):
    """Errors (N,) of one update and their bounds (N,)."""

    errors: Floats
    bounds: Floats


def one_update(patterns: Floats, cues: Floats, beta: float, bound_beta: float | None = None) -> Update:
    """Return |x_new - x_i| and 2 (N - 1) exp(-beta (Delta_i - 2 r_i M)) M for each pattern and its cue.

    With `bound_beta`, the bound is that of another beta.
    """
    retrieved = _update(patterns, cues, beta, 1)
    fixed = _update(patterns, patterns, bound_beta or beta, SETTLED)
    overlaps = geometry.gram(patterns)
    own = np.diagonal(overlaps).copy()
    np.fill_diagonal(overlaps, -np.inf)
    far = np.maximum(_length(cues - patterns), _length(fixed - patterns))
    norm = float(np.sqrt(own.max()))
    bounds = [
        ramsauer_error_bound(len(patterns), bound_beta or beta, float(separation), norm, float(distance))
        for separation, distance in zip(own - overlaps.max(axis=1), far, strict=True)
    ]
    return Update(_length(retrieved - patterns), np.array(bounds))


def _update(patterns: Floats, cues: Floats, beta: float, steps: int) -> Floats:
    memory = SoftmaxMemory(beta, steps)
    state = memory.write(memory.init(DIM, DIM), patterns, patterns)
    return np.asarray(memory.read(state, cues))


def _length(rows: Floats) -> Floats:
    return np.asarray(np.linalg.norm(rows, axis=1))


def errors(size: int, seed: int, trials: int) -> Iterator[Measurement]:
    """Yield the median error and bound, and the share of patterns whose error is beyond it, at each beta."""
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial, size])
        patterns = SphereValues().sample(rng, size, DIM)
        cues = patterns + NOISE * rng.standard_normal(patterns.shape)
        for beta in BETAS:
            found = one_update(patterns, cues, beta)
            line = f"N={size}"
            yield Measurement(ERROR, line, beta, trial, float(np.median(found.errors)))
            yield Measurement(BOUND, line, beta, trial, float(np.median(found.bounds)))
            beyond = float(np.mean(found.errors > found.bounds + ROUNDING))
            yield Measurement(BROKEN, line, beta, trial, beyond)


def tasks(seed: int, trials: int) -> list[Task]:
    """Return a task a number of patterns, the longest first."""
    return [Task(errors, (size, seed, trials)) for size in reversed(SIZES)]


def references() -> Iterator[Measurement]:
    """Yield nothing: the bound is of the patterns that were drawn."""
    return iter(())


def judge(table: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdicts."""
    unread = "the theorem was quoted from memory; its text was not read"
    for size in SIZES:
        share = measured(table, BROKEN, f"N={size}")
        yield compare(
            f"share of patterns beyond the bound, N={size}, all beta", "derived from the paper", 0.0, share, 0.0, unread
        )
    logarithm = measured(table, ERROR, "N=200", 1.0, lambda x, y: float(np.log10(y).mean()))
    yield compare("log10 of the median error, N=200, beta=1", "our own", -6.44, logarithm, 0.3)
    for dim, radius, base in ((20, 3.0, 3.1546), (75, 1.0, 1.3719)):
        ours = exact(ramsauer_capacity(dim, 1.0, radius, 0.001).base)
        yield compare(f"theorem 3: c at beta=1, K={radius:g}, d={dim}, p=.001", "published", base, ours, 2e-4, unread)


RAMSAUER2021 = Replication(
    "ramsauer2021",
    "Ramsauer et al. 2021, Hopfield networks is all you need, arXiv 2008.02217",
    "the authors' code was read; the theorems are quoted from memory, their constants recomputed",
    12,
    tasks,
    references,
    judge,
    draw.error_and_bound,
)
