"""Keys that come again with another value: what a memory must overwrite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, Flags, Places, Rows, Stream, generator_from
from capmem.ensembles.gaussian import SphereKeys
from capmem.schema import require


@KEYS.register("duplicated")
@dataclass(frozen=True)
class DuplicatedKeys(Ensemble):
    """Each pair after the first uses an earlier key again with chance f, else a new one, uniform on the sphere.

    The earlier key is uniform among the different ones so far. The target of a repeated key is its latest value:
    superseded pairs are stored but not scored, and N pairs leave 1 + (N-1)(1-f) to be scored in expectation (column
    ``num_scored``). The superseded values stay in the codebook of top-1 accuracy.

    Parameters
    ----------
    fraction : float
        f, in [0, 1].

    Raises
    ------
    ValueError
        If the fraction is out of range.

    Notes
    -----
    All different keys so far are held, 8 d bytes each. A read that averages all values of a key that was written
    n times has the error (n - 1)/n, however well keys are told apart.
    """

    fraction: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.fraction <= 1, "fraction", self.fraction, "a number from 0 to 1")

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return DuplicateStream(SphereKeys().start(rng, dim), self.fraction, generator_from(rng))


class DuplicateStream(Stream):
    """Rows of another stream, some of them again.

    Parameters
    ----------
    distinct : Stream
        Where new rows come from.
    fraction : float
        See :class:`DuplicatedKeys`.
    choices : numpy.random.Generator
        It draws which pairs are repeats, and of what.
    """

    def __init__(self, distinct: Stream, fraction: float, choices: np.random.Generator) -> None:
        self.distinct, self.fraction, self.choices = distinct, fraction, choices
        self.rows: Rows = np.empty((0, 0))  # the different ones, with room for more
        self.count = 0
        self.origins = np.empty(0, dtype=np.int64)

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        chances = self.choices.random((num_rows, 2))
        again = chances[:, 0] < self.fraction
        if self.count == 0:
            again[:1] = False
        known = self.count + np.cumsum(~again) - ~again
        origins = np.where(again, (chances[:, 1] * known).astype(np.int64), known)
        rows = self._grow(self.distinct.draw(int(np.count_nonzero(~again))))
        self.origins = np.concatenate([self.origins, origins])
        return rows[origins]

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return other rows, with repeats of their own; see :meth:`Stream.fork`."""
        return DuplicateStream(self.distinct.fork(rng), self.fraction, generator_from(rng))

    def superseded(self, places: Places, num_rows: int) -> Flags:
        """Return which rows come again later; see :meth:`Stream.superseded`."""
        _, from_the_end = np.unique(self.origins[:num_rows][::-1], return_index=True)
        latest = num_rows - 1 - from_the_end
        return ~np.isin(places, latest)

    def _grow(self, new: Rows) -> Rows:
        """Keep new rows; return the array whose row i is the i-th different one."""
        total = self.count + len(new)
        if total > len(self.rows):
            roomy = np.empty((2 * total, new.shape[1]))
            if self.count:
                roomy[: self.count] = self.rows[: self.count]
            self.rows = roomy
        self.rows[self.count : total] = new
        self.count = total
        return self.rows
