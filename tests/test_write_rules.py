"""Write rules against closed forms, gates a pair, stability, and hard cases."""

import math
import warnings

import numpy as np
import pytest

from capmem import LinearMemory
from capmem.feature_maps import Identity
from capmem.write_rules import (
    Decay,
    Delta,
    GatedDecay,
    GatedDelta,
    Hebbian,
    LeastSquares,
    Oja,
    StabilityWarning,
)
from tests.conformance import by_loop, unit


def errors_by_age(rule, d, n, trials, seed=0):
    """|S^T k - v|^2 / |v|^2 of each pair (trials, N), newest last: unit keys, unit values."""
    rng = np.random.default_rng(seed)
    keys, values = unit(rng.standard_normal((trials, n, d))), unit(rng.standard_normal((trials, n, d)))
    memory = LinearMemory(Identity(), rule)
    state = memory.write(memory.init(d, d, batch=(trials,)), keys, values)
    return ((memory.read(state, keys) - values) ** 2).sum(axis=-1)


def assert_agrees(measured, expected):
    mean = measured.mean(axis=0)
    error = measured.std(axis=0, ddof=1) / math.sqrt(len(measured))
    assert (np.abs(mean - expected) < 4.5 * error).all()
    assert (error < 0.15 * np.maximum(expected, 0.05)).all()  # the check has teeth


@pytest.mark.parametrize("b", [1.0, 0.5])
def test_delta_by_age_is_its_closed_form(b):
    d, n = 16, 24
    m = np.arange(n)[::-1]
    r1, r2 = 1 - b / d, 1 - b * (2 - b) / d
    a = 1 - 2 * b / d + 2 * b * b / (d * (d + 2))
    a2, h = (1 - 1 / d) * a**m + r2**m / d, b / (2 - b)
    expected = (
        1 - 2 * b * r1**m + b * b * a2 + h * (1 - r2**m) + (r2**m - b * (2 - b) * a2) * h * (1 - r2 ** (n - 1 - m))
    )
    measured = errors_by_age(Delta(b), d, n, 3000)
    if b == 1:  # the newest pair is exact
        np.testing.assert_allclose(measured[:, -1], 0, atol=1e-25)
        measured, expected = measured[:, :-1], expected[:-1]
    assert_agrees(measured, expected)


def test_delta_at_load_one_approaches_its_limit():
    measured = errors_by_age(Delta(), 64, 64, 60).mean(axis=1)
    error = measured.std(ddof=1) / math.sqrt(60)
    assert abs(measured.mean() - 0.5982) < 4 * error


def test_decay_by_age_is_its_closed_form():
    d, n, g = 32, 20, 0.9
    m = np.arange(n)[::-1]
    expected = (1 - g**m) ** 2 + ((1 - g ** (2 * n)) / (1 - g * g) - g ** (2 * m)) / d
    assert_agrees(errors_by_age(Decay(g), d, n, 2000), expected)


def test_untrained_gates_are_a_sigmoid_of_random_logits_to_the_power_of_one_over_temperature(rng):
    features = 3 * rng.standard_normal((5, 4))
    weights = np.random.default_rng(7).standard_normal((4, 4)) / 2  # N(0, 1/D), D = 4
    gates = (1 / (1 + np.exp(-(features @ weights + 1.5)))) ** (1 / 3)
    np.testing.assert_allclose(np.exp(GatedDecay(1.5, 3.0, 7).log_gates(features)), gates, rtol=1e-12)


def test_gated_delta_by_age_is_its_closed_form():
    d, n, al, b = 16, 24, 0.95, 0.8
    m = np.arange(n)[::-1]
    r, r1 = 1 - b * (2 - b) / d, 1 - b / d
    a = 1 - 2 * b / d + 2 * b * b / (d * (d + 2))
    q = al * al * r
    a2 = al ** (2 * m) * ((1 - 1 / d) * a**m + r**m / d)
    first, last = (1 - q**m) / (1 - q), (1 - q ** (n - 1 - m)) / (1 - q)
    expected = (
        1 - 2 * b * (al * r1) ** m + b * b * a2 + b * b / d * first
        + al * al * (q**m - b * (2 - b) * a2) * b * b / d * last
    )  # fmt: skip
    assert_agrees(errors_by_age(GatedDelta(b, al), d, n, 4000), expected)


def test_oja_by_age_is_its_closed_form():
    d, n = 16, 24
    m = np.arange(n)[::-1]
    rv = 1 - 1 / d
    expected = 1 - rv**m + (1 - rv**n) - rv**m / d
    assert_agrees(errors_by_age(Oja(1.0), d, n, 3000), expected)


@pytest.mark.parametrize(("d", "n"), [(16, 12), (16, 16), (16, 24), (16, 64)])
def test_least_squares_is_exact_up_to_its_rank_then_the_rank_floor(d, n):
    measured = errors_by_age(LeastSquares(), d, n, 200).mean(axis=1)
    if n <= d:
        assert measured.max() < (1e-6 if n == d else 1e-20)  # at n = d a draw can be ill-conditioned
    else:
        error = measured.std(ddof=1) / math.sqrt(200)
        assert abs(measured.mean() - (1 - d / n)) < 4 * error


def test_least_squares_without_ridge_is_the_matrix_of_least_norm(rng):
    """Of fewer pairs than dimensions many matrices read all pairs exactly; rounding picks none of them."""
    keys, values = rng.standard_normal((8, 16)), rng.standard_normal((8, 4))
    keys[7] = keys[0] + keys[1]  # of rank 7
    rule = LeastSquares()
    found = rule.matrix(rule.write(rule.init(16, 4), keys, values))
    np.testing.assert_allclose(found, np.linalg.pinv(keys) @ values, atol=1e-10)


def test_nothing_beats_least_squares_on_the_stored_pairs():
    errors = {
        type(r).__name__: errors_by_age(r, 16, 40, 50).mean(axis=1)
        for r in (Hebbian(), Delta(), Oja(1.0), LeastSquares())
    }
    for name, other in errors.items():
        if name != "LeastSquares":
            assert (errors["LeastSquares"] < other).all()


def test_least_squares_keeps_its_digits_where_the_gram_matrix_loses_them(rng):
    rotation, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    keys = rng.standard_normal((30, 8)) * np.logspace(0, -6, 8) @ rotation
    values = rng.standard_normal((30, 3))
    rule = LeastSquares()
    S = rule.matrix(rule.write(rule.init(8, 3), keys, values))
    reference = np.linalg.lstsq(keys, values, rcond=None)[0]
    by_gram = np.linalg.solve(keys.T @ keys, keys.T @ values)
    scale = np.abs(reference).max()
    assert np.abs(S - reference).max() < 1e-8 * scale
    assert np.abs(by_gram - reference).max() > 1e-8 * scale


def test_delta_overwrites_a_repeated_key(rng):
    key, other = unit(rng.standard_normal((2, 1, 8)))
    values = rng.standard_normal((3, 5))
    keys = np.concatenate([key, other, key])
    for rule, expected in (
        (Delta(), values[2]),
        (Hebbian(), values[0] + values[2] + (key @ other.T)[0, 0] * values[1]),
    ):
        state = rule.write(rule.init(8, 5), keys, values)
        np.testing.assert_allclose(key @ rule.matrix(state), expected[None], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [Delta(), GatedDelta(1.0, 0.99)], ids=str)
def test_nearly_parallel_keys_in_a_chunk_stay_finite_and_equal_the_loop(rule, dtype):
    rng = np.random.default_rng(1)
    keys = unit(rng.standard_normal(16) + 1e-3 * rng.standard_normal((200, 16)))
    values = rng.standard_normal((200, 4))
    state = rule.write(rule.init(16, 4, like=np.empty(0, dtype)), keys.astype(dtype), values.astype(dtype))
    S, _ = by_loop(rule, keys, values)
    assert state.S.dtype == dtype
    assert np.isfinite(state.S).all()
    read, expected = keys @ state.S, keys @ S
    assert np.abs(read - expected).max() < (2e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("rule", [Delta(), GatedDelta(), Oja(0.5), Decay(), GatedDecay()], ids=str)
def test_steps_and_gates_of_each_pair_override_the_constants(rule, rng):
    keys, values = unit(rng.standard_normal((70, 6))), unit(rng.standard_normal((70, 4)))
    given, loop = {}, {}
    if hasattr(rule, "step_size"):
        given["step_size"] = loop["step"] = rng.uniform(0.1, 0.9, 70)
    if not isinstance(rule, Delta | Oja):
        given["log_decay"] = loop["gates"] = -rng.uniform(0, 0.5, (70, 6) if isinstance(rule, GatedDecay) else 70)
    state = rule.write(rule.init(6, 4), keys, values, **given)
    S, z = by_loop(rule, keys, values, **loop)
    np.testing.assert_allclose(state.S, S, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(state.z, z, rtol=1e-10, atol=1e-12)


def test_very_strong_decay_neither_overflows_nor_divides_by_zero(rng):
    keys, values = unit(rng.standard_normal((100, 6))), rng.standard_normal((100, 4))
    gates = np.full(100, -200.0)
    for rule in (Decay(), GatedDelta(1.0, 0.5)):
        state = rule.write(rule.init(6, 4), keys, values, log_decay=gates)
        np.testing.assert_allclose(state.S, np.outer(keys[-1], values[-1]), atol=1e-12)


def test_a_step_that_diverges_is_named(rng):
    keys = 2 * unit(rng.standard_normal((10, 6)))
    with pytest.warns(StabilityWarning, match=r"10 of 10 pairs have step_size \|phi\(k\)\|\^2 >= 2 \(largest 4\)"):
        Delta().write(Delta().init(6, 4), keys, rng.standard_normal((10, 4)))
    with pytest.warns(StabilityWarning, match="largest 2.04"):
        Delta(0.51).write(Delta(0.51).init(6, 4), keys, rng.standard_normal((10, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Delta(0.49).write(Delta(0.49).init(6, 4), keys, rng.standard_normal((10, 4)))


@pytest.mark.parametrize(
    ("rule", "given", "told"),
    [
        (Hebbian(), {"step_size": np.ones(3)}, "Hebbian has no step_size"),
        (Delta(), {"log_decay": np.zeros(3)}, "Delta has no log_decay"),
        (Decay(), {"step_size": np.ones(3)}, "Decay has no step_size"),
        (LeastSquares(), {"step_size": np.ones(3)}, "LeastSquares has no step_size"),
        (Delta(), {"step_size": np.ones(4)}, r"must have shape \(3,\), got \(4,\)"),
    ],
)
def test_a_step_or_decay_that_a_rule_cannot_use_is_refused(rule, given, told):
    with pytest.raises(ValueError, match=told):
        rule.write(rule.init(2, 2), np.ones((3, 2)) / 2, np.ones((3, 2)) / 2, **given)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Delta(0.0), "step_size must be a number above 0"),
        (lambda: Decay(1.5), "rate must be a number above 0, up to 1"),
        (lambda: GatedDelta(1.0, 0.0), "rate must be"),
        (lambda: GatedDecay(temperature=0), "temperature must be"),
        (lambda: LeastSquares(-1), "ridge must be a number of at least 0"),
        (lambda: Oja(-1), "step_size must be"),
    ],
)
def test_constants_out_of_range_are_refused(make, told):
    with pytest.raises(ValueError, match=told):
        make()


@pytest.mark.parametrize("reset", [-np.inf, -3.4e38, -1e17, -1e9])
@pytest.mark.parametrize("rule", [Decay(), GatedDecay(), GatedDelta(0.5, 0.9)], ids=str)
def test_a_gate_that_forgets_all_leaves_the_later_gates_as_they_are(rule, reset, rng):
    keys, values = unit(rng.standard_normal((100, 6))), rng.standard_normal((100, 4))
    gates = np.full((100, 6) if isinstance(rule, GatedDecay) else 100, -0.1)
    gates[40] = reset
    state = rule.write(rule.init(6, 4), keys, values, log_decay=gates)
    fresh = gates[40:].copy()
    fresh[0] = 0.0  # nothing is there to forget
    later = rule.write(rule.init(6, 4), keys[40:], values[40:], log_decay=fresh)
    np.testing.assert_allclose(state.S, later.S, atol=1e-11)
    np.testing.assert_allclose(state.z, later.z, atol=1e-11)
