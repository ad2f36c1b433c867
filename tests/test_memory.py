"""The memory against the quadratic form, and what centring, norms and scale do to keys."""

import numpy as np
import pytest

from capmem import LinearMemory
from capmem.feature_maps import Dpfp, EluPlusOne, Identity, ReLU
from capmem.readouts import Linear, Normalized


def store(memory, keys, values, **means):
    return memory.write(memory.init(keys.shape[-1], values.shape[-1], like=keys, **means), keys, values)


@pytest.mark.parametrize("phi", [Identity(), ReLU(), EluPlusOne(), Dpfp(2)], ids=str)
def test_reading_is_the_kernel_times_the_values(phi, rng):
    keys, values, queries = rng.standard_normal((20, 6)), rng.standard_normal((20, 4)), rng.standard_normal((7, 6))
    memory = LinearMemory(phi)
    expected = phi.kernel(queries, keys) @ values
    np.testing.assert_allclose(memory.read(store(memory, keys, values), queries), expected, rtol=1e-11, atol=1e-11)


def test_orthonormal_keys_are_read_exactly(rng):
    keys, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    values = rng.standard_normal((8, 5))
    memory = LinearMemory(Identity())
    np.testing.assert_allclose(memory.read(store(memory, keys, values), keys), values, atol=1e-12)


def test_a_third_key_mixes_in_though_nothing_was_overwritten():
    c = 0.6
    keys = np.array([[1.0, 0, 0], [0, 1, 0], [c, 0, np.sqrt(1 - c**2)]])
    values = np.array([[1.0, 2], [3, 4], [5, 6]])
    memory = LinearMemory(Identity())
    retrieved = memory.read(store(memory, keys, values), keys[:2])
    np.testing.assert_allclose(retrieved, [values[0] + c * values[2], values[1]], atol=1e-15)


def test_a_normalized_readout_is_a_weighted_mean_of_the_values(rng):
    keys, values = rng.standard_normal((20, 6)), rng.standard_normal((20, 4))
    phi = EluPlusOne()
    memory = LinearMemory(phi, readout=Normalized())
    weights = phi.kernel(keys, keys)
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(memory.read(store(memory, keys, values), keys), weights @ values, rtol=1e-11)


def test_a_normalized_readout_of_an_even_split_write_still_knows_z(rng):
    keys, values = np.abs(rng.standard_normal((20, 6))), rng.standard_normal((20, 4))
    memory = LinearMemory(ReLU(), readout=Normalized())
    state = memory.init(6, 4)
    for a in range(0, 20, 5):
        state = memory.write(state, keys[a : a + 5], values[a : a + 5])
    whole = memory.read(store(memory, keys, values), keys)
    np.testing.assert_allclose(memory.read(state, keys), whole, rtol=1e-12)
    assert state.num_pairs == 20


def test_denominators_that_are_not_positive_are_counted(rng):
    keys = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    memory = LinearMemory(Identity(), readout=Normalized())
    state = store(memory, keys, np.ones((3, 2)))  # z = (0, 1)
    queries = np.array([[1.0, 0.0], [0.0, -1.0], [0.0, 2.0]])  # denominators 0, -1, 2
    retrieved, met = memory.read(state, queries, diagnostics=True)
    assert (met.nonpositive_denominators, met.zero_denominators) == (2, 1)
    np.testing.assert_array_equal(retrieved[0], 0)


def test_centring_by_a_given_mean_takes_it_from_keys_and_queries(rng):
    keys, values = rng.standard_normal((20, 6)) + 3, rng.standard_normal((20, 4))
    mean = keys.mean(axis=0)
    centred, plain = LinearMemory(Identity(), key_center="mean"), LinearMemory(Identity())
    expected = plain.read(store(plain, keys - mean, values), keys - mean)
    np.testing.assert_allclose(centred.read(store(centred, keys, values), keys), expected, atol=1e-12)
    given = store(centred, keys, values, **centred.calibrate(keys))
    np.testing.assert_allclose(centred.read(given, keys), expected, atol=1e-12)


def test_feature_centring_takes_the_mean_feature(rng):
    keys, values = rng.standard_normal((20, 6)), rng.standard_normal((20, 4))
    memory = LinearMemory(EluPlusOne(), feature_center="mean")
    features = EluPlusOne()(keys)
    features = features - features.mean(axis=0)
    expected = features @ (features.T @ values)
    np.testing.assert_allclose(memory.read(store(memory, keys, values), keys), expected, atol=1e-11)


def test_centring_without_a_mean_refuses_a_second_write(rng):
    keys, values = rng.standard_normal((4, 6)), rng.standard_normal((4, 4))
    memory = LinearMemory(Identity(), key_center="mean")
    state = store(memory, keys, values)
    with pytest.raises(ValueError, match="takes no second one"):
        memory.write(state, keys, values)
    given = memory.write(store(memory, keys, values, key_mean=keys[0]), keys, values)
    assert given.num_pairs == 8


@pytest.mark.parametrize("norm", ["l2", "sum"])
def test_norms_divide_each_row_and_count_rows_without_one(norm, rng):
    keys = np.abs(rng.standard_normal((5, 4)))
    keys[2] = 0
    memory = LinearMemory(Identity(), key_norm=norm)
    state = store(memory, keys, rng.standard_normal((5, 3)))
    features = memory.features(state, keys)
    size = np.linalg.norm(features, axis=1) if norm == "l2" else features.sum(axis=1)
    np.testing.assert_allclose(size, [1, 1, 0, 1, 1], atol=1e-12)
    assert state.zero_rows == 1


def test_steps_come_in_the_stated_order(rng):
    keys = rng.standard_normal((9, 4)) + 1
    memory = LinearMemory(
        ReLU(), key_center="mean", key_norm="l2", key_scale="sqrt_dim", feature_center="mean", feature_norm="l2"
    )
    state = memory.write(memory.init(4, 2), keys, rng.standard_normal((9, 2)))
    x = keys - keys.mean(axis=0)
    x = 2 * x / np.linalg.norm(x, axis=1, keepdims=True)
    f = np.maximum(x, 0) - np.maximum(x, 0).mean(axis=0)
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    np.testing.assert_allclose(memory.features(state, keys), f, atol=1e-12)


def test_batches_are_memories_of_their_own(rng):
    keys, values = rng.standard_normal((2, 3, 10, 6)), rng.standard_normal((2, 3, 10, 4))
    memory = LinearMemory(Dpfp(1), readout=Normalized())
    state = memory.write(memory.init(6, 4, batch=(2, 3)), keys, values)
    one = memory.read(store(memory, keys[1, 2], values[1, 2]), keys[1, 2])
    np.testing.assert_allclose(memory.read(state, keys)[1, 2], one, rtol=1e-12)


@pytest.mark.parametrize("center", ["none", "mean"])
def test_state_size_is_what_is_held(center, rng):
    keys, values = rng.standard_normal((8, 6)).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    memory = LinearMemory(Dpfp(2), key_center=center, feature_center=center)
    state = store(memory, keys, values)
    held = [a for a in (state.rule.S, state.rule.z, state.key_mean, state.feature_mean) if a is not None]
    size = memory.state_size(6, 4, dtype="float32")
    assert size.elements == sum(a.size for a in held)
    assert size.bytes == sum(a.nbytes for a in held)


@pytest.mark.parametrize(
    "fields",
    [{"key_center": "median"}, {"key_norm": "l1"}, {"feature_norm": 2}, {"key_scale": 0}, {"key_scale": "sqrt"}],
)
def test_a_choice_that_does_not_exist_is_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        LinearMemory(Identity(), **fields)


def test_shapes_that_do_not_fit_are_refused(rng):
    memory = LinearMemory(Identity(), readout=Linear())
    state = memory.init(6, 4)
    with pytest.raises(ValueError, match="same pairs"):
        memory.write(state, np.ones((3, 6)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="last axis 4"):
        memory.write(state, np.ones((3, 6)), np.ones((3, 5)))
    with pytest.raises(ValueError, match="the state holds 6"):
        memory.read(memory.write(state, np.ones((3, 6)), np.ones((3, 4))), np.ones((3, 5)))
    with pytest.raises(ValueError, match="key_center is 'none'"):
        memory.init(6, 4, key_mean=np.ones(6))


def test_features_are_centred_after_keys_are_by_the_given_mean(rng):
    keys, mean = rng.standard_normal((9, 4)) + 1, rng.standard_normal(4)
    memory = LinearMemory(ReLU(), key_center="mean", feature_center="mean")
    state = store(memory, keys, rng.standard_normal((9, 2)), key_mean=mean)
    expected = np.maximum(keys - mean, 0).mean(axis=0)
    np.testing.assert_allclose(state.feature_mean, expected, atol=1e-12)
    np.testing.assert_array_equal(state.key_mean, mean)


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_norms_do_not_over_or_underflow(scale, rng):
    keys, values = rng.standard_normal((9, 4)), rng.standard_normal((9, 2))
    memory = LinearMemory(Identity(), key_norm="l2")
    features = memory.features(store(memory, scale * keys, values), scale * keys)
    np.testing.assert_allclose(features, keys / np.linalg.norm(keys, axis=1, keepdims=True), rtol=1e-12)


def test_a_write_must_fit_the_state(rng):
    memory = LinearMemory(Identity())
    with pytest.raises(ValueError, match="the state holds 4 features"):
        memory.write(memory.init(4, 3), np.ones((5, 1)), np.ones((5, 3)))
    with pytest.raises(ValueError, match="batch axes"):
        memory.write(memory.init(4, 3), np.ones((2, 5, 4)), np.ones((2, 5, 3)))
