"""Kernel moments that noisy cues meet, through any map: closed forms, simulations, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

from capmem.cues import noisy_cues
from capmem.ensembles import ArrayKeys, EquicorrelatedKeys, GaussianKeys, SphereKeys
from capmem.feature_maps import (
    CosFormer,
    Dpfp,
    EluPlusOne,
    Identity,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    ReLU,
    SiLU,
    SoftmaxFeatures,
    SquaredReLU,
    Taylor,
)
from capmem.memory import LinearMemory
from capmem.theory import TheoryUnavailable, moments
from capmem.theory.cue_rows import cue_rows
from capmem.theory.cues import cue_moments
from capmem.theory.dpfp import dpfp_cue
from capmem.theory.elementwise import elementwise_cue
from capmem.theory.laws import key_law

EXACT_CUES = [EluPlusOne(), ReLU(), SiLU(), SquaredReLU()]


@pytest.mark.parametrize("keys", [GaussianKeys(), SphereKeys()], ids=str)
@pytest.mark.parametrize("phi", EXACT_CUES, ids=str)
def test_cues_without_noise_have_the_moments_of_keys(phi, keys):
    for d, center in ((5, "none"), (32, "none"), (32, "mean")):
        memory = LinearMemory(phi, key_norm="none", feature_center=center)
        found = elementwise_cue(memory, key_law(memory, keys, d), d, 1.0)
        expected = moments(memory, keys, d)
        assert found[0] == pytest.approx(expected.self_mean, rel=1e-12)
        assert found[1] == pytest.approx(expected.self_square, rel=4e-4)


@pytest.mark.parametrize("nu", [1, 3])
def test_dpfp_cues_without_noise_have_the_moments_of_keys(nu):
    memory = LinearMemory(Dpfp(nu))
    for keys in (GaussianKeys(), SphereKeys()):
        found = dpfp_cue(memory, key_law(memory, keys, 16), 16, 1.0)
        expected = moments(memory, keys, 16)
        assert found == pytest.approx((expected.self_mean, expected.self_square), rel=1e-4)


@pytest.mark.parametrize("c", [-1.0, -0.3, 0.0, 0.8])
def test_the_zonal_kernel_of_a_cue_is_that_at_its_cosine(c):
    d = 16
    found = cue_moments(LinearMemory(Polynomial(3)), SphereKeys(), d, c).average()
    assert (found.self_mean, found.self_square) == pytest.approx((c**3, c**6), abs=1e-15)
    found = cue_moments(LinearMemory(Taylor(2)), SphereKeys(), d, c).average()
    u = c / math.sqrt(d)
    assert found.self_mean == pytest.approx(1 + u + u**2 / 2)
    found = cue_moments(LinearMemory(RandomFourierFeatures(64)), SphereKeys(), d, c).average()
    assert found.self_mean == pytest.approx(math.exp(c - 1))
    variance = (1 - math.exp(-2 * (1 - c))) ** 2 / 128
    assert found.self_square == pytest.approx(math.exp(2 * c - 2) + variance)


@pytest.mark.parametrize("c", [-0.5, 0.0, 0.4, 0.95])
def test_the_mean_kernel_of_a_relu_cue_is_the_arc_cosine_kernel(c):
    d = 24
    dual = d * (math.sqrt(1 - c * c) + (math.pi - math.acos(c)) * c) / (2 * math.pi)
    for keys, scale in ((GaussianKeys(), 1.0), (SphereKeys(), "sqrt_dim")):
        found = cue_moments(LinearMemory(ReLU(), key_scale=scale), keys, d, c).average()
        assert found.self_mean == pytest.approx(dual, rel=1e-9)
    assert cue_moments(LinearMemory(ReLU()), SphereKeys(), d, -1.0).average().self_mean == pytest.approx(0, abs=1e-15)


def test_two_places_of_a_frame_share_its_constraints():
    rows = cue_rows(6, 0.3, 1.0, True)

    def product(key, cue):
        return key * cue

    def square(key, cue):
        return key**2

    d, c = 6, 0.3
    assert rows.one(square) == pytest.approx(1 / d, rel=1e-12)
    assert rows.two(square, square) == pytest.approx(1 / (d * (d + 2)), rel=1e-3)
    whole = d * rows.one(lambda key, cue: (key * cue) ** 2) + d * (d - 1) * rows.two(product, product)
    assert whole == pytest.approx(c**2, rel=1e-3)  # (q . k)^2 is c^2 in every draw


def simulated(memory, keys, d, c, trials, pairs=1000):
    """Mean and standard error over trials of m1, M2, mu, m2 of the library's own cues."""
    rows = []
    for trial in range(trials):
        rng = np.random.default_rng([31, trial])
        stored = keys.sample(rng, pairs, d)
        asked = noisy_cues(rng, stored, c)
        phi = memory.feature_map
        drawn = replace(memory, feature_map=replace(phi, seed=trial)) if hasattr(phi, "seed") else memory
        means = drawn.calibrate(keys.sample(np.random.default_rng([32, trial]), 4000, d)) if memory.centers else {}
        state = drawn.init(d, 1, **means)
        left, right = drawn.features(state, asked), drawn.features(state, stored)
        own, cross = np.sum(left * right, axis=1), left[:150] @ right[150:].T
        rows.append([np.mean(x) for x in (own, own**2, cross, cross**2)])
    return np.mean(rows, axis=0), np.std(rows, axis=0) / math.sqrt(trials)


SIMULATED = [
    (LinearMemory(ReLU()), GaussianKeys()),
    (LinearMemory(EluPlusOne(), key_scale=3.0), SphereKeys()),
    (LinearMemory(SiLU(), feature_center="mean"), GaussianKeys()),
    (LinearMemory(Dpfp(2), key_norm="l2"), GaussianKeys()),
    (LinearMemory(Taylor(2), feature_center="mean"), GaussianKeys()),
    (LinearMemory(Polynomial(2)), GaussianKeys()),
    (LinearMemory(RandomReLU(16)), GaussianKeys()),
    (LinearMemory(PositiveRandomFeatures(16)), SphereKeys()),
    (LinearMemory(PositiveRandomFeatures(16, hyperbolic=True)), SphereKeys()),
]


@pytest.mark.parametrize("memory, keys", SIMULATED, ids=lambda x: type(getattr(x, "feature_map", x)).__name__)
def test_moments_of_cues_agree_with_the_cues_that_experiments_draw(memory, keys):
    d, c = 8, 0.6
    mean, error = simulated(memory, keys, d, c, 40)
    found = np.array(cue_moments(memory, keys, d, c).average())
    slack = 4.5 * error + 2e-3 * np.abs(mean)
    assert np.all(np.abs(found - mean)[[0, 1, 3]] < slack[[0, 1, 3]])
    exact = np.array(moments(memory, keys, d))
    assert not np.all(np.abs(exact - mean)[:2] < slack[:2])  # a cue is not its key


def test_cues_of_correlated_keys_meet_the_others_at_random_through_the_identity():
    d, c, keys = 8, 0.5, EquicorrelatedKeys(0.7)
    rows = []
    for trial in range(400):
        rng = np.random.default_rng([33, trial])
        stored = keys.sample(rng, 60, d)
        gram = noisy_cues(rng, stored, c) @ stored.T
        off = gram[~np.eye(60, dtype=bool)]
        rows.append([off.mean(), np.mean(off**2)])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / math.sqrt(400)
    plain = moments(LinearMemory(Identity()), keys, d)
    found = cue_moments(LinearMemory(Identity()), keys, d, c).average()
    assert (found.self_mean, found.self_square) == pytest.approx((c, c * c))
    assert abs(found.cross_mean - mean[0]) < 4 * error[0]
    assert abs(found.cross_square - mean[1]) < 4 * error[1]
    assert abs(c**2 * plain.cross_square - mean[1]) > 6 * error[1]  # without what is across the key
    assert abs(plain.cross_square - mean[1]) > 6 * error[1]


def test_isotropic_cues_of_the_identity_have_the_law_of_keys():
    for keys in (GaussianKeys(), SphereKeys()):
        plain = moments(LinearMemory(Identity()), keys, 16)
        found = cue_moments(LinearMemory(Identity(), feature_center="mean"), keys, 16, 0.3).average()
        expected = (0.3 * plain.self_mean, 0.09 * plain.self_square, 0.0, plain.cross_square)
        # on Gaussian keys |q| = |k|, and E |k|^2 |k'|^2 is (E |k|^2)^2
        assert tuple(found) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_optimal_error_of_noisy_cues_through_relu_is_the_ratio_of_the_moments():
    d, n, c, found = 32, 64, 0.8, []
    for trial in range(80):
        rng = np.random.default_rng([6, trial])
        keys, values = rng.standard_normal((2, n, d))
        asked = np.maximum(noisy_cues(rng, keys, c), 0)
        read = asked @ (np.maximum(keys, 0).T @ values)
        found.append(1 - np.sum(read * values) ** 2 / (np.sum(read**2) * np.sum(values**2)))
    error = np.std(found) / math.sqrt(80)
    m1, M2, _, m2 = cue_moments(LinearMemory(ReLU()), GaussianKeys(), d, c).average()
    assert abs(1 - m1**2 / (M2 + (n - 1) * m2) - np.mean(found)) < 4 * error + 0.003
    m1, M2, _, m2 = moments(LinearMemory(ReLU()), GaussianKeys(), d)
    assert abs(1 - m1**2 / (M2 + (n - 1) * m2) - np.mean(found)) > 6 * error


def test_the_place_of_a_cue_is_that_of_its_key():
    found = cue_moments(LinearMemory(CosFormer(64)), SphereKeys(), 16, 0.5, 32).average()
    relu = cue_moments(LinearMemory(ReLU()), SphereKeys(), 16, 0.5).average()
    assert found[:2] == pytest.approx(relu[:2])
    assert found.cross_square < 0.97 * relu.cross_square


@pytest.mark.parametrize(
    ("memory", "keys", "d", "told"),
    [
        (LinearMemory(ReLU()), EquicorrelatedKeys(0.5), 16, "correlated"),
        (LinearMemory(ReLU(), key_center="mean"), EquicorrelatedKeys(0.5, unit_norm=False), 16, "correlated"),
        (LinearMemory(Identity(), key_center="mean"), EquicorrelatedKeys(0.5), 16, "correlated"),
        (LinearMemory(ReLU()), SphereKeys(), 3, "below d"),
        (LinearMemory(Identity()), SphereKeys(), 1, "d = 1"),
        (LinearMemory(Dpfp(), feature_center="mean"), SphereKeys(), 16, "centred"),
        (LinearMemory(RandomReLU(8), feature_center="mean"), SphereKeys(), 16, "centred"),
        (LinearMemory(SoftmaxFeatures()), SphereKeys(), 16, "SoftmaxFeatures"),
    ],
    ids=str,
)
def test_cues_without_a_formula_are_refused_with_the_reason(memory, keys, d, told):
    with pytest.raises(TheoryUnavailable, match=told):
        cue_moments(memory, keys, d, 0.7)


def test_cues_of_keys_from_a_file_are_refused(tmp_path):
    np.save(tmp_path / "keys.npy", np.eye(16))
    with pytest.raises(TheoryUnavailable, match="file"):
        cue_moments(LinearMemory(ReLU()), ArrayKeys(str(tmp_path / "keys.npy")), 16, 0.7)
