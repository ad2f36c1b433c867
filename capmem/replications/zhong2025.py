"""Zhong, Xu, Ao, Shi 2025: inverse signal-to-noise ratio of retrieval by kernel, against N and d."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import hyp0f1

from capmem import geometry
from capmem.ensembles import SphereKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import FeatureMap, Identity, Polynomial
from capmem.figures.replications import zhong2025 as draw
from capmem.memory import LinearMemory
from capmem.replications.base import Replication, Task
from capmem.replications.measurement import Floats, Measurement, measured, quoted, slope
from capmem.replications.verdict import Verdict, compare

if TYPE_CHECKING:
    import pandas as pd

PAIRS, DIM = (16, 64, 256, 1024), 64
DIMS, NUM_PAIRS = (16, 32, 64, 128), 256
AGAINST_N, AGAINST_D = "against N", "against d"
FORMULA = "formula, "
LINEAR, SCORE, SQUARE, EXPONENTIAL = "linear", "relu score", "power 2", "exp, beta = sqrt(d)"
VALUE_DIM = 64
UNREAD = "re-derived; only the abstract of the paper was read"


class Kernel(NamedTuple):
    """A kernel of unit keys.

    Attributes
    ----------
    square : function of d
        E kappa(k, k')^2 / kappa(k, k)^2 of independent keys.
    feature_map : FeatureMap or None
        Where it has finite features, the memory that is measured.
    score : function of (cosine, d)
        Where it has none, kappa itself, over kappa(k, k).
    """

    square: Callable[[int], float]
    feature_map: FeatureMap | None
    score: Callable[[Floats, int], Floats] | None = None


KERNELS = {
    LINEAR: Kernel(lambda d: 1 / d, Identity()),
    SCORE: Kernel(lambda d: 1 / (2 * d), None, lambda t, d: np.maximum(t, 0)),
    SQUARE: Kernel(lambda d: 3 / (d * (d + 2)), Polynomial(2)),
    EXPONENTIAL: Kernel(
        lambda d: float(hyp0f1(d / 2, d) * np.exp(-2 * d**0.5)), None, lambda t, d: np.exp(d**0.5 * (t - 1))
    ),
}


def inverse_snr(name: str, dim: int, num_pairs: tuple[int, ...], seed: int, trials: int) -> Iterator[tuple[Any, ...]]:
    """Yield (N, trial, 1/SNR): error power over signal power of unit keys read with themselves."""
    kernel = KERNELS[name]
    if kernel.feature_map is not None:
        memory = LinearMemory(kernel.feature_map)
        metric = "relative_squared_error"  # the gain is kappa(k, k) = 1
        experiment = Experiment(memory, SphereKeys(), SphereValues(), dim, VALUE_DIM, num_pairs, trials, seed=seed,
                                metrics=(metric,), dtype="float64")  # fmt: skip
        yield from ((r["num_pairs"], r["trial"], r[metric]) for r in experiment.run())
        return
    assert kernel.score is not None
    for trial in range(trials):
        keys = SphereKeys().sample(np.random.default_rng([seed, trial]), max(num_pairs), dim)
        for n in num_pairs:
            power = kernel.score(geometry.gram(keys[:n]), dim) ** 2
            yield n, trial, float((power.sum() - np.trace(power)) / n)


def kernel(name: str, seed: int, trials: int) -> Iterator[Measurement]:
    """Yield 1/SNR of one kernel along N at d = 64, and along d at N = 256."""
    for n, trial, value in inverse_snr(name, DIM, PAIRS, seed, trials):
        yield Measurement(AGAINST_N, name, n, trial, value)
    for dim in DIMS:
        for _, trial, value in inverse_snr(name, dim, (NUM_PAIRS,), seed, trials):
            yield Measurement(AGAINST_D, name, dim, trial, value)


def tasks(seed: int, trials: int) -> list[Task]:
    """Return a task a kernel."""
    return [Task(kernel, (name, seed, trials)) for name in reversed(KERNELS)]


def references() -> Iterator[Measurement]:
    """Yield (N - 1) E kappa^2 / kappa(k, k)^2."""
    for name, own in KERNELS.items():
        yield from quoted(FORMULA + AGAINST_N, name, [(n, (n - 1) * own.square(DIM)) for n in PAIRS])
        yield from quoted(FORMULA + AGAINST_D, name, [(d, (NUM_PAIRS - 1) * own.square(d)) for d in DIMS])


# (N - 1) / d, half of it, 3 (N - 1) / (d (d + 2)), (N - 1) 0F1(; d/2; beta^2) e^(-2 beta), at N = 256 and d = 64
GOLDEN = {LINEAR: 3.984, SCORE: 1.992, SQUARE: 0.1811, EXPONENTIAL: 2.00e-4}
FALL = {LINEAR: -1.0, SCORE: -1.0, SQUARE: -2.0}


def judge(table: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdicts."""
    for name, value in GOLDEN.items():
        ours = measured(table, AGAINST_N, name, NUM_PAIRS)
        yield compare(f"{name}: 1/SNR at N=256, d=64", "derived from the paper", value, ours, 0.04 * value, UNREAD)
    for name in KERNELS:
        ours = measured(table, AGAINST_N, name, PAIRS[1:], slope)
        yield compare(f"{name}: slope in N, N=64..1024", "derived from the paper", 1.0, ours, 0.03, UNREAD)
    for name, exponent in FALL.items():
        ours = measured(table, AGAINST_D, name, None, slope)
        yield compare(f"{name}: slope in d", "derived from the paper", exponent, ours, 0.08, UNREAD)
    fall = measured(table, AGAINST_D, EXPONENTIAL, None, lambda x, y: float(np.polyfit(x**0.5, np.log(y), 1)[0]))
    yield compare(f"{EXPONENTIAL}: slope of ln(1/SNR) in sqrt(d)", "derived from the paper",
                  -2.0, fall, 0.1, UNREAD)  # fmt: skip


ZHONG2025 = Replication(
    "zhong2025",
    "Zhong, Xu, Ao, Shi 2025, Understanding transformer from the perspective of associative memory, arXiv 2505.19488",
    "only the abstract was read: the formulas are re-derived",
    32,
    tasks,
    references,
    judge,
    draw.inverse_snr,
)
