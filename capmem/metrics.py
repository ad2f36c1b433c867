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
from typing import Any, Literal, NamedTuple

from capmem._arrays import Array, device, namespace, require_vectors, transpose, unit_rows
from capmem.schema import require

Similarity = Literal["dot", "cosine"]

TOP1_ROWS = 1024  # queries scored at once: bounds the score matrix


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
    xp = _check(retrieved, target)
    unit = _unit_of(xp, target)
    retrieved, target = retrieved / unit, target / unit
    return _against_targets(xp, _row_power(xp, retrieved - target), target, per_pair)


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
    xp = _check(retrieved, target)
    target = target / _unit_of(xp, target)
    best = _best_gain(xp, retrieved, target)
    return _against_targets(xp, _row_power(xp, best - target), target, per_pair)


def cosine_similarity(retrieved: Array, target: Array, per_pair: bool = False) -> Array:
    """Return the mean over pairs of cos(r_i, v_i); a pair without length, or not finite, counts 0.

    Parameters
    ----------
    retrieved, target : array (..., N, v)
        What came back, and what was stored.
    per_pair : bool
        Return (..., N).
    """
    xp = _check(retrieved, target)
    inner = xp.sum(unit_rows(xp, retrieved)[0] * unit_rows(xp, target)[0], axis=-1)
    cosine = xp.where(xp.isfinite(inner), inner, xp.zeros_like(inner))
    return cosine if per_pair else xp.mean(cosine, axis=-1)


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
    xp = _check(retrieved, target)
    target = target / _unit_of(xp, target)
    best = _best_gain(xp, retrieved, target)
    noise = _row_power(xp, best - target)
    explained = xp.sum(best * (2 * target - best), axis=-1)  # |v|^2 less the noise, without cancellation
    total = xp.mean(noise, axis=-1, keepdims=True)
    exact = total == 0
    ratio = xp.where(
        exact, xp.full_like(explained, math.inf), explained / xp.where(exact, xp.ones_like(total), total)
    )
    ratio = xp.where(xp.isfinite(total), ratio, xp.zeros_like(ratio))
    return ratio if per_pair else xp.mean(ratio, axis=-1)


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
    cuts = [(a, min(a + TOP1_ROWS, queries)) for a in range(0, queries, TOP1_ROWS)]
    shares = [_top1_shares(xp, retrieved[..., a:b, :], codebook, targets[a:b], labels) for a, b in cuts]
    return xp.mean(xp.concat(shares, axis=-1), axis=-1)


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


def _check(retrieved: Array, target: Array) -> Any:
    xp = require_vectors(retrieved, "retrieved")
    require_vectors(target, "target")
    if tuple(retrieved.shape) != tuple(target.shape) or 0 in retrieved.shape[-2:]:
        raise ValueError(
            "retrieved and target must have one shape (..., N, v) with at least one pair, "
            f"got {tuple(retrieved.shape)} and {tuple(target.shape)}"
        )
    return xp


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


def _row_power(xp: Any, rows: Array) -> Array:
    return xp.sum(rows * rows, axis=-1)


def _best_gain(xp: Any, retrieved: Array, target: Array) -> Array:
    """Return a r for the a that brings the whole batch nearest to the targets; r is scaled, so none overflows."""
    retrieved = retrieved / _unit_of(xp, retrieved)
    overlap = xp.mean(retrieved * target, axis=(-2, -1), keepdims=True)
    power = xp.mean(retrieved * retrieved, axis=(-2, -1), keepdims=True)
    return overlap / xp.where(power > 0, power, xp.ones_like(power)) * retrieved


def _unit_of(xp: Any, rows: Array) -> Array:
    """Return the largest entry of each batch item (..., 1, 1): in this unit no square over- or underflows."""
    largest = xp.max(xp.abs(rows), axis=(-2, -1), keepdims=True)
    return xp.where(largest > 0, largest, xp.ones_like(largest))


def _against_targets(xp: Any, error: Array, target: Array, per_pair: bool) -> Array:
    """Divide squared errors (..., N) by the mean power of the targets; 0/0 is 0, anything not finite inf."""
    power = xp.mean(_row_power(xp, target), axis=-1)
    if per_pair:
        power = power[..., None]
    else:
        error = xp.mean(error, axis=-1)
    ratio = error / xp.where(power > 0, power, xp.ones_like(power))
    infinite = xp.full_like(ratio, math.inf)
    ratio = xp.where((power == 0) & (error > 0), infinite, ratio)
    return xp.where(xp.isfinite(ratio), ratio, infinite)


def _top1_shares(xp: Any, retrieved: Array, codebook: Array, targets: Array, labels: Array | None) -> Array:
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
