"""Keys in clusters: each resembles the others of its cluster, and no other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, Rows, Stream, generator_from, unit_rows
from capmem.schema import require


@KEYS.register("clustered")
@dataclass(frozen=True)
class ClusteredKeys(Ensemble):
    """k_i = sqrt(c) m_z(i) + sqrt(1 - c) g_i, centres m and g from N(0, I/d); then divided by its norm.

    The cluster z(i) of each key is uniform and independent. The expected cosine is c within a cluster, up to
    O(1/d), and 0 between two. With one cluster this is the equicorrelated law.

    Parameters
    ----------
    num_clusters : int
        How many centres a trial has.
    correlation : float
        c, in [0, 1].

    Raises
    ------
    ValueError
        If a field is out of range.
    """

    num_clusters: int = 8
    correlation: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.num_clusters >= 1, "num_clusters", self.num_clusters, "an integer of at least 1")
        require(0 <= self.correlation <= 1, "correlation", self.correlation, "a number from 0 to 1")

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; the centres are drawn first; see :meth:`Ensemble.start`."""
        centres = rng.standard_normal((self.num_clusters, dim)) / dim**0.5
        return ClusterStream(centres, self.correlation, generator_from(rng), rng)


@dataclass(frozen=True, eq=False)
class ClusterStream(Stream):
    """Keys about fixed centres.

    Parameters
    ----------
    centres : array (num_clusters, d)
        What the keys of a cluster share.
    correlation : float
        See :class:`ClusteredKeys`.
    labels, spread : numpy.random.Generator
        They draw the clusters of the keys, and their own parts.
    """

    centres: Rows
    correlation: float
    labels: np.random.Generator
    spread: np.random.Generator

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        count, dim = self.centres.shape
        shared = self.centres[self.labels.integers(count, size=num_rows)]
        own = self.spread.standard_normal((num_rows, dim)) / dim**0.5
        return unit_rows(self.correlation**0.5 * shared + (1 - self.correlation) ** 0.5 * own)

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return other keys about the same centres; see :meth:`Stream.fork`."""
        return ClusterStream(self.centres, self.correlation, generator_from(rng), rng)
