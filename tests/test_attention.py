"""Attention operators against dense references, each other, and counted multiply-adds."""

import itertools
from dataclasses import dataclass
from functools import partial

import array_api_strict
import numpy as np
import pytest

from capmem import LinearMemory
from capmem.attention import (
    causal_attention,
    choose_order,
    cost,
    crossing_point,
    kernel_attention,
    linear_attention,
    register_form,
    softmax_attention,
)
from capmem.attention.forms import FORMS
from capmem.feature_maps import Dpfp, EluPlusOne, Identity, PositiveRandomFeatures, ReLU
from capmem.memory import SoftmaxMemory
from capmem.readouts import Linear, Normalized, RMSNorm
from capmem.write_rules import (
    WRITE_RULES,
    Decay,
    Delta,
    GatedDecay,
    GatedDelta,
    Hebbian,
    LeastSquares,
    Oja,
    StabilityWarning,
)
from tests.conformance import FEATURE_MAPS, RULES, by_loop, unit

READOUTS = [Linear(), Normalized(), Normalized(0.1), RMSNorm()]
FORM_ARGUMENTS = [("quadratic", 1), ("chunked", 1), ("chunked", 7), ("chunked", 64), ("recurrent", 1)]
MASKED_RULES = [rule for rule in RULES if rule != LeastSquares()]
N, D, V = 18, 6, 5


@pytest.fixture
def sequence(rng):
    """Queries, keys, values (2, 3, N, .): a batch of two, three heads; unit rows, on which every rule is stable."""
    return tuple(unit(rng.standard_normal((2, 3, N, dim))) for dim in (D, D, V))


def assert_close(actual, expected, tolerance=1e-10):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def heads(function, *arrays):
    """Apply a function of two-dimensional arrays to each batch and head."""
    lead = arrays[0].shape[:2]
    out = [function(*(a[i] for a in arrays)) for i in itertools.product(*map(range, lead))]
    return np.reshape(out, (*lead, *out[0].shape))


def by_hand(readout, S, z, features):
    """One query read from S (D, v), z (D)."""
    y, denominator = S.T @ features, features @ z
    if isinstance(readout, Normalized):
        return y / (denominator + readout.epsilon)
    if isinstance(readout, RMSNorm):
        return y / np.sqrt((y**2).mean() + readout.epsilon)
    return y


def dense(rule, readout, queries, keys, values, **given):
    """Query i reads what a loop over pairs 0 to i leaves: no masks, no blocks."""
    rows = []
    for i in range(len(keys)):
        until = {name: x[: i + 1] for name, x in given.items()}
        if rule == LeastSquares():
            S, z = np.linalg.pinv(keys[: i + 1], rcond=1e-12) @ values[: i + 1], keys[: i + 1].sum(axis=0)
        else:
            S, z = by_loop(rule, keys[: i + 1], values[: i + 1], **until)
        rows.append(by_hand(readout, S, z, queries[i]))
    return np.stack(rows)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("beta", [None, 4.0])
def test_softmax_attention_is_its_formula(causal, beta, sequence):
    def reference(q, k, v):
        weights = np.exp(q @ k.T * (D**-0.5 if beta is None else beta))
        if causal:
            weights = np.where(np.arange(N)[:, None] >= np.arange(N), weights, 0)
        return weights / weights.sum(axis=1, keepdims=True) @ v

    assert_close(softmax_attention(*sequence, beta=beta, causal=causal), heads(reference, *sequence))


def test_softmax_attention_is_what_a_memory_of_all_pairs_reads(sequence):
    q, k, v = sequence
    memory = SoftmaxMemory(3.0)
    state = memory.write(memory.init(D, V, batch=(2, 3)), k, v)
    assert_close(softmax_attention(q[..., :4, :], k, v, beta=3.0), memory.read(state, q[..., :4, :]))


def test_softmax_attention_takes_scores_that_overflow_an_exponential(sequence):
    q, k, v = sequence
    retrieved = softmax_attention(1e4 * k, k, v)
    assert np.isfinite(retrieved).all()
    assert_close(retrieved, v, 1e-6)


def test_one_query_sees_the_whole_past_as_the_last_row_of_the_causal_form_does(sequence):
    q, k, v = sequence
    assert_close(softmax_attention(q[..., -1:, :], k, v), softmax_attention(q, k, v, causal=True)[..., -1:, :])


@pytest.mark.parametrize("readout", READOUTS, ids=str)
@pytest.mark.parametrize("phi", FEATURE_MAPS, ids=str)
def test_both_association_orders_are_what_a_hebbian_memory_reads(phi, readout, sequence):
    if isinstance(readout, Normalized) and not phi.positive_kernel:
        pytest.skip("denominators cross zero: no tolerance holds")
    memory = LinearMemory(phi, readout=readout)
    q, k, v = sequence
    state = memory.write(memory.init(D, V, batch=(2, 3)), k, v)
    expected = memory.read(state, q)
    for order in ("left", "right", "auto"):
        assert_close(linear_attention(q, k, v, phi, readout, order), expected)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("phi", [ReLU(), EluPlusOne(), Dpfp(2)], ids=str)
def test_kernel_attention_of_an_exact_map_is_linear_attention(phi, normalize, sequence):
    readout = Normalized() if normalize else Linear()
    assert_close(kernel_attention(*sequence, phi, normalize), linear_attention(*sequence, phi, readout))
    causal = causal_attention(*sequence, phi, readout=readout, form="recurrent")
    assert_close(kernel_attention(*sequence, phi, normalize, causal=True), causal)


def test_kernel_attention_of_a_random_map_is_the_softmax_that_it_approximates(sequence):
    phi = PositiveRandomFeatures()
    for causal in (False, True):
        assert_close(kernel_attention(*sequence, phi, causal=causal), softmax_attention(*sequence, causal=causal))
    assert np.abs(linear_attention(*sequence, phi, Normalized()) - softmax_attention(*sequence)).max() > 1e-3


@pytest.mark.parametrize("readout", READOUTS, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_causal_form_is_the_loop_over_pairs(rule, readout, sequence):
    phi, (q, k, v) = ReLU(), (x[:1, :2] for x in sequence)
    q, k = np.abs(q), np.abs(k)  # ReLU features that overlap: no denominator is zero
    expected = heads(partial(dense, rule, readout), phi(q), phi(k), v)
    tolerance = 1e-7 if rule == LeastSquares() else 1e-10  # times a condition number of up to 1e3
    for form, size in FORM_ARGUMENTS if rule in MASKED_RULES else [("recurrent", 1)]:
        assert_close(causal_attention(q, k, v, phi, rule, readout, form, size), expected, tolerance)


@pytest.mark.parametrize("rule", [Hebbian(), GatedDelta(1.0, 0.95), LeastSquares(0.5)], ids=str)
@pytest.mark.parametrize("phi", FEATURE_MAPS, ids=str)
def test_causal_forms_agree_for_every_map(phi, rule, sequence):
    q, k, v = sequence
    given = {}
    if isinstance(rule, GatedDelta):
        given["step_size"] = 1 / (phi(k) ** 2).sum(axis=-1).clip(1e-3)
    if isinstance(rule, LeastSquares) and phi.width(D) > 30:
        pytest.skip("a singular value decomposition for each pair")
    readout = Normalized() if phi.positive_kernel and isinstance(rule, Hebbian) else Linear()
    expected = causal_attention(q, k, v, phi, rule, readout, "recurrent", **given)
    for form, size in FORM_ARGUMENTS[:-1]:
        assert_close(causal_attention(q, k, v, phi, rule, readout, form, size, **given), expected)


@pytest.mark.parametrize("form", ["quadratic", "chunked", "recurrent"])
@pytest.mark.parametrize("rule", [Delta(), Oja(), Decay(), GatedDecay(), GatedDelta()], ids=str)
def test_steps_and_gates_of_each_pair_reach_every_form(rule, form, sequence, rng):
    given, loop = {}, {}
    if hasattr(rule, "step_size"):
        given["step_size"] = loop["step"] = rng.uniform(0.1, 0.9, (2, 3, N))
    if not isinstance(rule, Delta | Oja):
        shape = (2, 3, N, D) if isinstance(rule, GatedDecay) else (2, 3, N)
        given["log_decay"] = loop["gates"] = -rng.uniform(0, 0.5, shape)
    names = list(loop)

    def reference(q, k, v, *more):
        return dense(rule, Linear(), q, k, v, **dict(zip(names, more, strict=True)))

    expected = heads(reference, *sequence, *loop.values())
    assert_close(causal_attention(*sequence, write_rule=rule, form=form, chunk_size=5, **given), expected)


def test_one_gate_a_pair_is_the_same_gate_for_every_feature(sequence, rng):
    gates = -rng.uniform(0, 0.5, (2, 3, N))
    wide = np.repeat(gates[..., None], D, axis=-1)
    for form in ("quadratic", "recurrent"):
        one, each = (
            causal_attention(*sequence, write_rule=GatedDecay(), form=form, log_decay=x) for x in (gates, wide)
        )
        assert_close(one, each)


@pytest.mark.parametrize("form", ["quadratic", "chunked"])
@pytest.mark.parametrize("rule", [Decay(), GatedDecay(), GatedDelta()], ids=str)
def test_very_strong_decay_neither_overflows_nor_divides_by_zero(rule, form, sequence):
    q, k, v = sequence
    gates = np.full((2, 3, N), -300.0)
    if isinstance(rule, GatedDecay):
        gates = np.repeat(gates[..., None], D, axis=-1)
    own = (q * k).sum(axis=-1, keepdims=True) * v
    assert_close(causal_attention(q, k, v, write_rule=rule, form=form, log_decay=gates), own, 1e-12)


@pytest.mark.parametrize("rule", [Hebbian(), GatedDecay(), GatedDelta(0.7, 0.95), Oja(0.3)], ids=str)
def test_long_sequences_agree_too(rule, rng):
    q, k, v = (unit(rng.standard_normal((1, 300, d))) for d in (8, 8, 4))
    forms = [causal_attention(q, k, v, write_rule=rule, form=f) for f in ("recurrent", "quadratic", "chunked")]
    assert_close(forms[1], forms[0])
    assert_close(forms[2], forms[0])


@pytest.mark.parametrize("form", ["quadratic", "chunked", "recurrent"])
@pytest.mark.parametrize("rule", MASKED_RULES, ids=str)
def test_single_precision_stays_single_and_near(rule, form, sequence):
    wide = causal_attention(*sequence, write_rule=rule, form=form, chunk_size=5)
    narrow = causal_attention(*(x.astype(np.float32) for x in sequence), write_rule=rule, form=form, chunk_size=5)
    assert narrow.dtype == np.float32
    assert_close(narrow, wide, 3e-6)


CAUSAL = {
    "softmax": partial(softmax_attention, causal=True),
    "kernel": partial(kernel_attention, feature_map=EluPlusOne(), causal=True),
} | {
    f"{rule} {form}": partial(causal_attention, write_rule=rule, form=form, chunk_size=5)
    for rule in RULES
    for form in ("quadratic", "chunked", "recurrent")
    if rule in MASKED_RULES or form == "recurrent"
}


@pytest.mark.parametrize("attend", CAUSAL.values(), ids=CAUSAL.keys())
def test_the_future_changes_nothing(attend, sequence, rng):
    changed = [x.copy() for x in sequence]
    for x in changed:
        x[..., 12:, :] = unit(rng.standard_normal(x[..., 12:, :].shape))
    before, after = attend(*sequence), attend(*changed)
    np.testing.assert_allclose(after[..., :12, :], before[..., :12, :], rtol=0, atol=1e-13)
    assert np.abs(after[..., 12:, :] - before[..., 12:, :]).max() > 0.1


def test_without_a_mask_the_future_does_change_the_past(sequence, rng):
    q, k, v = sequence
    later = v.copy()
    later[..., 12:, :] = 0
    for attend in (softmax_attention, kernel_attention, linear_attention):
        assert np.abs(attend(q, k, later) - attend(q, k, v))[..., :12, :].max() > 0.01


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_query_reads_its_own_pair(rule, rng):
    q, k, v = (unit(rng.standard_normal((1, 4))) for _ in range(3))
    S, _ = by_loop(rule, k, v)
    assert_close(causal_attention(q, k, v, write_rule=rule, form="recurrent"), q @ S)


GROUPED = CAUSAL | {
    "softmax of all": softmax_attention,
    "kernel of all": partial(kernel_attention, feature_map=EluPlusOne()),
    "left": partial(linear_attention, order="left"),
    "right": partial(linear_attention, order="right", readout=RMSNorm()),
}


@pytest.mark.parametrize("attend", GROUPED.values(), ids=GROUPED.keys())
def test_query_head_h_uses_key_head_h_over_the_group_size(attend, sequence, rng):
    _, k, v = sequence
    q = unit(rng.standard_normal((2, 6, N, D)))
    grouped = attend(q, k, v)
    assert_close(grouped, attend(q, np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)))
    by_remainder = attend(q, np.tile(k, (1, 2, 1, 1)), np.tile(v, (1, 2, 1, 1)))  # h % H_kv: a known mistake
    assert np.abs(grouped - by_remainder).max() > 0.1


def test_one_key_head_serves_all_query_heads(sequence):
    q, k, v = sequence
    shared = linear_attention(q, k[:, :1], v[:, :1], order="right")
    each = [linear_attention(q[:, h], k[:, 0], v[:, 0]) for h in range(3)]
    assert_close(shared, np.stack(each, axis=1))


def test_gates_of_grouped_heads_belong_to_the_key_heads(sequence, rng):
    _, k, v = sequence
    q, gates = unit(rng.standard_normal((2, 6, N, D))), -rng.uniform(0, 0.5, (2, 3, N))
    for form in ("quadratic", "chunked", "recurrent"):
        attend = partial(causal_attention, write_rule=GatedDelta(), form=form, chunk_size=5)
        repeated = [np.repeat(x, 2, axis=1) for x in (k, v, gates)]
        assert_close(attend(q, k, v, log_decay=gates), attend(q, *repeated[:2], log_decay=repeated[2]))


def test_heads_and_batches_are_optional(sequence):
    for attend in GROUPED.values():
        assert_close(attend(*(x[1, 2] for x in sequence)), attend(*(x[1:] for x in sequence))[0, 2])


class Counter:
    """Multiply-adds, and numbers read and written, of every matrix product of array-api-strict arrays."""

    def __init__(self, monkeypatch):
        self.multiply_adds = self.moved = 0
        product = array_api_strict._array_object.Array.__matmul__

        def counted(a, b):
            result = product(a, b)
            self.multiply_adds += result.size * a.shape[-1]
            self.moved += a.size + b.size + result.size
            return result

        monkeypatch.setattr(array_api_strict._array_object.Array, "__matmul__", counted)


def attend_as(form, queries, keys, values, phi, chunk_size):
    if form == "softmax":
        return softmax_attention(queries, keys, values)
    if form in ("left", "right"):
        return linear_attention(queries, keys, values, phi, order=form)
    return causal_attention(queries, keys, values, phi, form=form, chunk_size=chunk_size)


@pytest.mark.parametrize("group_size", [1, 3])
@pytest.mark.parametrize("num_queries", [7, 2])
@pytest.mark.parametrize("form", ["softmax", "left", "right", "quadratic", "recurrent", "chunked"])
def test_the_cost_model_counts_what_is_run(form, num_queries, group_size, rng, monkeypatch):
    if num_queries != 7 and form in ("quadratic", "recurrent", "chunked"):
        pytest.skip("causal: one query a pair")
    shapes = (group_size, num_queries, 2), (1, 7, 2), (1, 7, 5)
    q, k, v = (array_api_strict.asarray(rng.standard_normal(s)) for s in shapes)
    counter = Counter(monkeypatch)
    attend_as(form, q, k, v, Dpfp(1), chunk_size=3)
    told = cost(7, 2, 5, 4, form, num_queries=num_queries, group_size=group_size, chunk_size=3, dtype="float64")
    assert told.flops == 2 * counter.multiply_adds
    assert told.bytes == 8 * counter.moved


def test_the_cost_model_is_its_formula():
    n, d, v, f = 1000, 16, 24, 32
    assert cost(n, d, v, f, "softmax").flops == 2 * n * n * (d + v)
    assert cost(n, d, v, f, "left").flops == cost(n, d, v, f, "quadratic").flops == 2 * n * n * (f + v)
    assert cost(n, d, v, f, "right").flops == cost(n, d, v, f, "recurrent").flops == 4 * n * f * v
    assert cost(n, d, v, f, "chunked", chunk_size=50).flops == 4 * n * f * v + 2 * n * 50 * (f + v)
    assert cost(n, d, v).flops == cost(n, d, v, d, "right").flops


def test_the_cost_model_holds_what_memories_hold():
    linear, softmax = LinearMemory(Dpfp(1)).state_size(16, 24), SoftmaxMemory().state_size(16, 24, 1000)
    for form in ("right", "recurrent", "chunked"):
        assert cost(1000, 16, 24, 32, form).state == linear.elements
    for form in ("softmax", "left", "quadratic"):
        assert cost(1000, 16, 24, 32, form).state == softmax.elements


def test_a_recurrence_moves_far_more_than_chunks_for_the_same_result():
    recurrent, chunked = (cost(4096, 64, 64, form=form) for form in ("recurrent", "chunked"))
    assert recurrent.bytes > 10 * chunked.bytes
    assert recurrent.flops < chunked.flops


@pytest.mark.parametrize("group_size", [1, 4])
@pytest.mark.parametrize(("d", "v", "width"), [(64, 64, 64), (16, 64, 153), (64, 8, 512), (3, 5, 2)])
@pytest.mark.parametrize("against", ["left", "softmax"])
def test_the_crossing_point_is_where_the_counts_cross(against, d, v, width, group_size):
    crossing = crossing_point(d, v, width, group_size, against)
    for n in range(1, int(2 * crossing) + 2):
        right, quadratic = (cost(n, d, v, width, f, group_size=group_size).flops for f in ("right", against))
        assert (right < quadratic) == (n > crossing + 1e-9)


def test_at_equal_dimensions_the_crossing_point_is_the_dimension():
    assert crossing_point(64, 64) == crossing_point(64, 64, against="softmax") == 64


def test_the_choice_says_why():
    order, reason = choose_order(32, 64, 64)
    assert order == "left"
    assert reason == (
        "left: (phi(Q) phi(K)^T) V takes 2.62e+05 flops and phi(Q) (phi(K)^T V) takes 5.24e+05, "
        "with N = 32, D = 64, v = 64; the right order is the cheaper one from N = 64"
    )
    assert choose_order(128, 64, 64).order == choose_order(64, 64, 64).order == "right"
    assert choose_order(128, 64, 64, num_queries=1).order == "left"  # one query does not pay for S


@pytest.mark.parametrize(("count", "order"), [(3, "left"), (40, "right")])
def test_auto_runs_the_order_that_is_chosen(count, order, rng, monkeypatch):
    q, k, v = (array_api_strict.asarray(rng.standard_normal((count, 8))) for _ in range(3))
    counter = Counter(monkeypatch)
    linear_attention(q, k, v)
    assert 2 * counter.multiply_adds == cost(count, 8, 8, form=order).flops
    assert choose_order(count, 8, 8).order == order


def test_every_registered_write_rule_has_a_masked_form():
    assert set(FORMS) == {WRITE_RULES[name] for name in WRITE_RULES.names()}


@pytest.mark.parametrize("form", ["quadratic", "chunked"])
def test_a_form_that_a_rule_does_not_have_is_refused(form, sequence):
    with pytest.raises(ValueError, match=r"LeastSquares\(ridge=0\) has no quadratic or chunked form: use form="):
        causal_attention(*sequence, write_rule=LeastSquares(), form=form)


@dataclass(frozen=True)
class HalfStep(Hebbian):
    """A rule of one's own, whose ``write`` differs from that of the rule it comes from."""

    def write(self, state, features, values, **given):
        return super().write(state, features, values / 2, **given)


def test_a_rule_of_ones_own_inherits_no_form_and_can_be_given_one(sequence, monkeypatch):
    recurrent = causal_attention(*sequence, write_rule=HalfStep(), form="recurrent")
    assert_close(recurrent, causal_attention(*sequence) / 2)
    with pytest.raises(ValueError, match="HalfStep has no quadratic or chunked form.*Rules that have one: Decay"):
        causal_attention(*sequence, write_rule=HalfStep())
    monkeypatch.setitem(FORMS, HalfStep, None)

    @register_form(HalfStep)
    def half(rule, block):
        return FORMS[Hebbian](Hebbian(), block._replace(values=block.values / 2))

    assert_close(causal_attention(*sequence, write_rule=HalfStep(), chunk_size=5), recurrent)


def test_a_step_that_diverges_is_named_in_every_form(sequence):
    q, k, v = sequence
    for form in ("quadratic", "chunked", "recurrent"):
        with pytest.warns(StabilityWarning, match="pairs have step_size"):
            causal_attention(q, 2 * k, v, write_rule=Delta(), form=form)


@pytest.mark.parametrize("form", ["quadratic", "chunked", "recurrent"])
@pytest.mark.parametrize(
    ("rule", "given", "told"),
    [
        (Hebbian(), "step_size", "Hebbian has no step_size"),
        (Delta(), "log_decay", "Delta has no log_decay"),
        (LeastSquares(0.5), "log_decay", "LeastSquares has no log_decay"),
    ],
)
def test_a_step_or_decay_that_a_rule_cannot_use_is_refused(rule, given, told, form, sequence):
    with pytest.raises(ValueError, match=told):
        causal_attention(*sequence, write_rule=rule, form=form, **{given: np.zeros((2, 3, N))})


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        (((5, 3), (5, 4), (5, 2)), r"one last axis d, got shapes \(5, 3\) and \(5, 4\)"),
        (((5, 3), (5, 3), (4, 2)), r"the same pairs, got shapes \(5, 3\) and \(4, 2\)"),
        (((4, 5, 3), (3, 5, 3), (3, 5, 2)), r"a multiple of key heads, got shapes \(4, 5, 3\) and \(3, 5, 3\)"),
        (((2, 6, 5, 3), (3, 2, 5, 3), (3, 2, 5, 2)), r"leading axes.* \(2, 6, 5, 3\) and \(3, 2, 5, 3\)"),
        (((5, 3), (0, 3), (0, 2)), r"at least one pair, got shape \(0, 3\)"),
        (((3,), (5, 3), (5, 2)), r"queries must have shape \(\.\.\., N, dim\), got shape \(3,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, told):
    for attend in (softmax_attention, kernel_attention, linear_attention):
        with pytest.raises(ValueError, match=told):
            attend(*(np.ones(s) for s in shapes))


def test_causal_attention_takes_one_query_a_key():
    for attend in CAUSAL.values():
        with pytest.raises(ValueError, match=r"one query a key, got shapes \(4, 3\) and \(5, 3\)"):
            attend(np.ones((4, 3)), np.ones((5, 3)), np.ones((5, 2)))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: softmax_attention(x, x, x, beta=0), "beta must be a positive number"),
        (lambda x: linear_attention(x, x, x, order="middle"), "order must be one of auto, left, right"),
        (lambda x: causal_attention(x, x, x, form="scan"), "form must be one of chunked, quadratic, recurrent"),
        (lambda x: causal_attention(x, x, x, chunk_size=0), "chunk_size must be an integer of at least 1, got 0"),
        (
            lambda x: causal_attention(x, x, x, write_rule=Delta(), step_size=np.ones(3)),
            r"step_size must have shape \(5,\) for keys \(5, 3\), got \(3,\)",
        ),
        (lambda x: cost(0, 4, 4), "num_tokens must be an integer of at least 1, got 0"),
        (lambda x: cost(4, 4, 4, form="scan"), "form must be one of softmax, left, right"),
        (lambda x: cost(4, 4, 4, form="chunked", num_queries=2), "num_queries must be num_tokens, 4, in the"),
        (lambda x: crossing_point(4, 0), "must be at least 1"),
    ],
)
def test_arguments_out_of_range_are_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call(np.ones((5, 3)))


def test_linear_attention_with_no_queries_reads_nothing():
    assert linear_attention(np.ones((0, 3)), np.ones((5, 3)), np.ones((5, 2)), Identity()).shape == (0, 2)
