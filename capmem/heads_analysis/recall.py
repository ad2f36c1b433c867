"""How many tokens a head remembers: curves of recall over random subsets, and N* by each criterion."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from capmem import metrics
from capmem.capacity import Criterion, from_curves
from capmem.ensembles import SphereKeys, SphereValues
from capmem.feature_maps import Identity
from capmem.heads_analysis.arrays import AS_THEY_ARE, CENTRED, Floats, both_ways, unit
from capmem.heads_analysis.halves import NORMAL
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.task import ALL, Analysed, Record
from capmem.memory import LinearMemory
from capmem.trial import KEY_STREAM, VALUE_STREAM

MEMORY = LinearMemory(Identity())  # of keys divided by their norms
MEASURED = ("top1_accuracy", "top1_by_token", "scale_optimal_error", "relative_squared_error")
SCORES = 2**21  # scores held at once
RESAMPLES = 400
OWN, RANDOM, MEAN = "own", "random", "none: mean of values"
SHUFFLED, TEXT = "shuffled", "text"


class Case(NamedTuple):
    """What is stored: keys and values of the head or random ones, and in which order tokens come."""

    keys: str
    values: str = OWN
    order: str = SHUFFLED


FEW = (Case(AS_THEY_ARE), Case(CENTRED))  # of choices of tokens other than all
CASES = (
    *FEW,
    Case(RANDOM),
    Case(MEAN),
    Case(AS_THEY_ARE, RANDOM),
    Case(CENTRED, RANDOM),
    Case(RANDOM, RANDOM),
    Case(AS_THEY_ARE, order=TEXT),
    Case(CENTRED, order=TEXT),
)


def recall(head: Analysed, settings: HeadsAnalysis) -> tuple[list[Record], list[Record]]:
    """Return curves (a row a case and N) and capacities (a row a case and criterion) of a head.

    The memory is Hebbian, with keys divided by their norms. A trial stores a random subset; in text order, a stretch of
    the text from a random place on, which goes on at its beginning. Centred keys have lost the mean over all tokens.
    Intervals are of the mean over trials, 1.96 standard errors each way, and for N* by bootstrap over trials.
    """
    curves: list[Record] = []
    capacities: list[Record] = []
    for choice, kept in head.choices():
        counts = settings.checkpoints(int(kept.sum()))
        for case in CASES if choice == ALL else FEW:
            if case.values == OWN and not head.own_values:
                continue
            found = _measured(head, kept, case, settings)
            told = head.columns() | {"choice": choice} | case._asdict() | {"tokens": counts[-1]}
            curves += [told | row for row in _curve_rows(counts, found)]
            capacities += [told | row for row in _capacity_rows(counts, found, settings)]
    return curves, capacities


def _measured(head: Analysed, kept: Any, case: Case, settings: HeadsAnalysis) -> dict[str, Floats]:
    labels, (count, dim) = head.labels[kept], head.keys[kept].shape
    if case == Case(RANDOM, RANDOM):
        return _all_random(settings, (count, dim, head.values.shape[1]), tuple(labels.tolist()))
    orders = _orders(settings, count, case.order)
    own = dict(both_ways(head.keys[kept]))
    keys = own[case.keys][orders] if case.keys in own else _random_keys(settings, count, dim)
    values = head.values[kept][orders] if case.values == OWN else _random_values(settings, count, head.values.shape[1])
    return _measure(None if case.keys == MEAN else keys, values, labels[orders], settings)


@lru_cache(maxsize=8)
def _all_random(settings: HeadsAnalysis, shape: tuple[int, int, int], labels: tuple[int, ...]) -> dict[str, Floats]:
    """Measure random keys with random values: the same for every head of one shape."""
    count, dim, value_dim = shape
    keys, values = _random_keys(settings, count, dim), _random_values(settings, count, value_dim)
    return _measure(keys, values, np.array(labels)[_orders(settings, count, SHUFFLED)], settings)


def _measure(keys: Floats | None, values: Floats, labels: Any, settings: HeadsAnalysis) -> dict[str, Floats]:
    """Return each of MEASURED (trials, N) of keys (trials, T, d); without keys, of the mean of the values so far."""
    trials, count = values.shape[:2]
    stored = np.ones((trials, count, 1)) if keys is None else unit(keys)  # equal keys: the sum of the values
    codebook = settings.codebook(values)
    state = MEMORY.init(stored.shape[-1], values.shape[-1], batch=(trials,))
    rows: list[list[Floats]] = []
    written = 0
    for n in settings.checkpoints(count):
        state, written = MEMORY.write(state, stored[:, written:n], values[:, written:n]), n
        retrieved = MEMORY.read(state, stored[:, :n]) / (n if keys is None else 1)
        errors = [f(retrieved, values[:, :n]) for f in (metrics.scale_optimal_error, metrics.relative_squared_error)]
        rows.append([*top1_shares(retrieved, codebook[:, :n], labels[:, :n]), *errors])
    return {name: np.stack([row[i] for row in rows], axis=1) for i, name in enumerate(MEASURED)}


def top1_shares(retrieved: Floats, codebook: Floats, labels: Any) -> tuple[Floats, Floats]:
    """Return top-1 accuracy by index and by token (trials,): retrieved, codebook (trials, N, v), labels (trials, N).

    As :func:`capmem.metrics.top1_accuracy` without and with labels (k-fold ties count 1/k), scored once for both.
    """
    by_index, by_token = np.empty(len(retrieved)), np.empty(len(retrieved))
    step = max(1, SCORES // retrieved.shape[1] ** 2)
    for part in (slice(a, a + step) for a in range(0, len(retrieved), step)):
        scores = retrieved[part] @ codebook[part].swapaxes(-1, -2)
        winners = scores == scores.max(axis=-1, keepdims=True)
        share = 1 / winners.sum(axis=-1)
        equal = labels[part, :, None] == labels[part, None, :]
        by_index[part] = (np.diagonal(winners, axis1=-2, axis2=-1) * share).mean(axis=-1)
        by_token[part] = ((winners & equal).sum(axis=-1) * share).mean(axis=-1)
    return by_index, by_token


def token_order(order: str, count: int, seed: int, trial: int) -> Any:
    """Return the places of `count` tokens in the order of a trial."""
    rng = np.random.default_rng([seed, trial, KEY_STREAM])
    return rng.permutation(count) if order == SHUFFLED else (rng.integers(count) + np.arange(count)) % count


def _orders(settings: HeadsAnalysis, count: int, order: str) -> Any:
    return np.stack([token_order(order, count, settings.seed, trial) for trial in range(settings.trials)])


def _curve_rows(counts: list[int], found: dict[str, Floats]) -> Iterator[Record]:
    for i, n in enumerate(counts):
        row: Record = {"num_pairs": n, "trials": len(found[MEASURED[0]])}
        for name, values in found.items():
            mean = float(values[:, i].mean())
            reach = NORMAL * float(values[:, i].std(ddof=1)) / len(values) ** 0.5
            row |= {name: mean, f"{name}_low": mean - reach, f"{name}_high": mean + reach}
        yield row


def _capacity_rows(counts: list[int], found: dict[str, Floats], settings: HeadsAnalysis) -> Iterator[Record]:
    for column, (metric, threshold) in settings.criteria().items():
        estimate = from_curves(counts, found[column], Criterion(metric, threshold), resamples=RESAMPLES)
        told = {"criterion": column, "threshold": threshold, "trials": settings.trials, "bound": estimate.bound}
        yield told | {"pairs": estimate.pairs, "low": estimate.low, "high": estimate.high, "shown": str(estimate)}


def _random_keys(settings: HeadsAnalysis, count: int, dim: int) -> Floats:
    rngs = [np.random.default_rng([settings.seed, t, KEY_STREAM, 1]) for t in range(settings.trials)]
    return np.stack([SphereKeys().sample(rng, count, dim) for rng in rngs])


@lru_cache(maxsize=4)
def _random_values(settings: HeadsAnalysis, count: int, dim: int) -> Floats:
    rngs = [np.random.default_rng([settings.seed, t, VALUE_STREAM]) for t in range(settings.trials)]
    return np.stack([SphereValues().sample(rng, count, dim) for rng in rngs])
