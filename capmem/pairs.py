"""The pairs of one or several trials on their way into a memory: all at hand, or streamed chunk by chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from capmem._arrays import Array, device, namespace
from capmem.ensembles.base import Stream
from capmem.memory import Memory
from capmem.memory.base import Diagnostics, Prepared
from capmem.sampling import Places, Sampling, boundaries

Stack = Callable[[list[Any]], Array]


@dataclass(frozen=True, eq=False)
class Sources:
    """Where the pairs of a trial come from.

    Parameters
    ----------
    keys, values : Stream
        Pair i is row i of both.
    cue : callable, optional
        cue(keys) -> queries, chunk by chunk; without one the memory is asked with the keys themselves.
    others : callable
        others(num_pairs, n) -> (n, v): codewords that are not among the first num_pairs values.
    """

    keys: Stream
    values: Stream
    cue: Callable[[Any], Any] | None
    others: Callable[[int, int], Any]


class Reached(NamedTuple):
    """A checkpoint, and the memory's state there."""

    num_pairs: int
    state: Any


@dataclass(eq=False)
class Pairs(ABC):
    """Pairs that are written along fixed boundaries; a checkpoint between two is a partial write, thrown away.

    Parameters
    ----------
    memory : Memory
        What is written to and read.
    state : Any
        The empty state, with its means; its batch axis, if any, is the trials.
    sources : sequence of Sources
        One a trial.
    stack : callable
        Turns the drawn rows of the trials into one array that the memory computes with.
    checkpoints : sequence of int
        Numbers of pairs, ascending.
    """

    memory: Memory
    state: Any
    sources: Sequence[Sources]
    stack: Stack
    checkpoints: Sequence[int]

    def reached(self) -> Iterator[Reached]:
        """Yield each checkpoint with the state there."""
        state = self.state
        for start, stop in boundaries(self.checkpoints[-1]):
            end = min(stop, self.checkpoints[-1])
            self.load(start, end)
            for count in [n for n in self.checkpoints if start < n < stop]:
                yield Reached(count, self.write(state, start, count))
            if end == stop:
                state = self.write(state, start, stop)
            if stop in self.checkpoints:
                yield Reached(stop, state)

    @property
    def shares(self) -> bool:
        """Whether features are computed once, for writing and for all reads."""
        return False

    @abstractmethod
    def load(self, start: int, end: int) -> None:
        """See that the pairs from `start` to `end` are at hand."""

    @abstractmethod
    def write(self, state: Any, start: int, end: int) -> Any:
        """Return the state after these pairs of the chunk that was loaded last."""

    @abstractmethod
    def values(self, places: Places) -> Array:
        """Return the values (..., M, v) stored at these places."""

    @abstractmethod
    def read(self, state: Any, places: Places) -> tuple[Array, Diagnostics]:
        """Return what the cues of the pairs at these places retrieve."""


class AllPairs(Pairs):
    """Few enough pairs to be drawn at once; see :class:`Pairs`.

    Parameters
    ----------
    shared : bool
        Compute features once, for writing and for all reads. Only for cues that are the keys, and a map whose
        features of a key do not depend on the others.
    """

    def __init__(self, *given: Any, shared: bool) -> None:
        super().__init__(*given)
        last = self.checkpoints[-1]
        drawn = [each.keys.draw(last) for each in self.sources]
        self.keys = self.cues = self.stack(drawn)
        if self.sources[0].cue is not None:
            self.cues = self.stack([each.cue(rows) for each, rows in zip(self.sources, drawn, strict=True)])  # type: ignore[misc]
        self.stored = self.stack([each.values.draw(last) for each in self.sources])
        self.prepared: Prepared | None = None
        if shared:
            self.prepared = self.memory.prepare(self.state, self.keys, self._positions(np.arange(last)))

    @property
    def shares(self) -> bool:
        """Whether features are computed once; see :attr:`Pairs.shares`."""
        return self.prepared is not None

    def load(self, start: int, end: int) -> None:
        """Do nothing; see :meth:`Pairs.load`."""

    def write(self, state: Any, start: int, end: int) -> Any:
        """Return the state after these pairs; see :meth:`Pairs.write`."""
        values = self.stored[..., start:end, :]
        if self.prepared is None:
            return self.memory.write(state, self.keys[..., start:end, :], values)
        return self.memory.write_prepared(state, Prepared(self.prepared.rows[..., start:end, :]), values)

    def values(self, places: Places) -> Array:
        """Return the values at these places; see :meth:`Pairs.values`."""
        return _at(self.stored, places)

    def read(self, state: Any, places: Places) -> tuple[Array, Diagnostics]:
        """Return what their cues retrieve; see :meth:`Pairs.read`."""
        if self.prepared is not None:
            return self.memory.read_prepared(state, Prepared(_at(self.prepared.rows, places)))
        found: tuple[Array, Diagnostics] = self.memory.read(
            state, _at(self.cues, places), self._positions(places), diagnostics=True
        )
        return found

    def _positions(self, places: Places) -> Array:
        return namespace(self.keys).asarray(places, device=device(self.keys))


class StreamedPairs(Pairs):
    """One trial's pairs in chunks; cues and values that no checkpoint will ask for are forgotten; see :class:`Pairs`.

    Parameters
    ----------
    sampling : Sampling
        What is asked for.
    """

    def __init__(self, *given: Any, sampling: Sampling) -> None:
        super().__init__(*given)
        wanted = [w for n in self.checkpoints for w in (sampling.queries(n), sampling.stored_codewords(n))]
        self.places = np.unique(np.concatenate(wanted))
        self.kept: list[tuple[Array, Array]] = []

    def load(self, start: int, end: int) -> None:
        """Draw the chunk, and keep what is asked for; see :meth:`Pairs.load`."""
        (source,) = self.sources
        drawn = source.keys.draw(end - start)
        keys, values = self.stack([drawn]), self.stack([source.values.draw(end - start)])
        cues = keys if source.cue is None else self.stack([source.cue(drawn)])
        self.chunk = start, keys, values
        first, last = np.searchsorted(self.places, (start, end))
        inside = self.places[first:last] - start
        self.kept.append((_at(cues, inside), _at(values, inside)))

    def write(self, state: Any, start: int, end: int) -> Any:
        """Return the state after these pairs; see :meth:`Pairs.write`."""
        _, keys, values = self.chunk
        return self.memory.write(state, keys[..., : end - start, :], values[..., : end - start, :])

    def values(self, places: Places) -> Array:
        """Return the values at these places; see :meth:`Pairs.values`."""
        return self._kept(1, places)

    def read(self, state: Any, places: Places) -> tuple[Array, Diagnostics]:
        """Return what their cues retrieve; see :meth:`Pairs.read`."""
        cues = self._kept(0, places)
        positions = namespace(cues).asarray(places, device=device(cues))
        found: tuple[Array, Diagnostics] = self.memory.read(state, cues, positions, diagnostics=True)
        return found

    def _kept(self, which: int, places: Places) -> Array:
        if len(self.kept) > 1:
            joined = namespace(self.kept[0][0]).concat
            self.kept = [(joined([c for c, _ in self.kept], axis=-2), joined([v for _, v in self.kept], axis=-2))]
        return _at(self.kept[0][which], np.searchsorted(self.places, places))


def _at(rows: Array, places: Places) -> Array:
    """Return the rows (..., M, dim) at these ascending places: a view where they are the first M."""
    if places.size and places[-1] == places.size - 1:
        return rows[..., : places.size, :]
    xp = namespace(rows)
    return xp.take(rows, xp.asarray(places, device=device(rows)), axis=-2)
