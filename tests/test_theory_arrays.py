"""Predictions for keys from a file: the moments of the file's own Gram matrix."""

import math

import numpy as np
import pytest

from capmem.ensembles import ArrayKeys, ArrayValues, SphereKeys
from capmem.feature_maps import CosFormer, Dpfp, EluPlusOne, Identity, RandomReLU, ReLU
from capmem.memory import LinearMemory
from capmem.theory import TheoryUnavailable, effective_dimension, moments, predict


@pytest.fixture
def rows(rng):
    return rng.standard_normal((60, 8)) * np.linspace(0.3, 2, 8) + 0.4


@pytest.fixture
def keys(rows, tmp_path):
    np.save(tmp_path / "keys.npy", rows)
    return ArrayKeys(str(tmp_path / "keys.npy"))


def test_moments_are_means_over_the_pairs_of_the_file(rows, keys):
    features = np.maximum(rows, 0)
    own = [float(f @ f) for f in features]
    cross = [float(f @ g) for i, f in enumerate(features) for j, g in enumerate(features) if i != j]
    found = moments(LinearMemory(ReLU()), keys, 8)
    expected = (np.mean(own), np.mean(np.square(own)), np.mean(cross), np.mean(np.square(cross)))
    assert tuple(found) == pytest.approx(expected, rel=1e-12)
    biased = np.sum(own) ** 2 / (np.sum(np.square(own)) + np.sum(np.square(cross)))
    assert effective_dimension(ReLU(), keys, 8) == pytest.approx(np.mean(own) ** 2 / np.mean(np.square(cross)))
    assert abs(biased / effective_dimension(ReLU(), keys, 8) - 1) > 0.02


def test_all_steps_of_the_memory_are_taken(rows, keys):
    memory = LinearMemory(
        EluPlusOne(), key_center="mean", key_norm="l2", key_scale=2.0, feature_center="mean", feature_norm="l2"
    )
    x = rows - rows.mean(axis=0)
    x = 2 * x / np.linalg.norm(x, axis=1, keepdims=True)
    phi = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    phi = phi - phi.mean(axis=0)
    phi = phi / np.linalg.norm(phi, axis=1, keepdims=True)
    gram = phi @ phi.T
    off = gram[~np.eye(60, dtype=bool)]
    expected = (1, 1, off.mean(), np.mean(off**2))
    assert tuple(moments(memory, keys, 8)) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("phi", [Identity(), Dpfp(2)])
def test_raw_error_is_the_mean_over_random_subsets(rows, keys, phi):
    n, errors = 12, []
    features = phi(rows)
    for trial in range(4000):
        chosen = features[np.random.default_rng([2, trial]).permutation(60)[:n]]
        gram = chosen @ chosen.T
        own = np.diag(gram)
        # zero-mean values average to this, whatever their law
        errors.append(np.mean((own - 1) ** 2 + np.sum(gram**2, axis=1) - own**2))
    found = predict(LinearMemory(phi), keys, 8, 8, n)
    error = np.std(errors) / math.sqrt(4000)
    assert abs(found.relative_squared_error - np.mean(errors)) < 4 * error
    assert found.sources["relative_squared_error"].exact
    as_if_independent = predict(LinearMemory(phi), SphereKeys(), 8, 8, n).relative_squared_error
    assert abs(as_if_independent - np.mean(errors)) > 20 * error


def test_optimal_error_varies_less_the_more_of_the_file_is_stored(rows, keys):
    for n in (6, 50):
        errors = []
        for trial in range(1500):
            rng = np.random.default_rng([3, trial])
            chosen = rows[rng.permutation(60)[:n]]
            values = rng.standard_normal((n, 32))
            values *= math.sqrt(32) / np.linalg.norm(values, axis=1, keepdims=True)
            read = chosen @ (chosen.T @ values)
            errors.append(1 - np.sum(read * values) ** 2 / (np.sum(read**2) * np.sum(values**2)))
        found = predict(LinearMemory(Identity()), keys, 8, 32, n).scale_optimal_error
        assert abs(found / np.mean(errors) - 1) < 0.03
        m1, square, _, cross = moments(LinearMemory(Identity()), keys, 8)
        ratio_of_means = 1 - m1**2 / (square + (n - 1) * cross)
        assert n == 50 or ratio_of_means > 1.06 * np.mean(errors)


def test_random_maps_and_places_are_refused(keys):
    for phi, told in ((RandomReLU(16), "random map"), (CosFormer(64), "depends on the place")):
        with pytest.raises(TheoryUnavailable, match=told):
            predict(LinearMemory(phi), keys, 8, 8, 10)


def test_rows_stored_in_the_given_order_count_alone(rows, keys):
    given = ArrayKeys(keys.path, order="given")
    gram = rows[:5] @ rows[:5].T
    own = np.diag(gram)
    expected = np.mean((own - 1) ** 2 + np.sum(gram**2, axis=1) - own**2)
    found = predict(LinearMemory(Identity()), given, 8, 8, 5)
    assert found.relative_squared_error == pytest.approx(expected, rel=1e-10)


def test_a_changed_file_gives_new_moments(rows, keys):
    before = moments(LinearMemory(Identity()), keys, 8).self_mean
    np.save(keys.path, np.concatenate([2 * rows, rows[:1]]))
    assert moments(LinearMemory(Identity()), keys, 8).self_mean > 3 * before


def test_a_long_file_is_sampled_and_says_so(rng, tmp_path):
    np.save(tmp_path / "long.npy", rng.standard_normal((5000, 4)))
    found = predict(LinearMemory(Identity()), ArrayKeys(str(tmp_path / "long.npy")), 4, 4, 100)
    source = found.sources["relative_squared_error"]
    assert not source.exact
    assert "4096 of 5000 rows" in source.known_error
    assert found.relative_squared_error == pytest.approx(24 - 8 + 1 + 99 * 4, rel=0.05)


def test_what_the_file_cannot_give_is_refused_with_numbers(rows, keys, tmp_path):
    with pytest.raises(TheoryUnavailable, match="holds 60 keys, and num_pairs is 61"):
        predict(LinearMemory(Identity()), keys, 8, 8, 61)
    with pytest.raises(TheoryUnavailable, match="8 coordinates, and key_dim is 9"):
        predict(LinearMemory(Identity()), keys, 9, 8, 5)
    with pytest.raises(TheoryUnavailable, match="values of a file are not independent"):
        predict(LinearMemory(Identity()), SphereKeys(), 8, 8, 5, values=ArrayValues(keys.path))
