"""Retrieval errors: how far what comes back is from what was stored.

All functions reduce the last two axes (pairs, coordinates) and return the batch shape; with
``per_pair=True`` they return (..., N), whose mean over the pairs is the total. The answers for odd input:

* no pairs or no coordinates, or shapes that do not fit: ValueError
* nan or inf anywhere: an error is inf, a signal-to-noise ratio 0; a cosine or accuracy counts that pair as 0
* nothing retrieved (all zero): relative error and scale-optimal error 1, cosine 0, signal-to-noise 0
* targets all zero: relative error 0 if nothing is retrieved and inf otherwise, scale-optimal error 0
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from array_api_compat import is_numpy_namespace, is_torch_namespace

from capmem._arrays import Array, device, namespace, require_vectors, transpose, unit_rows
from capmem.comparison import Comparison
from capmem.schema import require

Similarity = Literal["dot", "cosine"]

TOP1_SCORES, TOP1_SCORES_ON_DEVICE = 2**18, 2**26  # held at once: what fits a core's cache, and what fills a GPU


class Interference(NamedTuple):
    """The two parts of what a Hebbian memory returns; they add up to it.

    Attributes
    ----------
    signal, crosstalk : array (..., N, v)
        The pair's own value times kappa_ii, and what all other pairs mix in.
    """

    signal: Array
    crosstalk: Array


def relative_squared_error(retrieved: Array, target: Array, per_pair: bool = False) -> Array:
    """Return sum |r - v|^2 / sum |v|^2 over the pairs.

    Depends on the scale of r: never rank feature maps by it. Per pair: |r_i - v_i|^2 / mean |v|^2.

    Parameters
    ----------
    retrieved, target : array (..., N, v)
        What came back, and what was stored.
    per_pair : bool
        Return (..., N).
    """
    return Comparison(retrieved, target).relative_squared_error(per_pair)


def scale_optimal_error(retrieved: Array, target: Array, per_pair: bool = False) -> Array:
    """Return min over a of sum |a r - v|^2 / sum |v|^2: one gain a for the whole batch.

    Between 0 (exact up to scale) and 1 (nothing retrieved); the same for r and any multiple of it.

    Parameters
    ----------
    retrieved, target : array (..., N, v)
        What came back, and what was stored.
    per_pair : bool
        Return (..., N).
    """
    return Comparison(retrieved, target).scale_optimal_error(per_pair)


def cosine_similarity(retrieved: Array, target: Array, per_pair: bool = False) -> Array:
    """Return the mean over pairs of cos(r_i, v_i); a pair without length, or not finite, counts 0.

    Parameters
    ----------
    retrieved, target : array (..., N, v)
        What came back, and what was stored.
    per_pair : bool
        Return (..., N).
    """
    return Comparison(retrieved, target).cosine_similarity(per_pair)


def signal_to_noise(retrieved: Array, target: Array, per_pair: bool = False) -> Array:
    """Return 1 / e - 1, with e the scale-optimal error: signal power over interference power.

    Per pair: (|v_i|^2 / mean |v|^2 - e_i) / e. Exact retrieval gives inf.

    Parameters
    ----------
    retrieved, target : array (..., N, v)
        What came back, and what was stored.
    per_pair : bool
        Return (..., N).
    """
    return Comparison(retrieved, target).signal_to_noise(per_pair)


def top1_accuracy(
    retrieved: Array,
    codebook: Array,
    targets: Array | None = None,
    labels: Array | None = None,
    similarity: Similarity = "dot",
) -> Array:
    """Return the share of queries whose best-scoring codeword is the right one; k-fold ties count 1/k.

    Parameters
    ----------
    retrieved : array (..., M, v)
        What came back.
    codebook : array (..., C, v)
        The candidates.
    targets : integer array (M,), optional
        The right codeword of each query (default: 0 to M - 1).
    labels : integer array (C,), optional
        Codewords of equal label (equal tokens, say) count as the same.
    similarity : {"dot", "cosine"}
        Score by inner product, or by cosine: they differ where codewords differ in norm.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a similarity that does not exist.
    """
    require(similarity in ("dot", "cosine"), "similarity", similarity, "dot or cosine")
    xp = require_vectors(retrieved, "retrieved")
    require_vectors(codebook, "codebook", retrieved.shape[-1])
    queries = retrieved.shape[-2]
    require(queries >= 1, "retrieved", tuple(retrieved.shape), "at least one query")
    if targets is None:
        require(queries <= codebook.shape[-2], "codebook", codebook.shape[-2], f"at least {queries} long")
        targets = xp.arange(queries, device=device(retrieved))
    _check_indices(targets, (queries,), codebook.shape[-2], "targets")
    if labels is not None:
        _check_indices(labels, (codebook.shape[-2],), None, "labels")
    if similarity == "cosine":
        codebook = unit_rows(xp, codebook)[0]
    if labels is None and (is_numpy_namespace(xp) or is_torch_namespace(xp)):
        won = _strict_winners(xp, retrieved, codebook, targets)
        if won is not None:
            return xp.mean(won, axis=-1)
    cuts = _cuts(retrieved, codebook)
    shares = [_shares_of(xp, part, book, targets[some], labels) for part, book, some in cuts]
    return xp.mean(_joined(xp, shares, retrieved), axis=-1)


def interference(features: Array, values: Array, queries: Array | None = None) -> Interference:
    """Split what a Hebbian memory returns: signal_i = kappa_ii v_i, crosstalk_i = sum_{j != i} kappa_ij v_j.

    Parameters
    ----------
    features : array (..., N, D)
        Features of the stored keys.
    values : array (..., N, v)
        Their values.
    queries : array (..., N, D), optional
        Features of one query a pair (default: the stored features).
    """
    require_vectors(features, "features")
    require_vectors(values, "values")
    xp = namespace(features)
    queries = features if queries is None else queries
    own = xp.sum(queries * features, axis=-1)[..., None]
    signal = own * values
    retrieved = queries @ (transpose(features) @ values)
    return Interference(signal, retrieved - signal)


def bits_per_parameter(accuracy: float, num_pairs: int, codebook_size: int, parameters: int) -> float:
    """Return the information that a state gives back a number that it holds.

    N (p log2(p M) + (1 - p) log2(M (1 - p) / (M - 1))) / parameters, for N pairs read with top-1 accuracy p
    against M codewords; errors are taken as uniform over the wrong ones.

    References
    ----------
    Frady, Kleyko, Sommer 2018, arXiv 1803.00412.
    """
    require(0 <= accuracy <= 1, "accuracy", accuracy, "a number from 0 to 1")
    require(codebook_size >= 2, "codebook_size", codebook_size, "an integer of at least 2")
    require(num_pairs >= 0 and parameters >= 1, "parameters", parameters, "at least 1, with num_pairs >= 0")
    right = accuracy * math.log2(accuracy * codebook_size) if accuracy > 0 else 0.0
    wrong = 1 - accuracy
    lost = wrong * math.log2(codebook_size * wrong / (codebook_size - 1)) if wrong > 0 else 0.0
    return num_pairs * (right + lost) / parameters


def _check_indices(given: Array, shape: tuple[int, ...], below: int | None, name: str) -> None:
    """Raise ValueError unless `given` are integers of this shape, from 0 to below `below`."""
    try:
        xp = namespace(given)
        fits = tuple(given.shape) == shape and xp.isdtype(given.dtype, "integral")
    except (TypeError, AttributeError):
        fits = False
    if not fits:
        raise ValueError(f"{name} must be an integer array of shape {shape}, got {given!r:.80}")
    if below is not None and shape[0] and not 0 <= int(xp.min(given)) <= int(xp.max(given)) < below:
        raise ValueError(f"{name} must be from 0 to {below - 1}, got {int(xp.min(given))} to {int(xp.max(given))}")


def _cuts(retrieved: Array, codebook: Array) -> Iterator[tuple[Array, Array, slice]]:
    """Yield queries and codewords whose scores are held at once, and which queries they are.

    How the queries of one batch item are cut depends on their number and the codebook's alone.
    """
    most = TOP1_SCORES if str(device(retrieved)) == "cpu" else TOP1_SCORES_ON_DEVICE
    queries, codewords = retrieved.shape[-2], codebook.shape[-2]
    rows = min(queries, max(1, most // codewords))
    batched = retrieved.ndim == codebook.ndim == 3
    whole, items = (retrieved.shape[0], max(1, most // (queries * codewords))) if batched else (1, 1)
    for item in range(0, whole, items):
        some = slice(item, min(item + items, whole))
        part, book = (retrieved[some, ...], codebook[some, ...]) if batched else (retrieved, codebook)
        for row in range(0, queries, rows):
            asked = slice(row, min(row + rows, queries))
            yield part[..., asked, :], book, asked


def _joined(xp: Any, parts: list[Array], retrieved: Array) -> Array:
    """Return a number a query (..., M) from those of all cuts: batch items one after the other, or queries."""
    if len(parts) == 1:
        return parts[0]
    if retrieved.ndim == 3 and all(part.shape[0] == 1 or part.shape[1] == retrieved.shape[1] for part in parts):
        return xp.reshape(xp.concat([xp.reshape(part, (-1,)) for part in parts]), retrieved.shape[:-1])
    return xp.concat(parts, axis=-1)


def _shares_of(xp: Any, retrieved: Array, codebook: Array, targets: Array, labels: Array | None) -> Array:
    """Return, for each query, which share of its best-scoring codewords is right."""
    largest = xp.max(xp.abs(retrieved), axis=-1, keepdims=True)  # scores of large numbers overflow
    scores = (retrieved / xp.where(largest > 0, largest, xp.ones_like(largest))) @ transpose(codebook)
    scores = xp.where(xp.isnan(scores), xp.full_like(scores, -math.inf), scores)  # of codewords that are not finite
    winners = scores == xp.max(scores, axis=-1, keepdims=True)
    tied = xp.count_nonzero(winners, axis=-1)
    if labels is None:
        index = xp.broadcast_to(targets[:, None], (*winners.shape[:-1], 1))
        correct = xp.take_along_axis(winners, index, axis=-1)[..., 0]
    else:
        right = labels[None, :] == xp.take(labels, targets, axis=0)[:, None]
        correct = xp.count_nonzero(winners & right, axis=-1)
    correct = xp.where(xp.isfinite(largest[..., 0]), correct, xp.zeros_like(correct))
    tied = xp.where(tied > 0, tied, xp.ones_like(tied))
    return xp.astype(correct, scores.dtype) / xp.astype(tied, scores.dtype)


def _strict_winners(xp: Any, retrieved: Array, codebook: Array, targets: Array) -> Array | None:
    """Return 1 where the target beats all other codewords and 0 where one beats it, in two passes over the scores.

    None if any two tie, or a best score is not well within the range of the dtype.
    """
    of_target, of_others = [], []
    for part, book, some in _cuts(retrieved, codebook):
        scores = part @ transpose(book)
        rows, columns = xp.arange(scores.shape[-2], device=device(scores)), targets[some]
        of_target.append(scores[..., rows, columns])
        scores[..., rows, columns] = -math.inf
        of_others.append(xp.max(scores, axis=-1))
    own, others = (_joined(xp, parts, retrieved) for parts in (of_target, of_others))
    info = xp.finfo(own.dtype)
    best = xp.abs(xp.maximum(own, others))
    if not float(xp.min(best)) > info.smallest_normal / info.eps or not float(xp.max(best)) < info.max:
        return None  # nan compares as false
    return None if bool(xp.any(own == others)) else xp.astype(own > others, own.dtype)
