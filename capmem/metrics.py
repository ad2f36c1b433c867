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
from typing import Literal, NamedTuple

from capmem import top1
from capmem._arrays import Array, device, namespace, require_vectors, transpose, unit_rows
from capmem.comparison import Comparison
from capmem.schema import require

Similarity = Literal["dot", "cosine"]


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
    return xp.mean(top1.shares(xp, retrieved, codebook, targets, labels), axis=-1)


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
