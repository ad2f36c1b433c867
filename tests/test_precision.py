"""A narrow state: rounding against the formats themselves, known accumulation limits, and the bytes it takes."""

import math

import ml_dtypes
import numpy as np
import pytest

from capmem import LinearMemory, evaluate
from capmem.ensembles import GaussianKeys, SphereKeys, SphereValues
from capmem.feature_maps import EluPlusOne, Identity
from capmem.memory import SoftmaxMemory
from capmem.precision import FORMATS, held_bytes, round_to
from capmem.write_rules import Delta, LeastSquares

ORACLES = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rounding_is_that_of_the_format(name, dtype, rng):
    form = FORMATS[name]
    exponents = rng.integers(form.least_exponent - form.bits - 2, math.frexp(form.largest)[1] + 1, 4000)
    x = np.ldexp(rng.uniform(-1, 1, 4000), exponents)
    ties = np.ldexp(2.0 ** (form.bits - 1) + np.arange(8) + 0.5, 3 - form.bits)
    x = np.concatenate([x, ties, -ties, [0.0, -0.0, 1.0, form.largest, 1e-30]]).astype(dtype)[:, None]
    expected = x.astype(ORACLES[name]).astype(dtype)
    np.testing.assert_array_equal(round_to(x, name), expected)


@pytest.mark.parametrize("name", FORMATS)
def test_a_rounded_number_stays_as_it_is(name, rng):
    once = round_to(rng.standard_normal((50, 3)), name)
    np.testing.assert_array_equal(round_to(once, name), once)


def test_int8_has_one_scale_a_column(rng):
    x = rng.standard_normal((200, 3)) * [1.0, 100.0, 1e-3]
    rounded = round_to(x, "int8")
    step = np.abs(x).max(axis=0) / 127
    assert (np.abs(rounded - x) <= step / 2 * (1 + 1e-12)).all()
    np.testing.assert_allclose(rounded / step, np.round(rounded / step), atol=1e-9)
    assert (round_to(np.zeros((4, 2)), "int8") == 0).all()


@pytest.mark.parametrize(("name", "stop"), [("bfloat16", 256), ("float16", 2048), ("float8_e4m3", 16)])
def test_repeated_plus_one_stops_where_it_is_known_to(name, stop):
    memory = LinearMemory(Identity(), state_dtype=name)
    ones = np.ones((stop + 100, 1))
    state = memory.write(memory.init(1, 1), ones, ones)
    assert state.rule.S.item() == state.rule.z.item() == stop


def normaliser_share(name, n, d=16):
    keys = GaussianKeys().sample(np.random.default_rng(0), n, d)
    memory = LinearMemory(EluPlusOne(), state_dtype=name)
    exact = LinearMemory(EluPlusOne())
    z = [m.write(m.init(d, 1), keys, np.zeros((n, 1))).rule.z.sum() for m in (memory, exact)]
    return z[0] / z[1]


@pytest.mark.parametrize(
    ("name", "n", "share"), [("bfloat16", 4096, 0.221), ("bfloat16", 1024, 0.728), ("float16", 4096, 0.909)]
)
def test_the_normaliser_of_elu_plus_one_loses_what_it_is_known_to_lose(name, n, share):
    assert normaliser_share(name, n) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("every", "extra", "tolerance"), [pytest.param(1, 0.32, 0.05, marks=pytest.mark.slow), (64, 0.006, 0.003)]
)
def test_a_bfloat16_state_adds_the_known_read_error(every, extra, tolerance):
    d, n = 64, 4096
    keys = SphereKeys().sample(np.random.default_rng([0, 0]), n, d)
    values = SphereValues().sample(np.random.default_rng([0, 1]), n, d)
    retrieved = []
    for name in (None, "bfloat16"):
        memory = LinearMemory(Identity(), state_dtype=name, round_every=every)
        retrieved.append(memory.read(memory.write(memory.init(d, d), keys, values), keys))
    added = ((retrieved[1] - retrieved[0]) ** 2).sum() / (values**2).sum()
    assert added == pytest.approx(extra, abs=tolerance)


@pytest.mark.parametrize("rule", [None, Delta(0.5), LeastSquares(0.1)], ids=str)
@pytest.mark.parametrize("every", [1, 7])
def test_rounding_does_not_depend_on_how_writes_are_cut(rule, every, rng):
    keys, values = rng.standard_normal((40, 4)) / 4, rng.standard_normal((40, 3))
    fields = {} if rule is None else {"write_rule": rule}
    memory = LinearMemory(Identity(), state_dtype="float16", round_every=every, **fields)
    whole = memory.write(memory.init(4, 3), keys, values)
    state = memory.init(4, 3)
    for a, b in ((0, 3), (3, 20), (20, 21), (21, 40)):
        state = memory.write(state, keys[a:b], values[a:b])
    for name in memory.write_rule.shapes(4, 3):
        np.testing.assert_allclose(getattr(state.rule, name), getattr(whole.rule, name), rtol=2e-3, atol=1e-3)
    if every == 1:
        np.testing.assert_array_equal(memory.write_rule.matrix(state.rule), memory.write_rule.matrix(whole.rule))
    plain = LinearMemory(Identity(), **fields)
    exact = plain.write(plain.init(4, 3), keys, values)
    assert not np.array_equal(exact.rule.z, whole.rule.z)


@pytest.mark.parametrize("rule", [Delta(), LeastSquares()], ids=str)
@pytest.mark.parametrize("name", [None, *FORMATS, "int8"])
def test_state_bytes_are_those_of_what_is_held(rule, name, rng):
    memory = LinearMemory(Identity(), write_rule=rule, state_dtype=name)
    keys = rng.standard_normal((5, 6)) / 4
    state = memory.write(memory.init(6, 4), keys, rng.standard_normal((5, 4)))
    held = {id(a): a for a in vars(state.rule).values()}.values()
    size = memory.state_size(6, 4, dtype="float64")
    assert size.elements == sum(a.size for a in held)
    if name is None:
        assert size.bytes == sum(a.nbytes for a in held)
    elif name != "int8":
        item = np.dtype(np.float64 if name == "float64" else ORACLES[name]).itemsize
        assert size.bytes == sum(a.size for a in held) * item
    else:
        columns = sum(a.shape[1] if a.ndim == 2 else 1 for a in held)
        assert size.bytes == sum(a.size for a in held) + 4 * columns


def test_a_narrower_state_reads_worse_in_order(rng):
    keys = SphereKeys().sample(rng, 32, 32)
    values = SphereValues().sample(rng, 32, 32)
    errors = [
        evaluate(LinearMemory(Identity(), write_rule=LeastSquares(), state_dtype=name), keys, values)[0][
            "scale_optimal_error"
        ]
        for name in ("float64", "float32", "float16", "bfloat16")
    ]
    assert errors == sorted(errors) and errors[-1] > 10 * errors[1]


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="state_dtype must be one of float64, .* or null, got 'fp16'"):
        LinearMemory(Identity(), state_dtype="fp16")
    with pytest.raises(ValueError, match="round_every must be an integer of at least 1, got 0"):
        LinearMemory(Identity(), round_every=0)
    assert held_bytes(3, 2, "int8") == 6 + 8
    assert SoftmaxMemory().state_size(2, 2, 3).bytes == 48


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_infinity_is_what_the_format_has_for_it():
    x = np.array([[np.inf], [-np.inf], [500.0], [np.nan]])
    assert np.isnan(round_to(x, "float8_e4m3")).all()
    np.testing.assert_array_equal(round_to(x, "float16")[:3, 0], [np.inf, -np.inf, 500])


@pytest.mark.parametrize(("name", "ridge"), [("int8", 1e-6), ("float8_e4m3", 1e-8)])
def test_a_ridge_that_a_narrow_state_cannot_hold_still_reads(name, ridge, rng):
    memory = LinearMemory(Identity(), write_rule=LeastSquares(ridge), state_dtype=name)
    keys, values = SphereKeys().sample(rng, 16, 64), rng.standard_normal((16, 16))
    assert evaluate(memory, keys, values)[0]["scale_optimal_error"] < 0.5


def test_evaluate_counts_the_bytes_of_the_narrow_state(rng):
    memory = LinearMemory(Identity(), state_dtype="int8")
    record = evaluate(memory, rng.standard_normal((20, 8)), rng.standard_normal((20, 5)))[0]
    assert record["state_bytes"] == memory.state_size(8, 5).bytes == 8 * 5 + 4 * 5 + 8 + 4


def test_a_state_wider_than_the_pairs_is_refused():
    with pytest.raises(ValueError, match="state_dtype must be no wider than the pairs"):
        LinearMemory(Identity(), state_dtype="float64").init(4, 3, like=np.empty(0, np.float32))
