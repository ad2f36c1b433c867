"""Draws that several experiments of one process share: made once for each seed, and kept within bounds."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from capmem.ensembles.base import Ensemble, Rows, Stream

LONGEST = 2**17 + 2**12  # numbers kept of one generator: 1 MB; all that 1,024 pairs of 128 coordinates need
SEQUENCES = 128  # generators whose numbers are kept
MOST_ROWS = 2**16  # numbers of one trial's values that are kept, for so many trials as generators: 64 MB in all


class SharedNormals:
    """Stands for ``default_rng(seed)`` where nothing but standard normal numbers is drawn: the very same numbers.

    What other experiments have drawn from the same seed is not drawn again. The arrays are read-only.

    Parameters
    ----------
    seed : sequence of int
        As :func:`numpy.random.default_rng` takes it.
    """

    def __init__(self, seed: Sequence[int]) -> None:
        self._kept = _sequence(tuple(seed))
        self._position = 0
        self._beyond: np.random.Generator | None = None

    def standard_normal(self, size: int | tuple[int, ...]) -> Rows:
        """Return the next numbers, in this shape."""
        count = size if isinstance(size, int) else math.prod(size)
        stop = self._position + count
        inside = self._kept.up_to(min(stop, LONGEST))[self._position : stop]
        self._position = stop
        if stop > LONGEST:
            if self._beyond is None:
                self._beyond = self._kept.go_on()
            rest = self._beyond.standard_normal(count - inside.size)
            inside = np.concatenate([inside, rest]) if inside.size else rest
        return inside.reshape(size)


class _Sequence:
    """The first numbers of one generator, drawn when they are asked for."""

    def __init__(self, seed: tuple[int, ...]) -> None:
        self._rng = np.random.default_rng(seed)
        self._numbers: Rows = np.empty(0)

    def up_to(self, stop: int) -> Rows:
        """Return at least the first `stop` numbers."""
        lacking = stop - self._numbers.size
        if lacking > 0:
            self._numbers = np.concatenate([self._numbers, self._rng.standard_normal(lacking)])
            self._numbers.setflags(write=False)
        return self._numbers

    def go_on(self) -> np.random.Generator:
        """Return a generator of the numbers after the :data:`LONGEST` first."""
        self.up_to(LONGEST)
        return copy.deepcopy(self._rng)


@lru_cache(maxsize=SEQUENCES)
def _sequence(seed: tuple[int, ...]) -> _Sequence:
    return _Sequence(seed)


class SharedRows(Stream):
    """The rows of one seed, which experiments that differ in their keys alone have in common; see :class:`Stream`.

    Parameters
    ----------
    law : Ensemble
        Of the rows.
    dim : int
        Their dimension.
    seed : sequence of int
        As :func:`numpy.random.default_rng` takes it.
    """

    def __init__(self, law: Ensemble, dim: int, seed: Sequence[int]) -> None:
        self.law, self.dim, self.seed = law, dim, tuple(seed)
        self.taken = 0
        self.stream: Stream | None = None

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; few enough first ones are kept, read-only; see :meth:`Stream.draw`."""
        first = self.taken == 0
        self.taken += num_rows
        if first and num_rows * self.dim <= MOST_ROWS:
            return _first_rows(self.law, self.dim, self.seed, num_rows)
        if self.stream is None:
            self.stream = self._start()
            self.stream.draw(self.taken - num_rows)
        return self.stream.draw(num_rows)

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return other rows of the law; see :meth:`Stream.fork`."""
        return self._start().fork(rng)

    def _start(self) -> Stream:
        return self.law.start(np.random.default_rng(self.seed), self.dim)


@lru_cache(maxsize=SEQUENCES)
def _first_rows(law: Ensemble, dim: int, seed: tuple[int, ...], num_rows: int) -> Rows:
    rows = law.start(np.random.default_rng(seed), dim).draw(num_rows)
    rows.setflags(write=False)
    return rows
