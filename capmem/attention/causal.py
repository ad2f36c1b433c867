"""Causal linear attention: masked and quadratic, step by step, or in chunks, for every write rule."""

from __future__ import annotations

from typing import Any, Literal

from capmem._arrays import Array
from capmem.attention._heads import check, group, ungroup
from capmem.attention.forms import Block, form_of
from capmem.attention.operators import IDENTITY, LINEAR
from capmem.feature_maps import FeatureMap
from capmem.readouts import Readout
from capmem.schema import coerce, require
from capmem.write_rules import Hebbian, WriteRule

CausalForm = Literal["chunked", "quadratic", "recurrent"]

HEBBIAN = Hebbian()


def causal_attention(
    queries: Array,
    keys: Array,
    values: Array,
    feature_map: FeatureMap = IDENTITY,
    write_rule: WriteRule = HEBBIAN,
    readout: Readout = LINEAR,
    form: CausalForm = "chunked",
    chunk_size: int = 64,
    *,
    step_size: Array | None = None,
    log_decay: Array | None = None,
) -> Array:
    """Return what query i reads once pairs 0 to i, itself included, are written: y_i = read(S_i, phi(q_i)).

    The three forms agree to rounding:

    * "recurrent": pair by pair through ``write_rule.write``, O(N D v) and N steps; every rule has it
    * "quadratic": one masked product, tril(phi(Q) phi(K)^T) V and what the rule makes of it, O(N^2)
    * "chunked": quadratic within chunks, the state between them; O(N C) and N / C steps

    Parameters
    ----------
    queries, keys, values : array (..., H_q, N, d), (..., H_kv, N, d), (..., H_kv, N, v)
        Heads and batch axes are optional; query head h uses key head h // (H_q / H_kv).
    feature_map, write_rule, readout
        The parts of a :class:`~capmem.LinearMemory`.
    form : {"chunked", "quadratic", "recurrent"}
        How it is computed.
    chunk_size : int
        C, at least 1; only "chunked" uses it.
    step_size, log_decay : array (..., H_kv, N), optional
        A step or decay for each pair, in place of the rule's constants; `log_decay` (..., H_kv, N, D) where the
        rule has one for each feature.

    Returns
    -------
    array (..., H_q, N, v)
        What the queries retrieve.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a rule that has no such form.

    References
    ----------
    Masked and recurrent: Katharopoulos et al. 2020, arXiv 2006.16236. Chunks: Sun et al. 2023, arXiv 2307.08621;
    of the delta rule: Yang et al. 2024, arXiv 2406.06484.
    """
    coerce(form, CausalForm, "form")
    require(chunk_size >= 1, "chunk_size", chunk_size, "an integer of at least 1")
    xp = check(queries, keys, values, causal=True)
    _check_given(keys, step_size=step_size, log_decay=log_decay)
    q, k, v, step, decay = group(xp, feature_map(queries), feature_map(keys), values, step_size, log_decay)
    state = write_rule.init(k.shape[-1], v.shape[-1], tuple(k.shape[:-2]), like=k)
    whole = Block(q, k, v, step, decay, state)
    if form == "quadratic":
        S, z, features = form_of(write_rule)(write_rule, whole._replace(fresh=True))
        retrieved = readout(S, z, features).retrieved
    else:
        run = _recurrent if form == "recurrent" else _chunked
        retrieved = xp.concat(run(write_rule, readout, whole, chunk_size), axis=-2)
    return ungroup(xp, retrieved, queries)


def _recurrent(rule: WriteRule, readout: Readout, whole: Block, chunk_size: int) -> list[Array]:
    read, state = [], whole.state
    for block in _blocks(whole, 1):
        state = _write(rule, state, block)
        read.append(readout(rule.matrix(state), state.z, block.queries).retrieved)
    return read


def _chunked(rule: WriteRule, readout: Readout, whole: Block, chunk_size: int) -> list[Array]:
    read, state, form = [], whole.state, form_of(rule)
    for block in _blocks(whole, chunk_size):
        S, z, features = form(rule, block._replace(state=state))
        read.append(readout(S, z, features).retrieved)
        state = _write(rule, state, block)
    return read


def _write(rule: WriteRule, state: Any, block: Block) -> Any:
    given = {"step_size": block.step_size, "log_decay": block.log_decay}
    return rule.write(state, block.keys, block.values, **given)


def _blocks(whole: Block, size: int) -> list[Block]:
    """Cut a block along its pairs."""
    count, per_pair = whole.keys.shape[-2], whole.keys.ndim - 1

    def cut(x: Array | None, a: int) -> Array | None:
        if x is None:
            return None
        stop = min(a + size, count)
        return x[..., a:stop] if x.ndim == per_pair else x[..., a:stop, :]

    starts = range(0, count, size)
    return [
        Block(
            cut(whole.queries, a), cut(whole.keys, a), cut(whole.values, a),
            cut(whole.step_size, a), cut(whole.log_decay, a), whole.state,
        )
        for a in starts
    ]  # fmt: skip


def _check_given(keys: Array, **given: Array | None) -> None:
    """Raise ValueError unless what is given for each pair has the shape of the pairs."""
    pairs = tuple(keys.shape[:-1])
    for name, x in given.items():
        if x is not None and tuple(x.shape[: len(pairs)]) != pairs:
            raise ValueError(f"{name} must have shape {pairs} for keys {tuple(keys.shape)}, got {tuple(x.shape)}")
