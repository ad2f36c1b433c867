"""What a prediction is asked for, and the shape of an answer."""

from __future__ import annotations

from typing import NamedTuple

from capmem.ensembles import Ensemble
from capmem.memory import Memory
from capmem.theory.base import Source


class Case(NamedTuple):
    """One question: all that :func:`capmem.theory.predict` was given.

    Attributes
    ----------
    memory : Memory
        The memory.
    keys, values : Ensemble
        How keys and values are drawn.
    key_dim, value_dim, num_pairs : int
        d, v, N.
    query_cosine : float
        Cosine of a cue with its stored key.
    codebook : int or None
        M, what top-1 accuracy competes against; None where nobody knows.
    """

    memory: Memory
    keys: Ensemble
    values: Ensemble
    key_dim: int
    value_dim: int
    num_pairs: int
    query_cosine: float
    codebook: int | None


Numbers = dict[str, tuple[float, Source]]  # metric -> its prediction, and where that comes from
