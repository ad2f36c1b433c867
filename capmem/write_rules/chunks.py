"""Chunks: the products of matrices that a chunk of pairs needs, so that no rule loops over single pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from capmem._arrays import Array, device, namespace, transpose
from capmem.write_rules.triangular import solve_unit_lower

CHUNK = 64  # pairs written at once by the rules that solve a triangular system


def chunks(num_pairs: int) -> Iterator[slice]:
    """Yield slices of at most :data:`CHUNK` pairs."""
    for start in range(0, num_pairs, CHUNK):
        yield slice(start, min(start + CHUNK, num_pairs))


def per_pair(given: Array | None, constant: float, like: Array) -> Array:
    """Return a number for each pair (..., N): what was given, or the constant of the rule."""
    xp = namespace(like)
    if given is None:
        return xp.full(like.shape[:-1], constant, dtype=like.dtype, device=device(like))
    if given.shape != like.shape[:-1]:
        shapes = f"{tuple(like.shape[:-1])}, got {tuple(given.shape)}"
        raise ValueError(f"step_size and log_decay a pair must have shape {shapes}")
    return given


def refuse(rule: object, **given: Array | None) -> None:
    """Raise ValueError for a step size or decay given to a rule that has none."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"the write rule {type(rule).__name__} has no {name}")


def erase_and_write(S: Array, keys: Array, values: Array, step: Array, log_decay: Array | None) -> Array:
    """Return S after one chunk of S <- a (I - b k k^T) S + b k v^T, with a = exp(log_decay), b = step.

    With g the running product of a and G_ij = g_i / g_j, the values that the pairs really add are X, from
    (I + strictly lower(b (K K^T o G))) X = b (V - g K S); then S <- g_N S + K^T (g_N / g) X. Ratios of g are
    taken as exponentials of differences, which neither overflow nor divide by zero.

    Parameters
    ----------
    S : array (..., D, v)
        The matrix before the chunk.
    keys, values : array (..., C, D), (..., C, v)
        The pairs.
    step, log_decay : array (..., C)
        Numbers a pair; no decay: None.

    References
    ----------
    Yang, Wang, Zhang, Shen, Kim 2024, arXiv 2406.06484; Yang, Kautz, Hatamizadeh 2025, arXiv 2412.06464.
    """
    xp = namespace(keys)
    added = added_values(S, keys, values, step, log_decay)
    if log_decay is None:
        return S + transpose(keys) @ added
    log_g = running_decay(log_decay, axis=-1)
    last = log_g[..., -1:]
    return xp.exp(last)[..., None] * S + transpose(keys) @ (xp.exp(last - log_g)[..., None] * added)


def added_values(S: Array, keys: Array, values: Array, step: Array, log_decay: Array | None) -> Array:
    """Return X (..., C, v), the values that a chunk really adds; see :func:`erase_and_write`."""
    xp = namespace(keys)
    overlap = keys @ transpose(keys)
    seen = keys @ S
    if log_decay is not None:
        log_g = running_decay(log_decay, axis=-1)
        overlap = overlap * decay_between(xp, log_g)
        seen = xp.exp(log_g)[..., None] * seen
    return solve_unit_lower(step[..., None] * overlap, step[..., None] * (values - seen))


def decay_between(xp: Any, log_g: Array) -> Array:
    """Return G_ij = g_i / g_j for i >= j, and 1 above the diagonal, where it is not used."""
    difference = log_g[..., :, None] - log_g[..., None, :]
    return xp.exp(xp.tril(difference))


def running_decay(log_decay: Array, axis: int) -> Array:
    """Return log g, the running sum of log a, with a gate that forgets all (a = 0) taken as a = eps^2.

    The sum of -inf, or of a very large number, would swallow every gate that follows in its chunk.
    """
    xp = namespace(log_decay)
    least = 2 * math.log(float(xp.finfo(log_decay.dtype).eps))
    floored = xp.where(log_decay < least, xp.full_like(log_decay, least), log_decay)
    return xp.cumulative_sum(floored, axis=axis)


def decayed_sum(total: Array, rows: Array, log_decay: Array) -> Array:
    """Return z <- a z + x over a chunk: total (..., D), rows (..., C, D), log_decay (..., C) or (..., C, D)."""
    xp = namespace(rows)
    if log_decay.ndim < rows.ndim:
        log_decay = log_decay[..., None]
    log_g = running_decay(log_decay, axis=-2)
    last = log_g[..., -1:, :]
    return xp.exp(last[..., 0, :]) * total + xp.sum(xp.exp(last - log_g) * rows, axis=-2)
