"""The passes of one experiment: which trials go together, where their pairs come from, what stands in their rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem._arrays import Array
from capmem.ages import AgeRows
from capmem.backends import BACKENDS, Backend
from capmem.batch_size import ALWAYS_CAREFUL, MOST_TOGETHER, BatchSize
from capmem.cues import noisy_cues
from capmem.ensembles import ArrayKeys, ArrayValues, Ensemble, Stream
from capmem.ensembles.base import Rows, Whole
from capmem.expected import predictions
from capmem.feature_maps.per_trial import PerTrial
from capmem.memory import LinearMemory, Memory
from capmem.normals import SharedNormals, SharedRows
from capmem.trial import (
    CALIBRATION_STREAM,
    CHUNK,
    CUE_STREAM,
    KEY_STREAM,
    MAP_STREAM,
    SUBSET_STREAM,
    VALUE_STREAM,
    NeedsCare,
    Record,
    Sampling,
    Sources,
    run_trials,
)

if TYPE_CHECKING:
    from capmem.experiment import Experiment

Found = dict[int, list[Record]]  # by trial


class Passes:
    """Runs units of an experiment.

    Trials with the same checkpoints go in batches. Where something is met that must be counted or warned of for each
    trial, the batch is run again in smaller ones, down to a careful run of one: the numbers are the same.

    Parameters
    ----------
    experiment : Experiment
        What is asked.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.size = BatchSize(0 if isinstance(experiment.memory, LinearMemory) else ALWAYS_CAREFUL)
        self._told: dict[int, Record] = {}

    def run(self, wanted: dict[int, list[int]]) -> tuple[list[Record], list[Record]]:
        """Return the records, and those by age, of the numbers of pairs that are wanted of each trial."""
        limit = self.experiment.limit()
        possible = {t: [n for n in some if limit is None or n <= limit] for t, some in wanted.items()}
        rows: Found = {trial: [] for trial in wanted}
        by_age: Found = {trial: [] for trial in wanted}
        nested = self.experiment.keys.nested and self.experiment.values.nested
        for checkpoints, trials in _alike(possible):
            for reached in [checkpoints] if nested else [[n] for n in checkpoints]:
                self._in_batches(trials, reached, rows, by_age)
        reason = f"these keys or values hold {limit} pairs at most"
        skipped = {"status": "skipped", "reason": reason}
        for trial, some in wanted.items():
            rows[trial] += [{"num_pairs": n} | skipped for n in some if n not in possible[trial]]
        return self._in_order(rows), self._in_order(by_age)

    def _in_order(self, rows: Found) -> list[Record]:
        return [self.columns | {"trial": trial} | row for trial, some in rows.items() for row in some]

    @cached_property
    def columns(self) -> Record:
        """What every row of the experiment carries."""
        return self.experiment.columns()

    @cached_property
    def backend(self) -> Backend:
        """What the memory computes with."""
        return BACKENDS[self.experiment.backend](self.experiment.device)

    def _in_batches(self, trials: list[int], checkpoints: list[int], rows: Found, by_age: Found) -> None:
        waiting = list(trials)
        while waiting:
            batch = waiting[: self.size.next(self._together(checkpoints[-1]))]
            try:
                found, ages = self._batch(batch, checkpoints, self.size.careful)
            except NeedsCare:
                self.size.failed(len(batch))
                if len(batch) > 1:
                    continue
                found, ages = self._batch(batch, checkpoints, careful=True)
            else:
                self.size.went_well()
            for trial in batch:
                rows[trial] += found[trial]
                by_age[trial] += ages.get(trial, [])
            waiting = waiting[len(batch) :]

    def _together(self, last: int) -> int:
        """Return how many trials go in one batch."""
        asked, memory = self.experiment, self.experiment.memory
        if not self._sampling(0).reads_all(last):
            return 1
        width = memory.feature_dim(asked.key_dim) or asked.key_dim
        a_pair = asked.key_dim + 2 * asked.value_dim + width
        a_trial = last * a_pair + 2 * memory.state_size(asked.key_dim, asked.value_dim, last).elements
        return max(1, min(MOST_TOGETHER, self.backend.most_numbers // a_trial))

    def _batch(self, trials: list[int], checkpoints: list[int], careful: bool) -> tuple[Found, Found]:
        """Write the pairs of some trials into empty states, up to the last checkpoint.

        Raises
        ------
        NeedsCare
            Where something was met, unless `careful`.
        """
        asked = self.experiment
        memories = [self._memory_of(trial) for trial in trials]
        streams = [self._sources(trial, checkpoints[-1]) for trial in trials]
        memory, means = self._memory_of_all(memories), self._means(memories, streams, trials)
        like = self._stack([np.empty(0)])
        batch = (len(trials),) if len(trials) > 1 else ()
        state = memory.init(asked.key_dim, asked.value_dim, batch, like=like, **means)
        ages = [AgeRows(asked) for _ in trials] if asked.age_bins else []
        rows: Found = {trial: [] for trial in trials}
        with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            given = memory, state, streams, self._sampling(trials[0]), self._stack, checkpoints, asked.metrics
            for records in run_trials(*given, ages, careful):
                if caught and not careful:
                    raise NeedsCare
                told = self._told_of(records[0]["num_pairs"]) | {"warning": _kinds(caught)}
                for trial, record in zip(trials, records, strict=True):
                    rows[trial].append(record | told | {"status": "ok", "reason": None})
        return rows, {trial: each.rows for trial, each in zip(trials, ages, strict=False)}

    def _told_of(self, num_pairs: int) -> Record:
        """Return what does not depend on the trial: predictions, and the size of the state."""
        if num_pairs not in self._told:
            asked = self.experiment
            size = asked.memory.state_size(asked.key_dim, asked.value_dim, num_pairs, asked.dtype)
            sizes = {"state_elements": size.elements, "state_bytes": size.bytes}
            self._told[num_pairs] = predictions(asked, num_pairs) | sizes
        return self._told[num_pairs]

    def _stack(self, rows: list[Any]) -> Array:
        return self.backend.stack(rows, self.experiment.dtype)

    def _sampling(self, trial: int) -> Sampling:
        asked = self.experiment
        return Sampling(asked.max_queries, asked.codebook_size, (asked.seed, trial, SUBSET_STREAM))

    def _memory_of(self, trial: int) -> Memory:
        """Return the memory with this trial's draw of a random feature map."""
        memory: Any = self.experiment.memory
        if not self.experiment.redraw_map or not hasattr(memory.feature_map, "seed"):
            return self.experiment.memory
        seed = int(self._rng(trial, MAP_STREAM, memory.feature_map.seed).integers(2**31))
        redrawn: Memory = replace(memory, feature_map=replace(memory.feature_map, seed=seed))
        return redrawn

    def _memory_of_all(self, memories: list[Any]) -> Memory:
        """Return one memory for the batch."""
        if all(memory is memories[0] for memory in memories):
            return memories[0]  # type: ignore[no-any-return]
        together: Memory = replace(memories[0], feature_map=PerTrial(tuple(m.feature_map for m in memories)))
        return together

    def _means(self, memories: list[Memory], streams: list[Sources], trials: list[int]) -> dict[str, Array]:
        """Return the means that a memory centres by, from further keys of each trial, found in float64."""
        if not memories[0].centers:
            return {}
        each = [
            memory.calibrate(source.keys.fork(self._rng(trial, CALIBRATION_STREAM)).draw(CHUNK))
            for memory, source, trial in zip(memories, streams, trials, strict=True)
        ]
        return {name: self._stack([means[name] for means in each]) for name in each[0]}

    def _sources(self, trial: int, num_pairs: int) -> Sources:
        asked = self.experiment
        keys = self._stream(asked.keys, asked.key_dim, (trial, KEY_STREAM), num_pairs)
        values = self._value_stream(trial, num_pairs)
        cue_rng, subset = self._rng(trial, CUE_STREAM), (SUBSET_STREAM, 0)

        def cue(rows: Rows) -> Rows:
            return noisy_cues(cue_rng, rows, asked.query_cosine)

        return Sources(
            keys=keys,
            values=values,
            cue=None if asked.query_cosine == 1 else cue,
            others=lambda taken, n: values.others(self._rng(trial, *subset), taken, n),
        )

    def _stream(self, law: Ensemble, dim: int, of: tuple[int, int], num_pairs: int) -> Stream:
        """Return the rows of a trial; where they are not nested, those for `num_pairs` alone."""
        if not law.nested:
            return Whole(law.start(self._rng(*of, num_pairs), dim), num_pairs)
        if law.only_normals:
            shared: Any = SharedNormals((self.experiment.seed, *of))
            return law.start(shared, dim)
        return law.start(self._rng(*of), dim)

    def _value_stream(self, trial: int, num_pairs: int) -> Stream:
        """Return the stream of values; row i of a file of values belongs to row i of a file of keys."""
        asked = self.experiment
        if isinstance(asked.values, ArrayValues) and isinstance(asked.keys, ArrayKeys):
            return asked.values.start(self._rng(trial, KEY_STREAM), asked.value_dim, asked.keys.order)
        if asked.values.only_normals:
            return SharedRows(asked.values, asked.value_dim, (asked.seed, trial, VALUE_STREAM))
        return self._stream(asked.values, asked.value_dim, (trial, VALUE_STREAM), num_pairs)

    def _rng(self, trial: int, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.experiment.seed, trial, *stream])


def _alike(wanted: dict[int, list[int]]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield each list of checkpoints, with the trials that it is asked of."""
    trials: dict[tuple[int, ...], list[int]] = {}
    for trial, checkpoints in wanted.items():
        trials.setdefault(tuple(checkpoints), []).append(trial)
    yield from ((list(checkpoints), some) for checkpoints, some in trials.items() if checkpoints)


def wanted_of(units: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the numbers of pairs that are wanted of each trial, both ascending."""
    wanted: dict[int, list[int]] = {}
    for trial, num_pairs in sorted(units):
        wanted.setdefault(trial, []).append(num_pairs)
    return wanted


def _kinds(caught: list[warnings.WarningMessage]) -> str | None:
    """Return which kinds of warning were met, without their counts: those depend on how the writes were cut."""
    kinds = {w.category for w in caught if issubclass(w.category, UserWarning)}
    told = sorted(f"{kind.__name__}: {(kind.__doc__ or '').splitlines()[0]}" for kind in kinds)
    return " ".join(told) or None
