"""Trials: pairs stream into a memory once, and it is read at each checkpoint; several trials go as one batch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from capmem import top1
from capmem._arrays import Array, device, namespace
from capmem.comparison import Comparison
from capmem.memory import Memory
from capmem.pairs import AllPairs, Pairs, Reached, Sources, Stack, StreamedPairs
from capmem.sampling import CHUNK, Places, Sampling, boundaries

__all__ = ["CHUNK", "METRICS", "Places", "Read", "Record", "Sampling", "Sources", "boundaries", "run_trials"]

# Each kind of draw has a generator of its own, seeded [seed, trial, stream]: the same draws for every map,
# rule, correlation and dtype.
KEY_STREAM, VALUE_STREAM, CUE_STREAM, MAP_STREAM, CALIBRATION_STREAM, SUBSET_STREAM = range(6)

Record = dict[str, Any]


class NeedsCare(Exception):
    """Something was met that must be counted trial by trial, for exactly the pairs of a checkpoint."""


@dataclass(frozen=True, eq=False)
class Read:
    """What one checkpoint gives the metrics; leading axes, if any, are trials.

    Parameters
    ----------
    retrieved, targets : array (..., M, v)
        What came back, and what was stored.
    codebook : array (..., C, v)
        What top-1 competes against.
    places : array (M,)
        Where the targets are in the codebook.
    """

    retrieved: Array
    targets: Array
    codebook: Array
    places: Array

    @cached_property
    def comparison(self) -> Comparison:
        """What the errors share."""
        return Comparison(self.retrieved, self.targets)

    def top1_accuracy(self) -> Array:
        """Return :func:`capmem.metrics.top1_accuracy`; what the errors have found already is not found again."""
        known = self.comparison if self.codebook is self.targets else None
        xp = namespace(self.retrieved)
        return xp.mean(top1.shares(xp, self.retrieved, self.codebook, self.places, known=known), axis=-1)

    def of(self, trial: int) -> Read:
        """Return the read of one trial of the batch."""
        return Read(self.retrieved[trial, ...], self.targets[trial, ...], self.codebook[trial, ...], self.places)


Watch = Callable[[Read, Places, int], None]  # a trial's read, the places (M,) of its pairs, N

METRICS: dict[str, Callable[[Read], Array]] = {
    "relative_squared_error": lambda r: r.comparison.relative_squared_error(),
    "scale_optimal_error": lambda r: r.comparison.scale_optimal_error(),
    "cosine_similarity": lambda r: r.comparison.cosine_similarity(),
    "signal_to_noise": lambda r: r.comparison.signal_to_noise(),
    "top1_accuracy": lambda r: r.top1_accuracy(),
}


def run_trials(
    memory: Memory,
    state: Any,
    sources: Sequence[Sources],
    sampling: Sampling,
    stack: Stack,
    checkpoints: Sequence[int],
    names: Sequence[str],
    watches: Sequence[Watch] = (),
    careful: bool = True,
) -> Iterator[list[Record]]:
    """Write pairs into `state`, and yield at each checkpoint one record a trial.

    Parameters
    ----------
    memory : Memory
        What is written to and read.
    state : Any
        The empty state, with its means; with several trials, its batch axis is theirs.
    sources : sequence of Sources
        Where the pairs of each trial come from.
    sampling : Sampling
        What is read.
    stack : callable
        Turns the drawn rows of the trials into one array: (N, dim) for one trial, (T, N, dim) for T.
    checkpoints : sequence of int
        Numbers of pairs, ascending.
    names : sequence of str
        Names in :data:`METRICS`.
    watches : sequence of callable
        One a trial, or none: watch(read, places, num_pairs) is told of each read before its record is yielded.
    careful : bool
        Count what is met for one trial, and for exactly the pairs of a checkpoint. Otherwise features are shared,
        and :class:`NeedsCare` is raised when anything is met; the numbers are the same to the last bit.
    """
    last = checkpoints[-1]
    given = memory, state, sources, stack, checkpoints
    started = time.perf_counter()
    pairs: Pairs
    if sampling.reads_all(last):
        pairs = AllPairs(*given, shared=not careful and _row_wise(memory) and sources[0].cue is None)
        if pairs.prepared is not None and pairs.prepared.zero_rows:
            raise NeedsCare
    else:
        pairs = StreamedPairs(*given, sampling=sampling)
    for each in pairs.reached():
        found, read, places = _measure(memory, pairs, each, sampling, names)
        if not careful and _met(found):
            raise NeedsCare
        share = (time.perf_counter() - started) / len(sources)
        for trial, watch in enumerate(watches):
            watch(read if len(sources) == 1 else read.of(trial), places, each.num_pairs)
        yield [record | {"elapsed_s": share} for record in found]
        started = time.perf_counter()  # what was done with the records is not these trials' time


def _row_wise(memory: Memory) -> bool:
    return bool(getattr(memory.feature_map, "row_wise", False))


COUNTS = ("nonpositive_denominators", "zero_denominators", "zero_keys", "zero_queries", "nonfinite_retrieved")


def _met(records: list[Record]) -> bool:
    """Whether anything was counted in a batch; a single trial's counts are right as they are."""
    return len(records) > 1 and any(records[0][name] for name in COUNTS)


def _measure(
    memory: Memory, pairs: Pairs, reached: Reached, sampling: Sampling, names: Sequence[str]
) -> tuple[list[Record], Read, Places]:
    num_pairs, trials = reached.num_pairs, len(pairs.sources)
    asked, stored = sampling.queries(num_pairs), sampling.stored_codewords(num_pairs)
    places = _scored(pairs, asked, num_pairs)
    targets = pairs.values(places)
    codebook = targets if places.size == stored.size else pairs.values(stored)
    xp = namespace(targets)
    if sampling.codebook_size is not None and sampling.codebook_size > num_pairs:
        more = sampling.codebook_size - num_pairs
        others = pairs.stack([each.others(num_pairs, more) for each in pairs.sources])
        codebook = xp.concat([codebook, others], axis=-2)
    retrieved, met = pairs.read(reached.state, places)
    index = xp.asarray(np.searchsorted(stored, places), device=device(targets))
    read = Read(retrieved, targets, codebook, index)
    finite = bool(places.size) and read.comparison.plain
    if trials > 1 and not finite:
        raise NeedsCare  # another way of summing, which one trial must not choose for the others
    shared = {
        "num_pairs": num_pairs,
        "num_queries": int(asked.size),
        "num_scored": int(places.size),
        "codebook_size": int(codebook.shape[-2]),
    }
    counts = {
        "nonpositive_denominators": met.nonpositive_denominators,
        "zero_denominators": met.zero_denominators,
        "zero_keys": reached.state.zero_rows,
        "zero_queries": met.zero_rows,
        "nonfinite_retrieved": 0 if finite else int(xp.count_nonzero(~xp.all(xp.isfinite(retrieved), axis=-1))),
    }
    found = _numbers(xp, [METRICS[name](read) for name in names], trials) if places.size else []
    each = zip(*found, strict=True) if found else [(math.nan,) * len(names)] * trials
    return [shared | dict(zip(names, row, strict=True)) | counts for row in each], read, places


def _scored(pairs: Pairs, asked: Places, num_pairs: int) -> Places:
    """Return the places that are scored, the same in all trials; all of them, where features are shared."""
    superseded = [each.keys.superseded(asked, num_pairs) for each in pairs.sources]
    if not any(flags.any() for flags in superseded):
        return asked
    if len(superseded) > 1 or pairs.shares:
        raise NeedsCare  # other places in each trial, and the first pairs no longer
    return asked[~superseded[0]]


def _numbers(xp: Any, found: list[Array], trials: int) -> list[list[float]]:
    """Return each metric (trials,) as plain numbers; from a device they come in one go."""
    if trials == 1:
        return [[float(number)] for number in found]
    rows: list[list[float]] = xp.reshape(xp.stack(found), (len(found), trials)).tolist() if found else []
    return rows
