"""Heads: the shape checks of all operators, and query heads that share the keys of one head."""

from __future__ import annotations

from typing import Any

from capmem._arrays import Array, require_vectors


def check(queries: Array, keys: Array, values: Array, causal: bool) -> Any:
    """Check queries (..., H_q, M, d), keys (..., H_kv, N, d), values (..., H_kv, N, v); return their namespace.

    Raises
    ------
    ValueError
        For shapes that do not fit, both of which the message names, or for no pairs at all.
    """
    xp = require_vectors(queries, "queries")
    require_vectors(keys, "keys")
    require_vectors(values, "values")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(_differ("queries and keys must have one last axis d", queries, keys))
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(_differ("keys and values must hold the same pairs", keys, values))
    if causal and queries.shape[-2] != keys.shape[-2]:
        raise ValueError(_differ("causal attention takes one query a key", queries, keys))
    if 0 in keys.shape[-2:]:
        raise ValueError(f"keys must hold at least one pair, got shape {tuple(keys.shape)}")
    group_size(queries, keys)
    return xp


def group_size(queries: Array, keys: Array) -> int:
    """Return how many query heads share each key head: H_q / H_kv, 1 where the leading axes are equal."""
    asked, held = tuple(queries.shape[:-2]), tuple(keys.shape[:-2])
    if asked == held:
        return 1
    if len(asked) != len(held) or asked[:-1] != held[:-1] or not held[-1] or asked[-1] % held[-1]:
        rule = "queries and keys must have the same leading axes, or query heads (axis -3) a multiple of key heads"
        raise ValueError(_differ(rule, queries, keys))
    return int(asked[-1] // held[-1])


def group(xp: Any, queries: Array, *held: Array | None) -> tuple[Array, ...]:
    """Put query heads that share a key head on an axis of their own.

    Query head h uses key head h // (H_q / H_kv). Queries (..., H_q, M, D) become (..., H_kv, G, M, D); what
    belongs to the pairs gets an axis of length 1 after its heads, so that nothing is copied. The first of
    `held` are the keys (..., H_kv, N, D). Equal leading axes are left as they are.
    """
    keys = held[0]
    assert keys is not None
    size = group_size(queries, keys)
    if tuple(queries.shape[:-2]) == tuple(keys.shape[:-2]):
        return (queries, *held)
    lead = tuple(keys.shape[:-2])
    grouped = xp.reshape(queries, (*lead, size, *queries.shape[-2:]))
    return (grouped, *(None if x is None else xp.expand_dims(x, axis=len(lead)) for x in held))


def ungroup(xp: Any, retrieved: Array, queries: Array) -> Array:
    """Return retrieved values in the heads of `queries`: (..., H_q, M, v)."""
    return xp.reshape(retrieved, (*queries.shape[:-1], retrieved.shape[-1]))


def _differ(rule: str, first: Array, second: Array) -> str:
    return f"{rule}, got shapes {tuple(first.shape)} and {tuple(second.shape)}"
