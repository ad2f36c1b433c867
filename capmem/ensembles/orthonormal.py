"""Orthonormal keys: the ones that a linear memory reads back exactly, d of them at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, Rows, Stream


@KEYS.register("orthonormal")
@dataclass(frozen=True)
class OrthonormalKeys(Ensemble):
    """Rows of a Haar-random orthogonal matrix: k_i . k_j = 1 if i = j, else 0.

    There are d of them; more are refused by :meth:`sample`, and skipped by experiments.
    """

    def max_pairs(self, key_dim: int) -> int | None:
        """Return d."""
        return key_dim

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; the whole matrix is drawn at once; see :meth:`Ensemble.start`."""
        return HaarStream(rng, dim)


class HaarStream(Stream):
    """Rows of one random orthogonal matrix after the other; only the first d rows are orthogonal to each other.

    Parameters
    ----------
    rng : numpy.random.Generator
        It draws the matrices.
    dim : int
        d.
    """

    def __init__(self, rng: np.random.Generator, dim: int) -> None:
        self.rng, self.dim = rng, dim
        self.left: Rows = np.empty((0, dim))

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        missing = -(-(num_rows - len(self.left)) // self.dim)
        blocks = [haar_rows(self.rng, self.dim, self.dim) for _ in range(missing)]
        rows = np.concatenate([self.left, *blocks])
        self.left = rows[num_rows:]
        return rows[:num_rows]

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return rows of other matrices; see :meth:`Stream.fork`."""
        return HaarStream(rng, self.dim)


def haar_rows(rng: np.random.Generator, count: int, dim: int) -> Rows:
    """Return `count` <= dim orthonormal rows (count, dim), uniform over all such.

    Notes
    -----
    Row i is the part of a Gaussian vector g_i that is orthogonal to those before it, normed. LAPACK's QR gives it
    a sign by a convention, which is not uniform; a positive diagonal of R undoes that (Mezzadri 2007, Notices of
    the AMS 54).
    """
    q, r = np.linalg.qr(rng.standard_normal((count, dim)).T)
    rows: Rows = (q * np.copysign(1.0, np.diagonal(r))).T
    return rows
