"""Replay: the recurrence of a linear layer that exists, from its own keys, values, steps and decays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from capmem._arrays import Array
from capmem.attention import causal_attention
from capmem.feature_maps import FeatureMap, Identity
from capmem.heads.stored import stored
from capmem.heads.widen import Numbers
from capmem.readouts import Linear, Readout
from capmem.schema import require
from capmem.write_rules import WRITE_RULES, WriteRule

IDENTITY, LINEAR = Identity(), Linear()

DECAYING = ("decay", "gated_decay", "gated_delta")  # their constants are nobody's: a layer has decays of its own


class Replay(NamedTuple):
    """What a recurrence gives.

    Attributes
    ----------
    state : array (..., H_kv, D, v)
        S after the last pair.
    outputs : array (..., H_q, N, v)
        What query i reads once pairs 0 to i, itself included, are written.
    """

    state: Array
    outputs: Array


class Errors(NamedTuple):
    """Relative Frobenius errors of a replay, in float64; nan for what was not given.

    Attributes
    ----------
    state, output : float
        Against the layer's.
    state_transposed : float
        Against the transpose of the layer's state, which some code holds as (v, D); nan if that does not fit.
    worst_token : int
        The token with the largest error of output; -1 without outputs.
    """

    state: float
    output: float
    state_transposed: float
    worst_token: int


def replay(
    keys: Array,
    values: Array,
    queries: Array,
    beta: Array | None = None,
    log_decay: Array | None = None,
    rule: str | WriteRule = "delta",
    *,
    scale: float = 1.0,
    feature_map: FeatureMap = IDENTITY,
    readout: Readout = LINEAR,
) -> Replay:
    """Write a layer's pairs one after another, and read each of its queries: y_i = scale S_i^T phi(q_i).

    The rules are those of :mod:`capmem.write_rules`; S is (D, v):

    * "hebbian": S <- S + k v^T
    * "decay": S <- a S + k v^T; "gated_decay": S <- diag(a) S + k v^T, with a = exp(log_decay)
    * "delta": S <- (I - b k k^T) S + b k v^T
    * "gated_delta": S <- a (I - b k k^T) S + b k v^T

    Parameters
    ----------
    keys, values : array (..., H_kv, N, d), (..., H_kv, N, v)
        As the layer writes them: after its convolution, norm and feature map, if it has any.
    queries : array (..., H_q, N, d)
        Query head h reads the state of key head h // (H_q / H_kv).
    beta : array (..., H_kv, N), optional
        The layer's step for each pair; None: 1.
    log_decay : array (..., H_kv, N), optional
        The logarithm of its decay for each pair; (..., H_kv, N, D) for "gated_decay". Rules that decay need it.
    rule : str or WriteRule
        A name, or a rule with constants of its own.
    scale : float
        What the layer multiplies its queries by, 1 / sqrt(d) often.
    feature_map, readout
        What else the layer does to keys and queries, and to what it reads.

    Returns
    -------
    Replay
        In the library, dtype and shape of the arrays given.

    Raises
    ------
    ValueError
        For an unknown rule, shapes that do not fit, or a rule that decays without decays.

    References
    ----------
    Katharopoulos et al. 2020, arXiv 2006.16236; Sun et al. 2023, arXiv 2307.08621; Yang et al. 2023, arXiv 2312.06635;
    Yang et al. 2024, arXiv 2406.06484; Yang, Kautz, Hatamizadeh 2025, arXiv 2412.06464.
    """
    require(log_decay is not None or rule not in DECAYING, "log_decay", None, f"given for the rule {rule!r}")
    written = WRITE_RULES.build(rule)
    given: dict[str, Any] = {"step_size": beta, "log_decay": log_decay}
    outputs = causal_attention(queries * scale, keys, values, feature_map, written, readout, **given)
    features = feature_map(keys)
    state = written.init(features.shape[-1], values.shape[-1], tuple(keys.shape[:-2]), like=features)
    return Replay(written.matrix(written.write(state, features, values, **given)), outputs)


def compare(replayed: Replay, layer_state: Array | None = None, layer_output: Array | None = None) -> Errors:
    """Return how far a replay is from what the layer itself had.

    Parameters
    ----------
    replayed : Replay
        From :func:`replay`.
    layer_state : array (..., H_kv, D, v), optional
        The layer's state after the last pair.
    layer_output : array (..., H_q, N, v), optional
        Its outputs, before gate, norm and projection.

    Raises
    ------
    ValueError
        If shapes differ, both of which the message names.
    """
    state, outputs = _numbers(replayed.state, "state"), _numbers(replayed.outputs, "outputs")
    as_it_is = transposed = output = float("nan")
    worst = -1
    if layer_state is not None:
        held = _numbers(layer_state, "layer_state")
        flipped = held.swapaxes(-1, -2)
        if state.shape not in (held.shape, flipped.shape):
            raise ValueError(f"layer_state must have shape {state.shape}, got {held.shape}")
        as_it_is = _relative(state, held) if held.shape == state.shape else as_it_is
        transposed = _relative(state, flipped) if flipped.shape == state.shape else transposed
    if layer_output is not None:
        given = _numbers(layer_output, "layer_output")
        if given.shape != outputs.shape:
            raise ValueError(f"layer_output must have shape {outputs.shape}, got {given.shape}")
        output = _relative(outputs, given)
        apart = ((outputs - given) ** 2).sum(axis=-1)
        worst = int(apart.reshape(-1, apart.shape[-1]).sum(axis=0).argmax())
    return Errors(as_it_is, output, transposed, worst)


def _numbers(array: Any, name: str) -> Numbers:
    return stored(array, name).read().astype(np.float64)


def _relative(made: Numbers, given: Numbers) -> float:
    wrong, whole = float(np.linalg.norm(made - given)), float(np.linalg.norm(given))
    return wrong / whole if whole else float("inf" if wrong else 0.0)
