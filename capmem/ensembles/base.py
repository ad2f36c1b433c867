"""What an ensemble is: a law of keys or values, drawn in chunks of any size with the same result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from capmem.registry import Registry
from capmem.schema import check_fields, require

Rows = NDArray[np.float64]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
Law = Callable[[np.random.Generator, int], Rows]


class Stream(ABC):
    """Rows of one realisation of a law (its common key, its centres), drawn one chunk after the other."""

    @abstractmethod
    def draw(self, num_rows: int) -> Rows:
        """Return the next `num_rows` rows (num_rows, dim)."""

    @abstractmethod
    def fork(self, rng: np.random.Generator) -> Stream:
        """Return other rows of the same realisation, drawn from `rng`: what a memory is calibrated on."""

    def others(self, rng: np.random.Generator, taken: int, num_rows: int) -> Rows:
        """Return `num_rows` rows that are not among the first `taken`."""
        return self.fork(rng).draw(num_rows)

    def superseded(self, places: Places, num_rows: int) -> Flags:
        """Return which of the rows at `places` are repeated by a later one among the first `num_rows`."""
        return np.zeros(places.shape, dtype=bool)


@dataclass(frozen=True, eq=False)
class LawStream(Stream):
    """Rows drawn one by one from a law.

    Parameters
    ----------
    law : callable
        law(rng, n) -> (n, dim), float64: the next n rows.
    rng : numpy.random.Generator
        It draws the rows and nothing else, so the first n do not depend on how many follow.
    """

    law: Law
    rng: np.random.Generator

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        return self.law(self.rng, num_rows)

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return the same law with another generator; see :meth:`Stream.fork`."""
        return LawStream(self.law, rng)


class Whole(Stream):
    """The rows of a single draw, handed out piece by piece: for laws whose rows depend on how many there are.

    Parameters
    ----------
    stream : Stream
        The rows are its next `num_rows` ones.
    num_rows : int
        How many.
    """

    def __init__(self, stream: Stream, num_rows: int) -> None:
        self.stream, self.rows = stream, stream.draw(num_rows)
        self.position = 0

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        start, self.position = self.position, self.position + num_rows
        return self.rows[start : self.position]

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return other rows of the law; see :meth:`Stream.fork`."""
        return self.stream.fork(rng)

    def superseded(self, places: Places, num_rows: int) -> Flags:
        """Return which rows come again later; see :meth:`Stream.superseded`."""
        return self.stream.superseded(places, num_rows)


@dataclass(frozen=True)
class Ensemble(ABC):
    """A law of rows in R^dim.

    Attributes
    ----------
    nested : bool
        Whether the first n rows are the same for every N. Otherwise every draw is a realisation of its own.
    only_normals : bool
        Whether a stream draws nothing but standard normal numbers, and leaves them as they are: such draws are
        shared between experiments, as read-only arrays.
    """

    nested: ClassVar[bool] = True
    only_normals: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows: what all rows share is drawn first, then the rows in order."""

    def sample(self, rng: np.random.Generator, num_pairs: int, key_dim: int) -> Rows:
        """Return the first rows (num_pairs, key_dim), float64: ``start(rng, key_dim).draw(num_pairs)``.

        A law of values is asked in the same way, with v as `key_dim`.

        Raises
        ------
        ValueError
            If a size is below 1, or more rows are asked for than the law has.
        """
        require(num_pairs >= 1, "num_pairs", num_pairs, "an integer of at least 1")
        require(key_dim >= 1, "key_dim", key_dim, "an integer of at least 1")
        limit = self.max_pairs(key_dim)
        if limit is not None and num_pairs > limit:
            raise ValueError(f"num_pairs must be at most {limit} for these keys, got {num_pairs}")
        return self.start(rng, key_dim).draw(num_pairs)

    def max_pairs(self, key_dim: int) -> int | None:
        """Return how many rows the law has in `key_dim` dimensions; None: as many as wanted."""
        return None

    def file_dim(self) -> int | None:
        """Return the dimension that the law prescribes (that of its file); None: any."""
        return None


def unit_rows(rows: Rows) -> Rows:
    """Return each row divided by its Euclidean norm."""
    norms: Rows = np.sqrt(np.einsum("...i,...i->...", rows, rows))
    return rows / norms[..., None]


def generator_from(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator of its own for one more quantity, seeded by the next numbers of `rng`."""
    return np.random.default_rng(rng.integers(2**63, size=2))


KEYS: Registry[Ensemble] = Registry("keys")
VALUES: Registry[Ensemble] = Registry("values")
