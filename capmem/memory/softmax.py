"""Softmax attention as a memory that keeps every pair: the yardstick, and what a fixed state gives up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capmem._arrays import Array, device, namespace, require_vectors, transpose
from capmem.memory.base import MEMORIES, Diagnostics, Memory, StateSize, check_pairs, size_in
from capmem.schema import require


@dataclass(frozen=True, eq=False)
class SoftmaxState:
    """All pairs so far.

    Attributes
    ----------
    keys : array (..., N, d)
        Every key.
    values : array (..., N, v)
        Every value.
    """

    keys: Array
    values: Array

    zero_rows: int = 0  # softmax normalises no key

    @property
    def num_pairs(self) -> int:
        """Pairs written so far."""
        return int(self.keys.shape[-2])


@MEMORIES.register("softmax")
@dataclass(frozen=True)
class SoftmaxMemory(Memory):
    """y = V^T softmax(beta K q): attention, one query at a time, over all stored pairs.

    Its state grows with the pairs, N (d + v) numbers.

    Parameters
    ----------
    beta : float, optional
        Inverse temperature, above 0 (default: 1 / sqrt(d)).
    steps : int
        At 1, attention. With more, the query is first replaced by the keys that it retrieves, steps - 1 times:
        q <- K^T softmax(beta K q), the iteration of a modern Hopfield network with the keys as patterns.

    References
    ----------
    Vaswani et al. 2017, arXiv 1706.03762. Ramsauer et al. 2021, arXiv 2008.02217.
    """

    beta: float | None = None
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        valid = self.beta is None or 0 < self.beta < math.inf
        require(valid, "beta", self.beta, "a positive number, or null for 1 / sqrt(d)")
        require(self.steps >= 1, "steps", self.steps, "an integer of at least 1")

    def init(
        self,
        key_dim: int,
        value_dim: int,
        batch: tuple[int, ...] = (),
        like: Array | None = None,
        key_mean: Array | None = None,
        feature_mean: Array | None = None,
    ) -> SoftmaxState:
        """Return the empty state; see :meth:`Memory.init`. It takes no mean: softmax cannot see one."""
        if key_mean is not None or feature_mean is not None:
            raise ValueError("softmax memory takes no mean: it would add the same to every score of a row")
        like = np.empty(0) if like is None else like
        kind = {"dtype": like.dtype, "device": device(like)}
        xp = namespace(like)
        return SoftmaxState(xp.zeros((*batch, 0, key_dim), **kind), xp.zeros((*batch, 0, value_dim), **kind))

    def write(self, state: SoftmaxState, keys: Array, values: Array) -> SoftmaxState:
        """Return the state with N pairs more; see :meth:`Memory.write`."""
        check_pairs(keys, values, state.keys.shape[-1], state.values.shape[-1])
        xp = namespace(keys)
        joined = xp.concat([state.keys, keys], axis=-2), xp.concat([state.values, values], axis=-2)
        return replace(state, keys=joined[0], values=joined[1])

    def read(
        self, state: SoftmaxState, queries: Array, positions: Array | None = None, diagnostics: bool = False
    ) -> Any:
        """Return what queries retrieve, zero from an empty memory; see :meth:`Memory.read`."""
        xp = require_vectors(queries, "queries", state.keys.shape[-1])
        if state.num_pairs:
            for _ in range(self.steps - 1):
                queries = self._attend(xp, state.keys, queries, state.keys)
            retrieved = self._attend(xp, state.keys, queries, state.values)
        else:
            shape = (*queries.shape[:-1], state.values.shape[-1])
            retrieved = xp.zeros(shape, dtype=queries.dtype, device=device(queries))
        return (retrieved, Diagnostics()) if diagnostics else retrieved

    def _attend(self, xp: Any, keys: Array, queries: Array, rows: Array) -> Array:
        """Return the rows (..., N, v) averaged by softmax(beta K q)."""
        beta = keys.shape[-1] ** -0.5 if self.beta is None else self.beta
        scores = (queries * beta) @ transpose(keys)
        weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        return (weights @ rows) / xp.sum(weights, axis=-1, keepdims=True)

    def state_size(
        self, key_dim: int, value_dim: int, num_pairs: int | None = None, dtype: str = "float32"
    ) -> StateSize:
        """Return N (d + v) numbers; see :meth:`Memory.state_size`.

        Raises
        ------
        ValueError
            Without `num_pairs`: this state grows.
        """
        if num_pairs is None:
            raise ValueError("num_pairs must be given: the state of a softmax memory grows with the pairs")
        return size_in(num_pairs * (key_dim + value_dim), dtype)
