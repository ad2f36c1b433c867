"""Tight frames: more unit keys than dimensions, spread as evenly as can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, Rows, Stream
from capmem.ensembles.orthonormal import haar_rows


@KEYS.register("tight_frame")
@dataclass(frozen=True)
class TightFrameKeys(Ensemble):
    """N unit rows with Phi^T Phi = (N/d) I; for N <= d orthonormal rows.

    Their mean squared cosine is the least that N unit keys can have, (N-d)/(d(N-1)) (Welch 1974), and a Hebbian
    memory reads orthonormal values with the scale-optimal error 1 - d/N, the least that any linear memory has.

    All rows depend on how many there are: each draw is a frame of its own, held in memory as a whole, and an
    experiment draws one for each checkpoint.
    """

    nested: ClassVar[bool] = False

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream each of whose draws is one frame; see :meth:`Ensemble.start`."""
        return FrameStream(rng, dim)


@dataclass(frozen=True, eq=False)
class FrameStream(Stream):
    """Tight frames in R^dim, drawn from `rng`."""

    rng: np.random.Generator
    dim: int

    def draw(self, num_rows: int) -> Rows:
        """Return one frame (num_rows, dim)."""
        if num_rows <= self.dim:
            return haar_rows(self.rng, num_rows, self.dim)
        columns = haar_rows(self.rng, self.dim, num_rows)
        frame = unit_norms_by_rotation((num_rows / self.dim) ** 0.5 * columns.T)
        return self.rng.permutation(frame)

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return other frames; see :meth:`Stream.fork`."""
        return FrameStream(rng, self.dim)


def unit_norms_by_rotation(rows: Rows) -> Rows:
    """Rotate pairs of rows until all have norm 1; Phi^T Phi stays as it is.

    Parameters
    ----------
    rows : array (N, d)
        The squared norms must add up to N.

    Notes
    -----
    A row x shorter than 1 and a row y longer than 1 become c x + s y, of norm 1, and c y - s x. Davies and Higham
    (2000, BIT 40) do so for one pair after the other; disjoint pairs are rotated together here.
    """
    rows = rows.copy()
    done = np.zeros(len(rows), dtype=bool)
    while True:
        excess = np.where(done, 0, np.einsum("nd,nd->n", rows, rows) - 1)
        short, long = np.flatnonzero(excess < 0), np.flatnonzero(excess > 0)
        pairs = min(len(short), len(long))
        if pairs == 0:
            return rows
        short, long = short[:pairs], long[:pairs]
        x, y = rows[short], rows[long]
        cosine, sine = _rotation(excess[short], excess[long], np.einsum("nd,nd->n", x, y))
        rows[short], rows[long] = cosine * x + sine * y, cosine * y - sine * x
        done[short] = True


def _rotation(below: Rows, above: Rows, inner: Rows) -> tuple[Rows, Rows]:
    """Return cosine, sine (n, 1) with |c x + s y| = 1: their ratio t solves above t^2 + 2 inner t + below = 0."""
    root = np.sqrt(inner**2 - above * below)
    tangent = -below / (inner + np.copysign(root, inner))
    cosine = 1 / np.sqrt(1 + tangent**2)
    return cosine[:, None], (tangent * cosine)[:, None]
