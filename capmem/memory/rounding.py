"""Writes into a state that is held in a narrow format: rounded at fixed places, however the writes are cut."""

from __future__ import annotations

from capmem._arrays import Array
from capmem.precision import StateDType, round_to
from capmem.write_rules import RuleState, WriteRule


def write_rounded(
    rule: WriteRule,
    state: RuleState,
    features: Array,
    values: Array,
    gates: tuple[Array | None, Array | None],
    held_in: tuple[StateDType, int],
    written: int,
) -> RuleState:
    """Return the state after the pairs, rounded after every so many of all pairs.

    Parameters
    ----------
    rule : WriteRule
        How pairs enter.
    state : RuleState
        What was written before.
    features, values : array (..., N, D), (..., N, v)
        The pairs.
    gates : tuple
        step_size and log_decay, or None.
    held_in : tuple
        The format, and the number of pairs between two roundings.
    written : int
        Pairs written before.
    """
    step_size, log_decay = gates
    name, every = held_in
    start, count = 0, features.shape[-2]
    while start < count:
        part = slice(start, min(start + every - (written + start) % every, count))
        step = None if step_size is None else step_size[..., part]
        decay = _part(log_decay, features, part)
        pairs = features[..., part, :], values[..., part, :]
        state = rule.write(state, *pairs, step_size=step, log_decay=decay)
        start = part.stop
        if (written + start) % every == 0:
            state = _rounded(rule, state, name)
    return state


def _rounded(rule: WriteRule, state: RuleState, name: StateDType) -> RuleState:
    arrays = {}
    for field in rule.shapes(1, 1):
        held = getattr(state, field)
        column = held[..., None] if field == "z" else held
        rounded = round_to(column, name)
        arrays[field] = rounded[..., 0] if field == "z" else rounded
    return rule.hold(state, arrays)


def _part(given: Array | None, features: Array, part: slice) -> Array | None:
    """Return the pairs of `part` of gates (..., N) or (..., N, D)."""
    if given is None:
        return None
    return given[..., part, :] if given.ndim == features.ndim else given[..., part]
