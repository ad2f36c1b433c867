"""The masked form of each write rule: what a block of queries reads, as one read of one larger state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from capmem._arrays import Array, device, namespace, transpose
from capmem.write_rules import (
    Decay,
    Delta,
    GatedDecay,
    GatedDelta,
    Hebbian,
    LeastSquares,
    Oja,
    RuleState,
    WriteRule,
)
from capmem.write_rules.chunks import added_values, decay_between, per_pair, refuse, running_decay
from capmem.write_rules.delta import warn_unstable

LEAF = 16  # pairs whose gates are compared one by one: bounds the array (..., 16, 16, D)


class Block(NamedTuple):
    """A block of pairs with the query of each, and the state before it.

    Attributes
    ----------
    queries, keys, values : array (..., C, D), (..., C, D), (..., C, v)
        Features and values; queries may have one batch axis more in common, of query heads that share keys.
    step_size, log_decay : array (..., C) or None
        What was given for each pair.
    state : RuleState
        What was written before the block.
    fresh : bool
        Whether that is nothing, so that no product with it is needed.
    """

    queries: Array
    keys: Array
    values: Array
    step_size: Array | None
    log_decay: Array | None
    state: Any
    fresh: bool = False


class HeldRows(NamedTuple):
    """A state with a row for each pair of the block besides those of the state before, and masked features.

    Attributes
    ----------
    S, z : array (..., R, v), (..., R)
        What a read-out is given as the state.
    features : array (..., C, R)
        What it is given as the query features: their zeros are the causal mask.
    """

    S: Array
    z: Array
    features: Array


Form = Callable[[Any, Block], HeldRows]

FORMS: dict[type[WriteRule], Form] = {}


def register_form(rule: type[WriteRule]) -> Callable[[Form], Form]:
    """Return a decorator that gives a write rule its masked form, and with it its quadratic and chunked one."""

    def add(form: Form) -> Form:
        FORMS[rule] = form
        return form

    return add


def form_of(rule: WriteRule) -> Form:
    """Return the masked form of a rule; a subclass does not inherit one, since its ``write`` may differ.

    Raises
    ------
    ValueError
        If the rule has none.
    """
    if type(rule) not in FORMS:
        names = ", ".join(sorted(known.__name__ for known in FORMS))
        raise ValueError(
            f"the write rule {type(rule).__name__} has no quadratic or chunked form: use form='recurrent', "
            f"or register_form. Rules that have one: {names}"
        )
    return FORMS[type(rule)]


@register_form(Hebbian)
def hebbian(rule: Hebbian, block: Block) -> HeldRows:
    """y = Q S + tril(Q K^T) V."""
    refuse(rule, step_size=block.step_size, log_decay=block.log_decay)
    return _joined(block, block.queries, _masked(block.queries, block.keys), block.values)


@register_form(Decay)
def decay(rule: Decay, block: Block) -> HeldRows:
    """y = diag(g) Q S + (tril(Q K^T) o G) V, with g the running product of decays and G_ij = g_i / g_j."""
    refuse(rule, step_size=block.step_size)
    log_decay = per_pair(block.log_decay, math.log(rule.rate), block.keys)
    return _decayed(block, log_decay, block.values)


@register_form(GatedDecay)
def gated_decay(rule: GatedDecay, block: Block) -> HeldRows:
    """y = (Q o g) S + W V, with W_ij = sum_f q_if k_jf g_if / g_jf for j <= i."""
    refuse(rule, step_size=block.step_size)
    log_decay = rule.log_gates(block.keys) if block.log_decay is None else block.log_decay
    if log_decay.ndim < block.keys.ndim:
        return _decayed(block, log_decay, block.values)
    xp = namespace(block.keys)
    log_g = running_decay(log_decay, axis=-2)
    weights = _gated_weights(xp, block.queries, block.keys, log_g)
    return _joined(block, block.queries * xp.exp(log_g), weights, block.values)


@register_form(Delta)
def delta(rule: Delta, block: Block) -> HeldRows:
    """y = Q S + tril(Q K^T) X, where (I + strictly lower(b K K^T)) X = b (V - K S)."""
    refuse(rule, log_decay=block.log_decay)
    step = per_pair(block.step_size, rule.step_size, block.keys)
    _warn_if_fresh(block, step, block.keys, "phi(k)")
    added = added_values(block.state.S, block.keys, block.values, step, None)
    return _joined(block, block.queries, _masked(block.queries, block.keys), added)


@register_form(GatedDelta)
def gated_delta(rule: GatedDelta, block: Block) -> HeldRows:
    """y = diag(g) Q S + (tril(Q K^T) o G) X, (I + strictly lower(b (K K^T o G))) X = b (V - diag(g) K S)."""
    step = per_pair(block.step_size, rule.step_size, block.keys)
    log_decay = per_pair(block.log_decay, math.log(rule.rate), block.keys)
    _warn_if_fresh(block, step, block.keys, "phi(k)")
    return _decayed(block, log_decay, added_values(block.state.S, block.keys, block.values, step, log_decay))


@register_form(Oja)
def oja(rule: Oja, block: Block) -> HeldRows:
    """y = Q S + tril(Q X^T) V, where (I + strictly lower(b V V^T)) X = b (K - V S^T): the dual of delta."""
    refuse(rule, log_decay=block.log_decay)
    step = per_pair(block.step_size, rule.step_size, block.keys)
    _warn_if_fresh(block, step, block.values, "v")
    added = added_values(transpose(block.state.S), block.values, block.keys, step, None)
    sums = _masked(block.queries, block.keys)
    return _joined(block, block.queries, _masked(block.queries, added), block.values, sums)


@register_form(LeastSquares)
def least_squares(rule: LeastSquares, block: Block) -> HeldRows:
    """y = Q S + tril(Q' G^T) E, with E = C^-1 (V - K S), G = C^-1 K' and C C^T = I + K' K'^T.

    Q' = Q R^-1 and K' = K R^-1, where R is the factor that the state keeps. E are innovations, what each value
    adds to all before it, so that one Cholesky factor serves every prefix. Without a ridge R can be singular, and
    there is no such form.
    """
    refuse(rule, step_size=block.step_size, log_decay=block.log_decay)
    if rule.ridge == 0:
        raise ValueError(
            "LeastSquares(ridge=0) has no quadratic or chunked form: use form='recurrent' or a positive ridge"
        )
    xp = namespace(block.keys)
    S = rule.matrix(block.state)
    width, eye = block.keys.shape[-1], _eye_like(xp, block.keys)
    inverse = xp.linalg.inv(block.state.R)
    whitened = block.keys @ inverse
    factor = xp.linalg.cholesky(whitened @ transpose(whitened) + eye)
    both = xp.linalg.solve(factor, xp.concat([whitened, block.values - block.keys @ S], axis=-1))
    weights = _masked(block.queries @ inverse, both[..., :width])
    held = block._replace(state=RuleState(S, block.state.z))
    return _joined(held, block.queries, weights, both[..., width:], _masked(block.queries, block.keys))


def _masked(queries: Array, keys: Array) -> Array:
    return namespace(keys).tril(queries @ transpose(keys))


def _decayed(block: Block, log_decay: Array, added: Array) -> HeldRows:
    """Return the form of a rule whose whole state decays by one number a pair."""
    xp = namespace(block.keys)
    log_g = running_decay(log_decay, axis=-1)
    weights = _masked(block.queries, block.keys) * decay_between(xp, log_g)
    return _joined(block, xp.exp(log_g)[..., None] * block.queries, weights, added)


def _joined(block: Block, carried: Array, weights: Array, added: Array, sums: Array | None = None) -> HeldRows:
    """Put the state before and the rows that the block adds into one state.

    Parameters
    ----------
    block : Block
        Gives the state before.
    carried : array (..., C, D)
        Queries as they read the state before.
    weights : array (..., C, C)
        Masked weights of the block's own rows.
    added : array (..., C, v)
        Those rows.
    sums : array (..., C, C), optional
        Weights of the pairs in the denominator, where they differ.
    """
    xp = namespace(block.keys)
    ones = xp.ones(block.keys.shape[:-1], dtype=added.dtype, device=device(added))
    parts = [HeldRows(added, ones if sums is None else xp.zeros_like(ones), weights)]
    if sums is not None:
        parts.append(HeldRows(xp.zeros_like(added), ones, sums))
    if not block.fresh:
        parts.insert(0, HeldRows(block.state.S, block.state.z, carried))
    S, z, features = zip(*parts, strict=True)
    return HeldRows(xp.concat(S, axis=-2), xp.concat(z, axis=-1), xp.concat(features, axis=-1))


def _gated_weights(xp: Any, queries: Array, keys: Array, log_g: Array) -> Array:
    """Return W_ij = sum_f q_if k_jf exp(log_g_if - log_g_jf) for j <= i, without an array (..., N, N, D).

    Halves meet in products of matrices, both sides taken relative to the gates between them: no factor is above 1.
    """
    count = queries.shape[-2]
    if count <= LEAF:
        between = log_g[..., :, None, :] - log_g[..., None, :, :]
        seen = xp.where(between < 0, between, xp.zeros_like(between))
        return xp.tril(xp.sum(queries[..., :, None, :] * keys[..., None, :, :] * xp.exp(seen), axis=-1))
    half = count // 2
    early, late, middle = log_g[..., :half, :], log_g[..., half:, :], log_g[..., half - 1 : half, :]
    faded = keys[..., :half, :] * xp.exp(middle - early)
    below = (queries[..., half:, :] * xp.exp(late - middle)) @ transpose(faded)
    first = _gated_weights(xp, queries[..., :half, :], keys[..., :half, :], early)
    second = _gated_weights(xp, queries[..., half:, :], keys[..., half:, :], late)
    above = xp.zeros_like(transpose(below))
    return xp.concat([xp.concat([first, above], axis=-1), xp.concat([below, second], axis=-1)], axis=-2)


def _warn_if_fresh(block: Block, step: Array, rows: Array, name: str) -> None:
    """Warn of a step that diverges, in the form that does not go through ``write``, which warns."""
    if block.fresh:
        warn_unstable(step, rows, name)


def _eye_like(xp: Any, rows: Array) -> Array:
    return xp.eye(rows.shape[-2], dtype=rows.dtype, device=device(rows))
