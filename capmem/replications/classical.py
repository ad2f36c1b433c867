"""The classics: Hopfield's critical load, Willshaw's and the Hebbian bits a synapse, superpositions of Frady et al."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfinv

from capmem.ensembles import RademacherKeys, RademacherValues, SphereKeys
from capmem.feature_maps import Identity
from capmem.figures.replications import classical as draw
from capmem.memory import LinearMemory
from capmem.replications.base import Replication, Task
from capmem.replications.measurement import Floats, Measurement, exact, measured, quoted
from capmem.replications.verdict import Verdict, compare, not_comparable
from capmem.theory import classical

if TYPE_CHECKING:
    import pandas as pd

NEURONS, CUES, STEPS = {300: 8, 1500: 1}, 50, 40  # neurons: networks a trial
LOADS = (0.1, 0.12, 0.13, 0.135, 0.14, 0.145, 0.15, 0.16, 0.18)
ALPHABET, SUPERPOSED = 27, 500  # symbols, neurons
ITEMS = (12, 23, 40, 83, 160)
DIM, BIT_LOADS = 256, (0.125, 0.25, 0.5, 1.0, 2.0)
OVERLAP, BITS, SUPERPOSITION, FORMULA = "hopfield overlap", "bits a parameter", "superposition accuracy", "formula, "
LINE = "measured"


def settled_overlaps(patterns: NDArray[Any], cues: int) -> Floats:
    """Return the overlap of the first patterns with where the network goes from them, no self-coupling."""
    memory = LinearMemory(Identity())
    size = patterns.shape[1]
    state = memory.write(memory.init(size, size, like=patterns), patterns, patterns)
    now = patterns[:cues].copy()
    for _ in range(STEPS):
        fields = memory.read(state, now) - len(patterns) * now
        after = np.where(fields == 0, now, np.sign(fields)).astype(patterns.dtype)
        if (after == now).all():
            break
        now = after
    return np.asarray((now * patterns[:cues]).mean(axis=1))


def hopfield(load: float, seed: int, trials: int) -> Iterator[Measurement]:
    """Yield the mean final overlap of Hopfield networks at a load, started at their patterns.

    Fields are whole numbers, so float32 is exact.
    """
    for neurons, networks in NEURONS.items():
        count = round(load * neurons)
        for trial in range(trials):
            rng = np.random.default_rng([seed, trial, neurons, count])
            drawn = [RademacherKeys().sample(rng, count, neurons) for _ in range(networks)]
            signs = [np.sign(patterns).astype(np.float32) for patterns in drawn]
            overlap = np.mean([settled_overlaps(patterns, CUES).mean() for patterns in signs])
            yield Measurement(OVERLAP, f"N={neurons}", load, trial, float(overlap))


def retrieval_overlap(load: float) -> float:
    """Return the overlap m = erf(y) of an infinite network with its pattern, below the critical load.

    y is the larger root of [(erf(y) / y - (2 / sqrt pi) exp(-y^2)) / sqrt 2]^2 = load.

    References
    ----------
    Amit, Gutfreund, Sompolinsky 1985, Phys. Rev. Lett. 55:1530.
    """
    from scipy.optimize import brentq  # slow to import

    def excess(y: float) -> float:
        return (math.erf(y) / y - 2 / math.sqrt(math.pi) * math.exp(-y * y)) ** 2 / 2 - load

    top = float(erfinv(classical.hopfield_limit().overlap))
    return math.erf(brentq(excess, top, 50.0))


def hebbian_bits(seed: int, trials: int) -> Iterator[Measurement]:
    """Yield the bits a parameter of a Hebbian state of random keys, values +-1 decoded by their sign."""
    memory = LinearMemory(Identity())
    for load in BIT_LOADS:
        count = round(load * DIM)
        for trial in range(trials):
            rng = np.random.default_rng([seed, trial, count])
            keys, values = SphereKeys().sample(rng, count, DIM), RademacherValues().sample(rng, count, DIM)
            read = memory.read(memory.write(memory.init(DIM, DIM), keys, values), keys)
            wrong = float(np.mean(np.sign(read) != np.sign(values)))
            yield Measurement(BITS, LINE, load, trial, load * (1 - _entropy(wrong)))


def superposition(items: int, seed: int, trials: int) -> Iterator[Measurement]:
    """Yield the share of items decoded from a sum of random +-1 vectors, each item with a codebook of its own."""
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial, items])
        books = np.sign(RademacherKeys().sample(rng, items * ALPHABET, SUPERPOSED))
        books = books.reshape(items, ALPHABET, SUPERPOSED)
        symbols = rng.integers(ALPHABET, size=items)
        scores = books @ books[np.arange(items), symbols].sum(axis=0)
        yield Measurement(SUPERPOSITION, LINE, items, trial, float(np.mean(scores.argmax(axis=1) == symbols)))


def _entropy(p: float) -> float:
    return -sum(x * math.log2(x) for x in (p, 1 - p) if x > 0)


def tasks(seed: int, trials: int) -> list[Task]:
    """Return a task a load, and one each for the other two."""
    networks = [Task(hopfield, (load, seed, trials)) for load in reversed(LOADS)]
    sums = [Task(superposition, (items, seed, 4 * trials)) for items in reversed(ITEMS)]
    return [*networks, *sums, Task(hebbian_bits, (seed, trials))]


def signal(items: int) -> float:
    """Return s = sqrt(neurons / items)."""
    return math.sqrt(SUPERPOSED / items)


def references() -> Iterator[Measurement]:
    """Yield the formulas that are drawn."""
    limit = classical.hopfield_limit()
    loads = [*np.arange(0.09, limit.load, 0.004), limit.load - 1e-9]
    yield from quoted(FORMULA + OVERLAP, LINE, [(load, retrieval_overlap(float(load))) for load in loads])
    fine = np.geomspace(min(BIT_LOADS), max(BIT_LOADS), 25)
    yield from quoted(FORMULA + BITS, LINE, [(a, classical.hebbian_bits(float(a))) for a in fine])
    many = sorted({*ITEMS, *range(10, 161, 10)})
    told = [(m, classical.superposition_accuracy(signal(m), ALPHABET)) for m in many]
    yield from quoted(FORMULA + SUPERPOSITION, LINE, told)


def critical_load(x: Floats, overlaps: Floats) -> float:
    """Return the load at which the overlap first falls through .7, linear between loads."""
    below = int(np.argmax(overlaps < 0.7))
    if below == 0:
        return math.nan
    (a, b), (left, right) = x[below - 1 : below + 1], overlaps[below - 1 : below + 1]
    return float(a + (b - a) * (left - 0.7) / (left - right))


def judge(table: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdicts."""
    limit = classical.hopfield_limit()
    yield compare("hopfield: alpha_c, replica symmetric", "published", 0.138, exact(limit.load), 5e-4)
    yield compare("hopfield: share of wrong bits at alpha_c", "published", 0.016, exact(limit.error), 5e-4)
    largest = f"N={max(NEURONS)}"
    told = f"{max(NEURONS)} neurons, started at the patterns, all updated at once"
    for load, share, tolerance in ((0.1, 0.00100, 3e-4), (0.12, 0.00339, 8e-4)):
        ours = measured(table, OVERLAP, largest, load, lambda x, y: float(1 - y.mean()) / 2)
        yield compare(f"hopfield: share of wrong bits at a load of {load:g}", "derived from the paper", share, ours,
                      tolerance, told)  # fmt: skip
    why = f"a network of {max(NEURONS)} neurons has no sharp limit: it falls where large ones would have fallen before"
    ours = measured(table, OVERLAP, largest, None, critical_load)
    yield not_comparable("hopfield: load where the final overlap falls below .7", "published", 0.138, why, ours)
    quotes = (("willshaw: bits a synapse, ln 2", 0.693, classical.willshaw_capacity()),
              ("sparse Hebbian: bits a synapse, 1/(2 ln 2)", 0.721, classical.sparse_hebbian_capacity()))  # fmt: skip
    why = "a limit of sparse patterns and large networks: the library quotes it, and has no memory of clipped weights"
    for quantity, published, value in quotes:
        yield not_comparable(quantity, "published", published, why, exact(value))
    for load, bits in ((0.5, 0.3013), (1.0, 0.3689), (2.0, 0.4108)):
        yield compare(f"hebbian +-1 values: bits a parameter at N/d={load:g}", "our own", bits,
                      measured(table, BITS, LINE, load), 0.012)  # fmt: skip
    told = "the formula is quoted from memory and recomputed; the paper's own tables were not read"
    for items, accuracy in ((23, 0.9906), (40, 0.9163), (83, 0.6660)):
        yield compare(f"superposition, 27 symbols, {SUPERPOSED} neurons, {items} items: accuracy",
                      "derived from the paper", accuracy, measured(table, SUPERPOSITION, LINE, items), 0.02,
                      told)  # fmt: skip
    best = max(classical.superposition_bits(float(s), ALPHABET) for s in np.linspace(1.5, 4, 51))
    yield compare("superposition, 27 symbols: most bits a neuron", "derived from the paper", 0.376, exact(best), 1e-3,
                  told)  # fmt: skip


CLASSICAL = Replication(
    "classical",
    "Amit, Gutfreund, Sompolinsky 1985; Willshaw et al. 1969; Palm, Sommer 1996; Frady, Kleyko, Sommer 2018, "
    "arXiv 1803.00412",
    "constants recomputed from formulas quoted from memory; none of the texts was read",
    8,
    tasks,
    references,
    judge,
    draw.classics,
)
