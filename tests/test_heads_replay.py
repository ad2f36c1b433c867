"""Replaying a linear layer: state and outputs are those of the plain recurrence, and a wrong rule shows."""

import numpy as np
import pytest

from capmem.feature_maps import EluPlusOne
from capmem.heads import compare, replay
from capmem.readouts import Normalized

HEADS, GROUP, PAIRS, DIM, VALUE = 2, 3, 150, 8, 5

STEPS = {
    "hebbian": lambda S, k, v, b, a: S + np.outer(k, v),
    "decay": lambda S, k, v, b, a: a * S + np.outer(k, v),
    "gated_decay": lambda S, k, v, b, a: a[:, None] * S + np.outer(k, v),
    "delta": lambda S, k, v, b, a: S + b * np.outer(k, v - k @ S),
    "gated_delta": lambda S, k, v, b, a: a * S + b * np.outer(k, v - k @ (a * S)),
}
GIVEN = {
    "hebbian": (),
    "decay": ("log_decay",),
    "gated_decay": ("log_decay",),
    "delta": ("beta",),
    "gated_delta": ("beta", "log_decay"),
}


def recurrence(rule, keys, values, queries, beta, decay):
    """Return the state and all outputs of one layer, pair by pair; keys (H_kv, N, d), queries (H_q, N, d)."""
    states = np.zeros((len(keys), keys.shape[-1], values.shape[-1]))
    outputs = np.zeros((*queries.shape[:2], values.shape[-1]))
    for t in range(keys.shape[1]):
        for j in range(len(keys)):
            states[j] = STEPS[rule](states[j], keys[j, t], values[j, t], beta[j, t], decay[j, t])
            for h in range(j * len(queries) // len(keys), (j + 1) * len(queries) // len(keys)):
                outputs[h, t] = queries[h, t] @ states[j]
    return states, outputs


@pytest.fixture
def layer(rng):
    keys = rng.standard_normal((HEADS, PAIRS, DIM))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    return {
        "keys": keys,
        "values": rng.standard_normal((HEADS, PAIRS, VALUE)),
        "queries": rng.standard_normal((HEADS * GROUP, PAIRS, DIM)),
    }


@pytest.fixture
def gates(rng):
    return rng.uniform(0.1, 1, (HEADS, PAIRS)), rng.uniform(0.7, 1, (HEADS, PAIRS, DIM))


def given(rule, gates):
    beta, decay = gates[0], gates[1] if rule == "gated_decay" else gates[1][..., 0]
    arguments = {"beta": beta, "log_decay": np.log(decay)}
    return beta, decay, {name: arguments[name] for name in GIVEN[rule]}


@pytest.mark.parametrize("rule", STEPS)
def test_the_replay_is_the_recurrence(layer, gates, rule):
    beta, decay, arguments = given(rule, gates)
    state, outputs = recurrence(rule, **layer, beta=beta, decay=decay)
    errors = compare(replay(**layer, **arguments, rule=rule), state, outputs)
    assert errors.state < 1e-12 and errors.output < 1e-12


@pytest.mark.parametrize("rule", ["hebbian", "decay", "delta"])
def test_another_rule_shows(layer, gates, rule):
    beta, decay, _ = given("gated_delta", gates)
    state, outputs = recurrence("gated_delta", **layer, beta=beta, decay=decay)
    _, _, arguments = given(rule, gates)
    errors = compare(replay(**layer, **arguments, rule=rule), state, outputs)
    assert errors.state > 0.1 and errors.output > 0.1


def test_a_step_of_one_is_assumed_and_no_decay_is(layer, gates):
    ones = np.ones((HEADS, PAIRS))
    state, _ = recurrence("delta", **layer, beta=ones, decay=ones)
    assert compare(replay(**layer), state).state < 1e-12
    for rule in ("decay", "gated_decay", "gated_delta"):
        with pytest.raises(ValueError, match="log_decay must be given for the rule"):
            replay(**layer, rule=rule)


def test_the_scale_of_the_layer_counts(layer, gates):
    state, outputs = recurrence("hebbian", **layer, beta=gates[0], decay=gates[0])
    made = replay(**layer, rule="hebbian", scale=DIM**-0.5)
    assert compare(made, state, outputs * DIM**-0.5).output < 1e-13
    assert compare(made, state, outputs).output > 0.1


def test_a_layer_with_features_and_a_denominator_is_replayed(layer):
    phi = EluPlusOne()
    keys, queries = phi(layer["keys"]), np.split(phi(layer["queries"]), HEADS)
    sums, totals = np.zeros((HEADS, DIM, VALUE)), np.zeros((HEADS, DIM))
    outputs = np.zeros((HEADS * GROUP, PAIRS, VALUE))
    for t in range(PAIRS):
        for j in range(HEADS):
            sums[j] += np.outer(keys[j, t], layer["values"][j, t])
            totals[j] += keys[j, t]
            for g in range(GROUP):
                q = queries[j][g, t]
                outputs[j * GROUP + g, t] = q @ sums[j] / (q @ totals[j])
    made = replay(**layer, rule="hebbian", feature_map=phi, readout=Normalized())
    errors = compare(made, sums, outputs)
    assert errors.state < 1e-12 and errors.output < 1e-12


def test_a_state_that_is_held_the_other_way_is_told(layer, gates):
    state, _ = recurrence("hebbian", **layer, beta=gates[0], decay=gates[0])
    errors = compare(replay(**layer, rule="hebbian"), state.swapaxes(-1, -2))
    assert errors.state_transposed < 1e-13 and np.isnan(errors.state) and np.isnan(errors.output)
    square = layer | {"values": np.random.default_rng(1).standard_normal((HEADS, PAIRS, DIM))}
    state, _ = recurrence("hebbian", **square, beta=gates[0], decay=gates[0])
    errors = compare(replay(**square, rule="hebbian"), state.swapaxes(-1, -2))
    assert errors.state_transposed < 1e-13 and errors.state > 0.1


def test_the_worst_token_is_named(layer):
    made = replay(**layer)
    wrong = made.outputs.copy()
    wrong[2, 77] += 1
    errors = compare(made, layer_output=wrong)
    assert errors.worst_token == 77
    assert errors.output == pytest.approx(VALUE**0.5 / np.linalg.norm(wrong), rel=1e-12)


def test_shapes_that_differ_are_refused(layer):
    made = replay(**layer)
    with pytest.raises(ValueError, match=r"layer_state must have shape \(2, 8, 5\), got \(2, 8, 6\)"):
        compare(made, np.ones((2, 8, 6)))
    with pytest.raises(ValueError, match="layer_output must have shape"):
        compare(made, layer_output=np.ones((2, 150, 5)))
    with pytest.raises(ValueError, match="write_rule 'dleta' does not exist"):
        replay(**layer, rule="dleta")


def test_dtype_is_kept(layer):
    made = replay(**{name: x.astype(np.float32) for name, x in layer.items()})
    assert made.state.dtype == made.outputs.dtype == np.float32
