"""One trial: pairs stream into a memory once, and it is read at each checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from capmem import metrics
from capmem._arrays import Array, namespace, take_rows
from capmem.ensembles.base import Stream
from capmem.memory import Memory

FIRST_BOUNDARY = 64
CHUNK = 4096  # pairs written at once at most; also the number of codewords that top-1 competes against

# Each kind of draw has a generator of its own, seeded [seed, trial, stream]: the same draws for every map,
# rule, correlation and dtype.
KEY_STREAM, VALUE_STREAM, CUE_STREAM, MAP_STREAM, CALIBRATION_STREAM, SUBSET_STREAM = range(6)

Record = dict[str, Any]
Places = np.ndarray[Any, np.dtype[np.int64]]


class Read(NamedTuple):
    """What one checkpoint gives the metrics: retrieved and targets (M, v), codebook (C, v), targets' places."""

    retrieved: Array
    targets: Array
    codebook: Array
    places: Array


Watch = Callable[[Read, Places, int], None]  # read, the places (M,) of its pairs, N

METRICS: dict[str, Callable[[Read], Array]] = {
    "relative_squared_error": lambda r: metrics.relative_squared_error(r.retrieved, r.targets),
    "scale_optimal_error": lambda r: metrics.scale_optimal_error(r.retrieved, r.targets),
    "cosine_similarity": lambda r: metrics.cosine_similarity(r.retrieved, r.targets),
    "signal_to_noise": lambda r: metrics.signal_to_noise(r.retrieved, r.targets),
    "top1_accuracy": lambda r: metrics.top1_accuracy(r.retrieved, r.codebook, r.places),
}


@dataclass(frozen=True, eq=False)
class Sources:
    """Where the pairs of a trial come from.

    Parameters
    ----------
    keys, values : Stream
        Pair i is row i of both.
    cue : callable
        cue(keys) -> queries, chunk by chunk.
    others : callable
        others(num_pairs, n) -> (n, v): codewords that are not among the first num_pairs values.
    cast : callable
        Turns drawn rows into the arrays that the memory computes with.
    """

    keys: Stream
    values: Stream
    cue: Callable[[Any], Any]
    others: Callable[[int, int], Any]
    cast: Callable[[Any], Array]


@dataclass(frozen=True)
class Sampling:
    """How much is read: which of the stored pairs are asked for, and what top-1 competes against.

    Parameters
    ----------
    max_queries : int
        Above this number of pairs, a systematic sample of their places is read.
    codebook_size : int or None
        With M given, M - N codewords that were not stored join the codebook.
    seed : tuple of int
        Seeds the sample of stored codewords above 4,096 pairs.
    """

    max_queries: int
    codebook_size: int | None
    seed: tuple[int, ...]

    def queries(self, num_pairs: int) -> Places:
        """Return the places (M,) of the pairs that are read."""
        count = min(num_pairs, self.max_queries)
        return (2 * np.arange(count) + 1) * num_pairs // (2 * count)

    def stored_codewords(self, num_pairs: int) -> Places:
        """Return the places of the stored values in the codebook: all up to 4,096, then a sample."""
        if num_pairs <= CHUNK:
            return np.arange(num_pairs)
        queries = self.queries(num_pairs)
        free = np.setdiff1d(np.arange(num_pairs), queries, assume_unique=True)
        rng = np.random.default_rng([*self.seed, num_pairs])
        more = rng.choice(free, size=max(0, CHUNK - queries.size), replace=False)
        return np.sort(np.concatenate([queries, more]))


def boundaries(last: int) -> Iterator[tuple[int, int]]:
    """Yield the fixed chunks (start, stop) that the state advances along: 64, powers of two, then every 4,096.

    They depend on nothing else, so a result's bits do not depend on which other checkpoints were asked for.
    """
    start, stop = 0, FIRST_BOUNDARY
    while start < last:
        yield start, stop
        start, stop = stop, stop + min(stop, CHUNK)


def run_trial(
    memory: Memory,
    state: Any,
    sources: Sources,
    sampling: Sampling,
    checkpoints: Sequence[int],
    names: Sequence[str],
    watch: Watch | None = None,
) -> Iterator[Record]:
    """Write pairs into `state`, and yield one record a checkpoint.

    Parameters
    ----------
    memory : Memory
        What is written to and read.
    state : Any
        The empty state, with its means.
    sources : Sources
        Where pairs come from.
    sampling : Sampling
        What is read.
    checkpoints : sequence of int
        Numbers of pairs, ascending.
    names : sequence of str
        Names in :data:`METRICS`.
    watch : callable, optional
        watch(read, places, num_pairs): told of each read before its record is yielded; its time is not counted.
    """
    kept = _Kept(checkpoints, sampling)
    started = time.perf_counter()
    for reached, full in _reached(memory, state, sources, checkpoints, kept):
        record, read, places = _measure(memory, full, kept, sampling, sources, reached, names)
        record["elapsed_s"] = time.perf_counter() - started
        if watch is not None:
            watch(read, places, reached)
        yield record
        started = time.perf_counter()  # what was done with the record is not this trial's time


def _reached(
    memory: Memory, state: Any, sources: Sources, checkpoints: Sequence[int], kept: _Kept
) -> Iterator[tuple[int, Any]]:
    """Yield each checkpoint with the state there; one within a chunk is a partial write that is thrown away."""
    for chunk in _chunks(sources, checkpoints[-1], kept):
        for reached in [n for n in checkpoints if chunk.start < n < chunk.stop]:
            yield reached, memory.write(state, *chunk.head(reached))
        if chunk.complete:
            state = memory.write(state, chunk.keys, chunk.values)
        if chunk.stop in checkpoints:
            yield chunk.stop, state


class _Chunk(NamedTuple):
    start: int
    stop: int
    keys: Array
    values: Array
    complete: bool

    def head(self, reached: int) -> tuple[Array, Array]:
        """The pairs of this chunk that come before place `reached`."""
        count = reached - self.start
        return self.keys[:count, ...], self.values[:count, ...]


def _chunks(sources: Sources, last: int, kept: _Kept) -> Iterator[_Chunk]:
    for start, stop in boundaries(last):
        end = min(stop, last)
        drawn = sources.keys.draw(end - start)
        keys, cues = sources.cast(drawn), sources.cast(sources.cue(drawn))
        values = sources.cast(sources.values.draw(end - start))
        kept.add(start, end, cues, values)
        yield _Chunk(start, stop, keys, values, end == stop)


class _Kept:
    """The cues and values that some checkpoint will ask for; all others are forgotten."""

    def __init__(self, checkpoints: Sequence[int], sampling: Sampling) -> None:
        self.sampled = checkpoints[-1] > min(CHUNK, sampling.max_queries)
        wanted = [w for n in checkpoints for w in (sampling.queries(n), sampling.stored_codewords(n))]
        self.places = np.unique(np.concatenate(wanted))
        self.cues: list[Array] = []
        self.values: list[Array] = []

    def add(self, start: int, end: int, cues: Array, values: Array) -> None:
        if self.sampled:
            inside = self.places[(self.places >= start) & (self.places < end)] - start
            cues, values = take_rows(cues, inside), take_rows(values, inside)
        self.cues.append(cues)
        self.values.append(values)

    def rows(self, chunks: list[Array], places: np.ndarray[Any, Any]) -> Array:
        joined = namespace(chunks[0]).concat(chunks, axis=0)
        return take_rows(joined, np.searchsorted(self.places, places))


def _measure(
    memory: Memory,
    state: Any,
    kept: _Kept,
    sampling: Sampling,
    sources: Sources,
    num_pairs: int,
    names: Sequence[str],
) -> tuple[Record, Read, Places]:
    asked, stored = sampling.queries(num_pairs), sampling.stored_codewords(num_pairs)
    places = asked[~sources.keys.superseded(asked, num_pairs)]
    targets, codebook = kept.rows(kept.values, places), kept.rows(kept.values, stored)
    xp = namespace(targets)
    if sampling.codebook_size is not None and sampling.codebook_size > num_pairs:
        others = sources.cast(sources.others(num_pairs, sampling.codebook_size - num_pairs))
        codebook = xp.concat([codebook, others], axis=0)
    queries = kept.rows(kept.cues, places)
    retrieved, met = memory.read(state, queries, xp.asarray(places, device=queries.device), diagnostics=True)
    index = xp.asarray(np.searchsorted(stored, places), device=targets.device)
    read = Read(retrieved, targets, codebook, index)
    record = {
        "num_pairs": num_pairs,
        "num_queries": int(asked.size),
        "num_scored": int(places.size),
        "codebook_size": int(codebook.shape[0]),
        **{name: float(METRICS[name](read)) if places.size else math.nan for name in names},
        "nonpositive_denominators": met.nonpositive_denominators,
        "zero_denominators": met.zero_denominators,
        "zero_keys": state.zero_rows,
        "zero_queries": met.zero_rows,
        "nonfinite_retrieved": int(xp.count_nonzero(~xp.all(xp.isfinite(retrieved), axis=-1))),
    }
    return record, read, places
