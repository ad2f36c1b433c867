"""Attention over whole sequences: softmax, an explicit kernel, and linear attention in both association orders."""

from __future__ import annotations

import math
from typing import Any, Literal

from capmem._arrays import Array, device, transpose
from capmem.attention._heads import check, group, group_size, ungroup
from capmem.attention.cost import choose_order
from capmem.feature_maps import FeatureMap, Identity
from capmem.readouts import Linear, Normalized, Readout
from capmem.schema import coerce, require

Order = Literal["auto", "left", "right"]

IDENTITY, LINEAR = Identity(), Linear()


def softmax_attention(
    queries: Array, keys: Array, values: Array, beta: float | None = None, causal: bool = False
) -> Array:
    """Return softmax(beta Q K^T) V, each row normalised over the keys that its query sees.

    Query heads may be a multiple of key heads: query head h then uses key head h // (H_q / H_kv).

    Parameters
    ----------
    queries : array (..., H_q, M, d)
        Heads and batch axes are optional.
    keys, values : array (..., H_kv, N, d), (..., H_kv, N, v)
        The pairs.
    beta : float, optional
        Inverse temperature, above 0 (default: 1 / sqrt(d)).
    causal : bool
        Query i sees pairs 0 to i, itself included; M must be N.

    Returns
    -------
    array (..., H_q, M, v)
        The weighted means of the values.

    Raises
    ------
    ValueError
        For shapes that do not fit or a beta out of range.

    References
    ----------
    Vaswani et al. 2017, arXiv 1706.03762. Grouped heads: Ainslie et al. 2023, arXiv 2305.13245.
    """
    xp = check(queries, keys, values, causal)
    require(beta is None or 0 < beta < math.inf, "beta", beta, "a positive number, or None for 1 / sqrt(d)")
    scale = keys.shape[-1] ** -0.5 if beta is None else beta
    q, k, v = group(xp, queries, keys, values)
    scores = (q * scale) @ transpose(k)
    if causal:
        scores = xp.where(_sees(xp, scores), scores, xp.full_like(scores, -math.inf))
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return ungroup(xp, (weights @ v) / xp.sum(weights, axis=-1, keepdims=True), queries)


def kernel_attention(
    queries: Array,
    keys: Array,
    values: Array,
    feature_map: FeatureMap = IDENTITY,
    normalize: bool = True,
    causal: bool = False,
) -> Array:
    """Return A V with A_ij = kappa(q_i, k_j), the kernel that a feature map is or approximates; O(M N).

    For a map that is exact, what :func:`linear_attention` gives with ``Normalized()`` or ``Linear()``; for a
    random map, what that converges to.

    Parameters
    ----------
    queries, keys, values : array (..., H_q, M, d), (..., H_kv, N, d), (..., H_kv, N, v)
        As in :func:`softmax_attention`.
    feature_map : FeatureMap
        Gives ``kernel(x, y)``.
    normalize : bool
        Divide each row of A by its sum; a row whose sum is exactly zero reads as 0.
    causal : bool
        Query i sees pairs 0 to i, itself included; M must be N.

    Returns
    -------
    array (..., H_q, M, v)
        Weighted means, or sums, of the values.

    References
    ----------
    Tsai, Bai, Yamada, Morency, Salakhutdinov 2019, arXiv 1908.11775.
    """
    xp = check(queries, keys, values, causal)
    q, k, v = group(xp, queries, keys, values)
    weights = feature_map.kernel(q, k)
    if causal:
        weights = xp.tril(weights)
    return ungroup(xp, read_weights(xp, weights, v, Normalized() if normalize else Linear()), queries)


def linear_attention(
    queries: Array,
    keys: Array,
    values: Array,
    feature_map: FeatureMap = IDENTITY,
    readout: Readout = LINEAR,
    order: Order = "auto",
) -> Array:
    """Return phi(Q) phi(K)^T V, associated from the left, O(M N), or from the right, O(M + N).

    Both orders agree to rounding. The right one forms S = phi(K)^T V, the memory matrix; so this is what a
    :class:`~capmem.LinearMemory` with the Hebbian rule reads. Read-outs of one's own have to depend on the
    state through phi(q) S and phi(q) . z alone.

    Parameters
    ----------
    queries, keys, values : array (..., H_q, M, d), (..., H_kv, N, d), (..., H_kv, N, v)
        As in :func:`softmax_attention`.
    feature_map : FeatureMap
        phi: R^d -> R^D.
    readout : Readout
        Linear, Normalized (divide by phi(q) . z with z = phi(K)^T 1) or RMSNorm.
    order : {"auto", "left", "right"}
        "auto" takes what :func:`~capmem.attention.choose_order` says.

    Returns
    -------
    array (..., H_q, M, v)
        What the queries retrieve.

    References
    ----------
    Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236.
    """
    coerce(order, Order, "order")
    xp = check(queries, keys, values, causal=False)
    asked, held = feature_map(queries), feature_map(keys)
    if order == "auto":
        sizes = keys.shape[-2], keys.shape[-1], values.shape[-1], held.shape[-1]
        shared = {"num_queries": max(queries.shape[-2], 1), "group_size": group_size(queries, keys)}
        order = choose_order(*sizes, **shared).order
    q, k, v = group(xp, asked, held, values)
    if order == "left":
        retrieved = read_weights(xp, q @ transpose(k), v, readout)
    else:
        retrieved = readout(transpose(k) @ v, xp.sum(k, axis=-2), q).retrieved
    return ungroup(xp, retrieved, queries)


def read_weights(xp: Any, weights: Array, values: Array, readout: Readout) -> Array:
    """Read with weights (..., M, N) as features of a state that has a row for each pair: S = V and z = 1."""
    ones = xp.ones(values.shape[:-1], dtype=values.dtype, device=device(values))
    return readout(values, ones, weights).retrieved


def _sees(xp: Any, scores: Array) -> Array:
    """Return the causal mask (M, N): whether query i sees pair j, j <= i."""
    place = xp.arange(scores.shape[-1], device=device(scores))
    return place[:, None] >= place[None, :]
