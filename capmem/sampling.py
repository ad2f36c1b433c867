"""How much of what is stored is read: which pairs are asked for, and what top-1 competes against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

FIRST_BOUNDARY = 64
CHUNK = 4096  # pairs written at once at most; also the number of codewords that top-1 competes against

Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Sampling:
    """How much is read: which of the stored pairs are asked for, and what top-1 competes against.

    Parameters
    ----------
    max_queries : int
        Above this number of pairs, a systematic sample of their places is read.
    codebook_size : int or None
        With M given, M - N codewords that were not stored join the codebook.
    seed : tuple of int
        Seeds the sample of stored codewords above 4,096 pairs.
    """

    max_queries: int
    codebook_size: int | None
    seed: tuple[int, ...]

    def reads_all(self, num_pairs: int) -> bool:
        """Whether every one of so many pairs is read and competes."""
        return num_pairs <= min(CHUNK, self.max_queries)

    def queries(self, num_pairs: int) -> Places:
        """Return the places (M,) of the pairs that are read."""
        count = min(num_pairs, self.max_queries)
        return (2 * np.arange(count) + 1) * num_pairs // (2 * count)

    def stored_codewords(self, num_pairs: int) -> Places:
        """Return the places of the stored values in the codebook: all up to 4,096, then a sample."""
        if num_pairs <= CHUNK:
            return np.arange(num_pairs)
        queries = self.queries(num_pairs)
        rng = np.random.default_rng([*self.seed, num_pairs])
        free = rng.choice(num_pairs - queries.size, size=max(0, CHUNK - queries.size), replace=False)
        # the j-th place that is not read: j, and the number of places before it that are
        before = np.searchsorted(queries - np.arange(queries.size), free, side="right")
        return np.sort(np.concatenate([queries, free + before]))


def boundaries(last: int) -> Iterator[tuple[int, int]]:
    """Yield the fixed chunks (start, stop) that the state advances along: 64, powers of two, then every 4,096.

    They depend on nothing else, so a result's bits do not depend on which other checkpoints were asked for.
    """
    start, stop = 0, FIRST_BOUNDARY
    while start < last:
        yield start, stop
        start, stop = stop, stop + min(stop, CHUNK)
