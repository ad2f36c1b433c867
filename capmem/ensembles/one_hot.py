"""One-hot values: each pair has a coordinate of its own, so reading is a search for the nearest key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem.ensembles.base import VALUES, Rows, Stream
from capmem.ensembles.means import MeanValues


@VALUES.register("one_hot")
@dataclass(frozen=True)
class OneHotValues(MeanValues):
    """Different rows of the identity matrix, in random order: 1 in one coordinate, 0 elsewhere; plus the mean.

    There are v of them. They are orthonormal at mean 0, so errors are exactly those of independent values of mean
    zero: (kappa_ii - 1)^2 + sum_{j != i} kappa_ij^2. But each value needs a dimension, so nothing is compressed,
    and top-1 accuracy only asks which key is nearest to the cue: with unit keys and exact cues it is always 1.
    Use dense values to see interference in it.

    Notes
    -----
    The norm is 1, that of the other laws of values sqrt(v). Relative errors do not depend on it, unless the
    read-out sets the scale (``rms_norm``) or the rule does (``oja``).
    """

    def max_pairs(self, key_dim: int) -> int | None:
        """Return v, the number of different rows; `key_dim` is v here."""
        return key_dim

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; their order is drawn at once; see :meth:`Ensemble.start`."""
        return OneHotStream(rng, dim, self)


class OneHotStream(Stream):
    """The rows of the identity matrix, each one once.

    Parameters
    ----------
    rng : numpy.random.Generator
        It draws the order.
    dim : int
        v.
    law : OneHotValues
        Its mean.
    """

    def __init__(self, rng: np.random.Generator, dim: int, law: OneHotValues) -> None:
        self.law, self.order = law, rng.permutation(dim)
        self.position = 0

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        start, self.position = self.position, self.position + num_rows
        return self._rows(start, self.position)

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return a stream through all rows again, in an order of its own."""
        return OneHotStream(rng, len(self.order), self.law)

    def others(self, rng: np.random.Generator, taken: int, num_rows: int) -> Rows:
        """Return the rows that come after the first `taken` in this stream's order."""
        return self._rows(taken, taken + num_rows)

    def _rows(self, start: int, stop: int) -> Rows:
        places = self.order[start:stop]
        rows = np.zeros((len(places), len(self.order)))
        rows[np.arange(len(places)), places] = 1
        return self.law.about_mean(rows)
