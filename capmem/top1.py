"""Top-1: whose codeword scores best, told without more scores than it takes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_numpy_namespace, is_torch_namespace

from capmem._arrays import Array, device, transpose
from capmem.comparison import Comparison

FIRST = 128  # codewords that every query is scored against: most that lose lose here
SCORES, SCORES_ON_DEVICE = 2**18, 2**26  # held at once: what fits a core's cache, and what fills a GPU


class _Race(NamedTuple):
    """Queries (..., M, v), each with its codeword against the others.

    Parameters
    ----------
    rows : array (..., M, v)
        The queries.
    targets : integer array (M,)
        Which codeword is the right one.
    low, high : array (..., M)
        It wins for certain where all others score below `low`, and loses where one scores above `high`.
    """

    rows: Array
    targets: Array
    low: Array
    high: Array

    def of(self, item: int, queries: Array) -> _Race:
        """Return the race of some queries of one batch item."""
        return _Race(
            self.rows[item, ...][queries, :],
            self.targets[queries],
            self.low[item, ...][queries],
            self.high[item, ...][queries],
        )

    def take(self, some: Array) -> _Race:
        """Return the race of some queries, where there is no batch."""
        return _Race(self.rows[some, :], self.targets[some], self.low[some], self.high[some])


def shares(
    xp: Any,
    retrieved: Array,
    codebook: Array,
    targets: Array,
    labels: Array | None = None,
    known: Comparison | None = None,
) -> Array:
    """Return, for each query (..., M), which share of its best-scoring codewords is right: 1/k of k that tie.

    Parameters
    ----------
    xp : namespace
        The library of the arrays.
    retrieved, codebook : array (..., M, v), (..., C, v)
        Queries, and what competes.
    targets : integer array (M,)
        The right codeword of each query.
    labels : integer array (C,), optional
        Codewords of equal label count as the same.
    known : Comparison, optional
        Of the queries with the codebook, where codeword i is the right one of query i.
    """
    one_batch = retrieved.shape[:-2] == codebook.shape[:-2] and retrieved.ndim <= 3
    if labels is not None or not one_batch or not (is_numpy_namespace(xp) or is_torch_namespace(xp)):
        return _shares_of_all(xp, retrieved, codebook, targets, labels)
    targets = xp.astype(targets, xp.int64)  # of a narrow type, the number of codewords could not be told
    with np.errstate(over="ignore", invalid="ignore"):
        own, margin = _own_scores(xp, retrieved, codebook, targets, known)
        race = _Race(retrieved, targets, own - margin, own + margin)
        if retrieved.ndim == 3:
            return _shares_by_item(xp, race, codebook)
        alone = _Race(retrieved[None, ...], targets, race.low[None, :], race.high[None, :])
        return _shares_by_item(xp, alone, codebook[None, ...])[0, :]


def _shares_by_item(xp: Any, race: _Race, codebook: Array) -> Array:
    """Score a first block of codewords (T, C, v), then the others against the queries that have not lost.

    A GPU, on which waiting costs more than scoring, scores all in the first block.

    Where two scores are nearer than rounding allows to tell, all are compared at once: the answer does not depend on
    how the products were cut.
    """
    first = FIRST if str(device(codebook)) == "cpu" else codebook.shape[1]
    best = _best_of_first(xp, race.rows, codebook[:, :first, :], race.targets)
    sure, undecided = best < race.low, ~(best > race.high)  # nan is neither
    if codebook.shape[1] <= first:
        result, undecided = xp.astype(sure, best.dtype), undecided & ~sure
    else:
        result = xp.zeros_like(best)
    for item in map(int, xp.nonzero(xp.any(undecided, axis=1))[0]):
        (queries,) = xp.nonzero(undecided[item, :])
        left = race.of(item, queries)
        result[item, queries] = _shares_of_left(xp, left, codebook[item, ...], sure[item, :][queries], first)
    return result


def _shares_of_left(xp: Any, everyone: _Race, codebook: Array, sure: Array, start: int) -> Array:
    """Return the shares of queries that no codeword before `start` has beaten; `sure`: nor come close to."""
    result = xp.zeros_like(everyone.low)
    race, alive = everyone, xp.arange(sure.shape[0], device=device(sure))
    while start < codebook.shape[0] and alive.shape[0]:
        stop = start + max(FIRST, SCORES // alive.shape[0])
        best = _best_of_others(xp, race.rows, codebook[start:stop, :], race.targets - start)
        (kept,) = xp.nonzero(~(best > race.high))
        sure = (sure & (best < race.low))[kept]
        race, alive, start = race.take(kept), alive[kept], stop
    result[alive] = 1
    close = alive[~sure]
    if close.shape[0]:
        result[close] = _shares_of_all(xp, everyone.rows[close, :], codebook, everyone.targets[close], None, True)
    return result


def _own_scores(
    xp: Any, retrieved: Array, codebook: Array, targets: Array, known: Comparison | None
) -> tuple[Array, Array]:
    """Return the score (..., M) of each right codeword, and how far from another's it must be to tell them apart.

    A sum of v products is off by v eps |r| |v_j| / 2 at most (Cauchy-Schwarz), a difference of two by twice that; as
    much again is for the norms. Where a square leaves the range of the dtype, nothing can be told.
    """
    info = xp.finfo(retrieved.dtype)
    if known is None:
        power, powers = xp.vecdot(retrieved, retrieved, axis=-1), xp.vecdot(codebook, codebook, axis=-1)
        own = xp.vecdot(retrieved, xp.take(codebook, targets, axis=-2), axis=-1)
    else:
        own, power, powers = known.overlap, known.power, known.target_power
    largest = xp.max(powers, axis=-1, keepdims=True)
    margin = 2 * retrieved.shape[-1] * info.eps * xp.sqrt(power) * xp.sqrt(largest)
    least = info.smallest_normal / info.eps
    margin = xp.where((power > least) & (largest > least), margin, xp.full_like(margin, math.inf))
    return own, margin


def _best_of_first(xp: Any, retrieved: Array, codebook: Array, targets: Array) -> Array:
    """Return the best score (T, M) of codewords (T, C, v) other than the right ones, a cacheful at a time."""
    items, queries = retrieved.shape[:2]
    best = xp.empty(retrieved.shape[:2], dtype=retrieved.dtype, device=device(retrieved))
    rows = max(1, _room(codebook) // codebook.shape[1])
    together = max(1, rows // queries)
    for item in range(0, items, together):
        for row in range(0, queries, rows):
            some, asked = slice(item, item + together), slice(row, row + rows)
            part = retrieved[some, asked, :]
            best[some, asked] = _best_of_others(xp, part, codebook[some, ...], targets[asked])
    return best


def _room(codebook: Array) -> int:
    return SCORES if str(device(codebook)) == "cpu" else SCORES_ON_DEVICE


def _best_of_others(xp: Any, retrieved: Array, codebook: Array, targets: Array) -> Array:
    """Return the best score (..., M) of codewords (..., C, v) other than the right ones, which may not be here."""
    scores = retrieved @ transpose(codebook)
    (here,) = xp.nonzero((targets >= 0) & (targets < codebook.shape[-2]))
    scores[..., here, xp.take(targets, here, axis=0)] = -math.inf
    return xp.max(scores, axis=-1)


def _shares_of_all(
    xp: Any, retrieved: Array, codebook: Array, targets: Array, labels: Array | None, one_by_one: bool = False
) -> Array:
    """Return the shares from all scores, of so many queries at once as their room allows.

    `one_by_one`: by an inner product a pair, for which equal codewords have the same score to the last bit; in a
    product of matrices the place of a codeword may decide how its terms are summed.
    """
    finite = xp.all(xp.isfinite(codebook), axis=-1)
    codebook = _moderate(xp, codebook, (-2, -1), xp.where(finite[..., None], codebook, xp.zeros_like(codebook)))
    taken = codebook.shape[-2] * (codebook.shape[-1] if one_by_one else 1)
    queries, rows = retrieved.shape[-2], max(1, _room(codebook) // taken)
    parts = []
    for row in range(0, queries, rows):
        cut = slice(row, min(row + rows, queries))
        asked = _moderate(xp, retrieved[..., cut, :], -1)
        if one_by_one:
            scores = xp.vecdot(asked[..., :, None, :], codebook[..., None, :, :], axis=-1)
        else:
            scores = asked @ transpose(codebook)
        known = finite[..., None, :] & ~xp.isnan(scores)
        scores = xp.where(known, scores, xp.full_like(scores, -math.inf))
        right = _shares_of_scores(xp, scores, targets[cut], labels)
        readable = xp.all(xp.isfinite(retrieved[..., cut, :]), axis=-1)
        parts.append(xp.where(readable, right, xp.zeros_like(right)))
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1)


def _moderate(xp: Any, rows: Array, axis: int | tuple[int, int], given: Array | None = None) -> Array:
    """Return rows in the unit of their largest entry (of those `given`), where scores could over- or underflow."""
    info = xp.finfo(rows.dtype)
    largest = xp.max(xp.abs(rows if given is None else given), axis=axis, keepdims=True)
    far = (largest > info.max**0.4) | ((largest < info.smallest_normal**0.4) & (largest > 0))
    return rows / xp.where(far, largest, xp.ones_like(largest))


def _shares_of_scores(xp: Any, scores: Array, targets: Array, labels: Array | None) -> Array:
    winners = (scores == xp.max(scores, axis=-1, keepdims=True)) & (scores > -math.inf)
    tied = xp.count_nonzero(winners, axis=-1)
    tied = xp.where(tied > 0, tied, xp.ones_like(tied))
    if labels is None:
        index = xp.broadcast_to(targets[:, None], (*winners.shape[:-1], 1))
        correct = xp.count_nonzero(xp.take_along_axis(winners, index, axis=-1), axis=-1)
    else:
        right = labels[None, :] == xp.take(labels, targets, axis=0)[:, None]
        correct = xp.count_nonzero(winners & right, axis=-1)
    return xp.astype(correct, scores.dtype) / xp.astype(tied, scores.dtype)
