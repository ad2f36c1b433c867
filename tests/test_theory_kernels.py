"""Kernel moments of zonal, polynomial, random and positional maps: published tables, closed forms, simulations."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from capmem.ensembles import ArrayKeys, EquicorrelatedKeys, GaussianKeys, SphereKeys
from capmem.feature_maps import (
    CosFormer,
    Dpfp,
    EluPlusOne,
    Exp,
    Identity,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    ReLU,
    SiLU,
    Softplus,
    SquaredReLU,
    Taylor,
)
from capmem.feature_maps._directions import haar_matrices
from capmem.memory import LinearMemory
from capmem.theory import TheoryUnavailable, effective_dimension, moments, trial_moments
from capmem.theory.cosformer import place_weights
from capmem.theory.kernels import KERNELS
from capmem.theory.laws import KeyLaw
from capmem.theory.polynomial import polynomial_moments
from capmem.theory.random_maps import random_moments

# D_eff and centred D_eff at d = 64 on N(0, 1) keys and on unit keys; None: refused
TABLE = [
    (Identity(), 64.0, 64.0, 64.0, 64.0),
    (ReLU(), 8.67, 64.0, 8.67, 63.95),
    (SquaredReLU(), 23.27, 64.0, 23.27, 63.84),
    (EluPlusOne(), 2.09, 64.0, 1.03, 64.0),
    (Exp(), 6.72, 64.0, 1.03, 64.0),
    (Softplus(), 1.98, 64.0, 1.016, 64.0),
    (SiLU(), 33.56, 64.0, 63.94, 64.0),
    (Dpfp(1), 52.14, 110.9, 52.14, 110.7),
    (Dpfp(2), 62.56, 177.9, 62.56, 177.7),
    (Dpfp(3), 67.02, 222.9, 67.02, 222.7),
    (Taylor(2), 467.5, 1087.8, 1.28, 72.1),
    (Polynomial(2), 1408, 2080, 1408, 2079),
    (RandomReLU(256), 9.05, 80.4, 9.05, 80.1),
    (RandomFourierFeatures(256), 7.09, 130.0, 7.09, 130.0),
    (PositiveRandomFeatures(256), None, None, 1.28, 69.3),
    (PositiveRandomFeatures(256, hyperbolic=True), None, None, 1.28, 71.6),
    (PositiveRandomFeatures(256, orthogonal=False), None, None, 1.28, 56.1),
]


@pytest.mark.parametrize("phi, gaussian, gaussian_centred, unit, unit_centred", TABLE, ids=lambda x: str(x)[:40])
def test_effective_dimensions_of_all_maps_are_those_of_the_table(phi, gaussian, gaussian_centred, unit, unit_centred):
    for keys, plain, centred in ((GaussianKeys(), gaussian, gaussian_centred), (SphereKeys(), unit, unit_centred)):
        for center, expected in (("none", plain), ("mean", centred)):
            if expected is None:
                with pytest.raises(TheoryUnavailable, match="unseen"):
                    effective_dimension(phi, keys, 64, feature_center=center)
            else:
                found = effective_dimension(phi, keys, 64, feature_center=center)
                assert found == pytest.approx(expected, rel=1e-3, abs=0.006)


@pytest.mark.parametrize("d", [4, 16, 64])
def test_taylor_moments_are_the_closed_forms(d):
    found = moments(LinearMemory(Taylor(2)), GaussianKeys(), d)
    assert found.self_mean == pytest.approx(1 + math.sqrt(d) + (d + 2) / 2)
    assert (found.cross_mean, found.cross_square) == pytest.approx((1.5, 3.75 + 1.5 / d))
    s = 1.7 / math.sqrt(d)  # kernel 1 + s t + (s t)^2 / 2 on unit keys of this scale
    found = moments(LinearMemory(Taylor(2), key_scale=math.sqrt(1.7)), SphereKeys(), d)
    expected = (1 + s + s**2 / 2, 1 + s**2 / (2 * d), 1 + 2 * s**2 / d + 3 * s**4 / (4 * d * (d + 2)))
    assert (found.self_mean, found.cross_mean, found.cross_square) == pytest.approx(expected)
    first = moments(LinearMemory(Taylor(1)), GaussianKeys(), d)
    assert tuple(first) == pytest.approx((1 + math.sqrt(d), 1 + 2 * math.sqrt(d) + d + 2, 1.0, 2.0))


@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("d", [4, 16, 64])
def test_monomial_moments_are_the_double_factorials(d, p):
    odd = math.prod(range(1, 2 * p, 2))
    rising = math.prod(d + 2 * i for i in range(p))  # E |x|^2p of N(0, I)
    sphere = moments(LinearMemory(Polynomial(p)), SphereKeys(), d)
    assert sphere.cross_square == pytest.approx(odd / rising)
    assert sphere.self_square == pytest.approx(1)
    gaussian = moments(LinearMemory(Polynomial(p)), GaussianKeys(), d)
    assert gaussian.self_mean == pytest.approx(rising)
    assert gaussian.self_square == pytest.approx(math.prod(d + 2 * i for i in range(2 * p)))
    assert gaussian.cross_square == pytest.approx(odd * rising)


@pytest.mark.parametrize("center, norm", [("none", "none"), ("mean", "none"), ("none", "l2"), ("mean", "l2")])
@pytest.mark.parametrize("keys", [SphereKeys(), EquicorrelatedKeys(0.6), EquicorrelatedKeys(0.3, unit_norm=False)])
def test_the_monomials_of_degree_one_have_the_moments_of_the_identity(keys, center, norm):
    for key_center in ("none", "mean"):
        steps = {"key_center": key_center, "feature_center": center, "feature_norm": norm, "key_scale": 1.3}
        found = moments(LinearMemory(Polynomial(1), **steps), keys, 16)
        expected = moments(LinearMemory(Identity(), **steps), keys, 16)
        assert tuple(found) == pytest.approx(tuple(expected), rel=1e-5, abs=1e-9)


def simulated(memory, keys, d, trials, pairs=400):
    """Mean and standard error over trials of m1, M2, mu, m2, with a map, a common key and means of their own."""
    rows = []
    for trial in range(trials):
        stream = keys.start(np.random.default_rng([11, trial]), d)
        phi = memory.feature_map
        own_memory = replace(memory, feature_map=replace(phi, seed=trial)) if hasattr(phi, "seed") else memory
        further = stream.fork(np.random.default_rng([12, trial]))
        means = own_memory.calibrate(further.draw(2000)) if memory.centers else {}
        features = own_memory.features(own_memory.init(d, 1, **means), stream.draw(pairs))
        gram = features @ features.T
        own, cross = np.diag(gram), gram[~np.eye(pairs, dtype=bool)]
        rows.append([np.mean(x) for x in (own, own**2, cross, cross**2)])
    return np.mean(rows, axis=0), np.std(rows, axis=0) / math.sqrt(trials)


def agrees(found, mean, error, known=0.0):
    """Within 4.5 standard errors, and what calibration on 2,000 keys leaves of the mean."""
    found = np.array(found)
    slack = 4.5 * error + (known + 1e-3) * np.abs(mean)
    return np.all(np.abs(found - mean)[[0, 1, 3]] < slack[[0, 1, 3]])


POLYNOMIALS = [
    (Taylor(2), {}, EquicorrelatedKeys(0.5)),
    (Taylor(2), {"feature_center": "mean"}, EquicorrelatedKeys(0.5, fixed_mean=True)),
    (Taylor(2), {"feature_center": "mean", "feature_norm": "l2"}, GaussianKeys()),
    (Polynomial(2), {"feature_center": "mean"}, EquicorrelatedKeys(0.4, unit_norm=False)),
    (Polynomial(3), {"key_center": "mean"}, EquicorrelatedKeys(0.5)),
]


@pytest.mark.parametrize("phi, steps, keys", POLYNOMIALS, ids=lambda x: str(x)[:30])
def test_polynomial_moments_agree_with_simulation(phi, steps, keys):
    memory = LinearMemory(phi, **steps)
    mean, error = simulated(memory, keys, 8, 40, 300)
    assert agrees(moments(memory, keys, 8), mean, error)
    if steps.get("feature_center") == "mean":
        plain = replace(memory, feature_center="none")
        assert not agrees(moments(plain, keys, 8), mean, error, 0.02)


RANDOM = [
    RandomReLU(24),
    RandomFourierFeatures(24),
    PositiveRandomFeatures(24, orthogonal=False),
    PositiveRandomFeatures(24),
    PositiveRandomFeatures(9, hyperbolic=True),
]


@pytest.mark.parametrize("center", ["none", "mean"])
@pytest.mark.parametrize("phi", RANDOM, ids=str)
def test_moments_of_random_maps_agree_with_redrawn_maps(phi, center):
    d, memory = 8, LinearMemory(phi, feature_center=center)
    mean, error = simulated(memory, SphereKeys(), d, 80, 150)
    found = moments(memory, SphereKeys(), d)
    assert agrees(found, mean, error)
    without = moments(replace(memory, feature_map=replace(phi, num_features=10**6)), SphereKeys(), d)
    if center == "mean":  # the kernel that the features approximate is no substitute
        assert not agrees(without, mean, error)
    assert found.cross_square > without.cross_square


def test_orthogonal_directions_are_told_from_independent_ones():
    d, memory = 8, LinearMemory(PositiveRandomFeatures(64), feature_center="mean")
    mean, error = simulated(memory, SphereKeys(), d, 80, 200)
    independent = replace(memory, feature_map=replace(memory.feature_map, orthogonal=False))
    assert agrees(moments(memory, SphereKeys(), d), mean, error)
    assert not agrees(moments(independent, SphereKeys(), d), mean, error)


@pytest.mark.parametrize("phi", [RandomReLU(24), RandomFourierFeatures(24)], ids=str)
def test_moments_of_random_maps_on_gaussian_and_correlated_keys_agree_with_simulation(phi):
    d = 8
    for keys in (GaussianKeys(), EquicorrelatedKeys(0.5)):
        mean, error = simulated(LinearMemory(phi), keys, d, 120, 100)
        assert agrees(moments(LinearMemory(phi), keys, d), mean, error)


@pytest.mark.parametrize("phi", [RandomReLU(16), RandomFourierFeatures(16), PositiveRandomFeatures(16)], ids=str)
def test_unit_keys_without_a_common_key_are_sphere_keys_for_random_maps(phi):
    almost = random_moments(LinearMemory(phi), KeyLaw(correlation=1e-14, unit=True), 16).average()
    exact = moments(LinearMemory(phi), SphereKeys(), 16)
    assert tuple(almost) == pytest.approx(tuple(exact), rel=1e-6)


def test_many_random_relu_features_have_the_arc_cosine_moments():
    found = moments(LinearMemory(RandomReLU(10**9)), SphereKeys(), 64)
    assert found.cross_mean == pytest.approx(0.160403, abs=5e-7)
    assert found.cross_square == pytest.approx(0.0267087, abs=5e-8)
    assert effective_dimension(RandomReLU(10**9), SphereKeys(), 64) == pytest.approx(9.36, abs=0.005)


def test_variances_of_random_kernels_are_the_published_ones():
    d, m, a, b, t = 16, 64, 0.8, 0.7, 0.3
    plus, minus = (a * a + b * b + sign * 2 * a * b * t for sign in (1, -1))
    kernel = math.exp(a * b * t)
    exp = math.exp(plus) * kernel**2 * (1 - math.exp(-plus)) / m
    cases = [
        (PositiveRandomFeatures(m, orthogonal=False), exp),
        (PositiveRandomFeatures(m, orthogonal=False, hyperbolic=True), (1 - math.exp(-plus)) / 2 * exp),
        (RandomFourierFeatures(m), (1 - math.exp(-minus)) ** 2 / (2 * m)),
    ]
    for phi, published in cases:
        of = KERNELS[type(phi)](phi, d)
        arguments = [np.array(x) for x in (a, b, t)]
        assert of.total(*arguments) - of.mean(*arguments) ** 2 == pytest.approx(published, rel=1e-10)


def test_product_of_two_orthogonal_directions_is_the_confluent_function_and_needs_fixed_signs():
    d, draws = 6, 40_000
    rng = np.random.default_rng(4)
    lengths = np.sqrt(rng.chisquare(d, size=(draws, 2)))
    z = np.full(d, math.sqrt(1.5 / d))
    of = KERNELS[PositiveRandomFeatures](PositiveRandomFeatures(16), d)
    half = np.array(math.sqrt(1.5) / 2)  # x = y = z / 2, so |x|^2 + |y|^2 = 0.75
    expected = float(of.pair(half, half, np.array(1.0))) * math.exp(0.75)

    def products(matrices, lengths=lengths):
        along = lengths * (matrices[:, :2] @ z)
        return np.exp(along.sum(axis=1))

    fixed = products(haar_matrices(rng, draws, d))
    error = fixed.std() / math.sqrt(draws)
    assert abs(fixed.mean() - expected) < 4 * error
    assert abs(fixed.mean() - math.exp(1.5)) > 6 * error  # two independent directions
    equal = products(haar_matrices(rng, draws, d), math.sqrt(d))
    assert abs(equal.mean() - expected) > 6 * error  # all of length sqrt(d)
    q, _ = np.linalg.qr(rng.standard_normal((draws, d, d)))
    assert abs(products(np.swapaxes(q, -1, -2)).mean() - expected) > 6 * error  # LAPACK's signs


def test_optimal_error_of_redrawn_maps_is_the_ratio_of_the_mean_moments():
    d, n, found = 16, 64, []
    for trial in range(60):
        rng = np.random.default_rng([5, trial])
        keys, values = rng.standard_normal((2, n, d))
        features = RandomReLU(64, seed=trial)(keys)
        read = features @ (features.T @ values)
        found.append(1 - np.sum(read * values) ** 2 / (np.sum(read**2) * np.sum(values**2)))
    m1, M2, _, m2 = moments(LinearMemory(RandomReLU(64)), GaussianKeys(), d)
    error = np.std(found) / math.sqrt(60)
    assert abs(1 - m1**2 / (M2 + (n - 1) * m2) - np.mean(found)) < 4 * error + 0.005 * np.mean(found)


def test_random_features_of_large_keys_are_refused_and_those_of_scaled_ones_are_not():
    phi = PositiveRandomFeatures(256)
    with pytest.raises(TheoryUnavailable, match="standard deviations"):
        moments(LinearMemory(phi), GaussianKeys(), 64)
    assert moments(LinearMemory(phi, key_norm="l2"), GaussianKeys(), 64).self_mean == pytest.approx(math.exp(0.125))
    assert moments(LinearMemory(phi, key_scale=0.05), GaussianKeys(), 64).self_mean > 1


def test_polynomials_decided_by_keys_that_are_never_met_are_refused():
    assert moments(LinearMemory(Polynomial(3)), GaussianKeys(), 16).cross_square > 0
    for phi in (Polynomial(8), Polynomial(20)):
        with pytest.raises(TheoryUnavailable, match="unseen|degree"):
            moments(LinearMemory(phi), GaussianKeys(), 16)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("d, nu", [(3, 1), (4, 3), (4, 5)])
def test_centred_dpfp_moments_are_those_counted_feature_by_feature(d, nu, unit):
    first = {0: 1.0, 1: 1 / math.sqrt(2 * math.pi), 2: 0.5, 3: math.sqrt(2 / math.pi), 4: 1.5}

    def expect(indices):
        powers = {p: indices.count(p) for p in indices}
        if any((p + d) % (2 * d) in powers for p in powers):
            return 0.0
        norm = math.prod(d + 2 * i for i in range(len(indices) // 2)) if unit else 1.0
        return math.prod(first[power] for power in powers.values()) / norm

    features = [(p, (p - i) % (2 * d)) for i in range(1, nu + 1) for p in range(2 * d)]
    means = {a: expect(a) for a in features}
    m1 = sum(expect(a * 2) - means[a] ** 2 for a in features)
    m2 = sum((expect(a + b) - means[a] * means[b]) ** 2 for a in features for b in features)
    level = sum(mean**2 for mean in means.values())
    square = level**2 + 2 * level * (m1 + level) - 4 * level * sum(means[a] * means[a] for a in features)
    for a in features:
        for b in features:
            square += expect(a * 2 + b * 2) - 4 * means[b] * expect(a * 2 + b) + 4 * means[a] * means[b] * expect(a + b)
    keys = SphereKeys() if unit else GaussianKeys()
    found = moments(LinearMemory(Dpfp(nu), feature_center="mean"), keys, d)
    assert tuple(found) == pytest.approx((m1, square, 0.0, m2), rel=1e-10)


def test_cosformer_moments_are_those_of_its_own_gram_matrix():
    d, n, phi = 12, 30, CosFormer(40)
    assert place_weights(3, 4)[0] == pytest.approx((4 * math.cos(math.pi / 8) + 2 * math.cos(math.pi / 4)) / 6)
    memory = LinearMemory(phi)
    mean, error = simulated(memory, SphereKeys(), d, 200, n)
    found = trial_moments(memory, SphereKeys(), d, n).average()
    assert agrees(found, mean, error)
    assert not agrees(moments(LinearMemory(ReLU()), SphereKeys(), d), mean, error, 0.05)
    for pairs, told in ((None, "num_pairs"), (41, "max_length")):
        with pytest.raises(TheoryUnavailable, match=told):
            trial_moments(memory, SphereKeys(), d, pairs)


def test_norms_after_a_random_map_are_covered_where_they_change_nothing():
    plain = moments(LinearMemory(RandomFourierFeatures(32)), SphereKeys(), 16)
    assert moments(LinearMemory(RandomFourierFeatures(32), feature_norm="l2"), SphereKeys(), 16) == plain
    for phi, norm in ((RandomReLU(32), "l2"), (RandomFourierFeatures(32), "sum"), (Taylor(2), "sum")):
        with pytest.raises(TheoryUnavailable, match=norm if norm == "l2" else "sum"):
            moments(LinearMemory(phi, feature_norm=norm), SphereKeys(), 16)


def test_key_laws_that_the_formulas_do_not_know_are_refused():
    @dataclass(frozen=True)
    class Stretched(KeyLaw):
        exponent: float = 0.0

    for formula, phi in ((polynomial_moments, Taylor(2)), (random_moments, RandomReLU(8))):
        formula(LinearMemory(phi), Stretched(unit=True), 16)
        with pytest.raises(TheoryUnavailable, match="exponent"):
            formula(LinearMemory(phi), Stretched(unit=True, exponent=1.0), 16)


def test_centring_that_leaves_only_rounding_is_refused():
    memory = LinearMemory(Taylor(2), feature_center="mean")
    with pytest.raises(TheoryUnavailable, match="rounding"):
        moments(memory, EquicorrelatedKeys(1.0), 16)
    small = moments(replace(memory, key_scale=1e-4), SphereKeys(), 16)
    assert small.self_mean**2 / small.cross_square == pytest.approx(16, rel=1e-6)  # the linear term is all there is


def test_correlated_keys_too_large_for_exponential_features_are_refused():
    for phi, keys, scale in (
        (PositiveRandomFeatures(64), EquicorrelatedKeys(0.5), 5.0),
        (Exp(), EquicorrelatedKeys(0.5, unit_norm=False), 20.0),
    ):
        assert moments(LinearMemory(phi), keys, 16).self_mean > 0
        with pytest.raises(TheoryUnavailable, match="unseen"):
            moments(LinearMemory(phi, key_scale=scale), keys, 16)


@pytest.mark.parametrize(("phi", "told"), [(RandomReLU(8), "random map"), (CosFormer(64), "depends on the place")])
def test_a_file_of_keys_stands_for_no_map_that_changes_from_trial_to_trial_or_place_to_place(phi, told, tmp_path):
    np.save(tmp_path / "keys.npy", np.eye(16))
    keys = ArrayKeys(str(tmp_path / "keys.npy"))
    assert trial_moments(LinearMemory(ReLU()), keys, 16, 8).average().self_mean == 1
    with pytest.raises(TheoryUnavailable, match=told):
        trial_moments(LinearMemory(phi), keys, 16, 8)
