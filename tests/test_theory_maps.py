"""Kernel moments of feature maps: closed forms against quadrature, counting by hand, plain simulations."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import ndtr

from capmem.ensembles import EquicorrelatedKeys, GaussianKeys, SphereKeys
from capmem.feature_maps import Dpfp, ElementwiseMap, EluPlusOne, Identity, ReLU
from capmem.memory import LinearMemory
from capmem.readouts import Normalized
from capmem.theory import TheoryUnavailable, effective_dimension, moments, predict


@dataclass(frozen=True)
class Exponential(ElementwiseMap):
    """A user's own map, with known moments."""

    def function(self, x, xp):
        return xp.exp(x)


def relu_powers(s):
    return s / math.sqrt(2 * math.pi), s**2 / 2, 1.5 * s**4


def elu_powers(s):
    c0 = 1 / math.sqrt(2 * math.pi)
    return (
        0.5 + s * c0 + math.exp(s**2 / 2) * ndtr(-s),
        (1 + s**2) / 2 + 2 * s * c0 + math.exp(2 * s**2) * ndtr(-2 * s),
        0.5 + 4 * s * c0 + 3 * s**2 + 8 * s**3 * c0 + 1.5 * s**4 + math.exp(8 * s**2) * ndtr(-4 * s),
    )


def exponential_powers(s):
    return math.exp(s**2 / 2), math.exp(2 * s**2), math.exp(8 * s**2)


CLOSED = [
    (Identity(), lambda s: (0.0, s**2, 3 * s**4)),
    (ReLU(), relu_powers),
    (EluPlusOne(), elu_powers),
    (Exponential(), exponential_powers),
]


@pytest.mark.parametrize("scale", [0.125, 1.0, 2.5])
@pytest.mark.parametrize("phi, powers", CLOSED, ids=lambda case: type(case).__name__)
def test_quadrature_gives_the_closed_forms_on_gaussian_keys(phi, powers, scale):
    if isinstance(phi, Exponential) and scale > 1:
        pytest.skip("its moments lie where no sample goes, and are refused")
    d = 48
    f1, f2, f4 = powers(scale)
    expected = (d * f2, d * f4 + d * (d - 1) * f2**2, d * f1**2, d * f2**2 + d * (d - 1) * f1**4)
    found = moments(LinearMemory(phi, key_scale=scale), GaussianKeys(), d)
    assert tuple(found) == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_a_map_whose_moments_lie_beyond_all_samples_is_refused():
    with pytest.raises(TheoryUnavailable, match="standard deviations"):
        moments(LinearMemory(Exponential(), key_scale=8.0), GaussianKeys(), 16)


@pytest.mark.parametrize(
    "phi, published",
    [
        (ReLU(), 8.67),
        (EluPlusOne(), 2.09),
        (Dpfp(1), 52.14),
        (Dpfp(2), 62.56),
        (Dpfp(3), 67.02),
        (Identity(), 64.0),
    ],
)
def test_effective_dimension_has_the_published_values(phi, published):
    assert effective_dimension(phi, GaussianKeys(), 64) == pytest.approx(published, abs=0.006)


def test_effective_dimension_of_relu_and_dpfp_stays_below_a_constant():
    for d in (256, 2048):
        assert effective_dimension(ReLU(), GaussianKeys(), d) == pytest.approx(d / (1 + (d - 1) / math.pi**2))
        exact = 2 * d / (1 + 2 / math.pi**2 + (2 * d - 6) / math.pi**4)
        assert effective_dimension(Dpfp(1), GaussianKeys(), d) == pytest.approx(exact, rel=1e-10)


def test_effective_dimension_of_elu_on_unit_keys_depends_on_their_scale():
    assert effective_dimension(EluPlusOne(), SphereKeys(), 64) == pytest.approx(1.028, abs=0.001)
    assert effective_dimension(EluPlusOne(), SphereKeys(), 64, key_scale="sqrt_dim") == pytest.approx(2.09, abs=0.03)


@pytest.mark.parametrize("phi, degree", [(Identity(), 1), (ReLU(), 1), (Dpfp(2), 2)])
@pytest.mark.parametrize("d", [5, 64])
def test_homogeneous_maps_on_the_sphere_are_those_on_gaussian_keys_over_the_norm(phi, degree, d):
    gaussian = moments(LinearMemory(phi), GaussianKeys(), d)
    sphere = moments(LinearMemory(phi, key_scale="sqrt_dim"), SphereKeys(), d)

    def norm(power):  # E (|x|^2 / d)^power
        return math.prod(d + 2 * i for i in range(power)) / d**power

    factors = (norm(degree), norm(2 * degree), None, norm(degree) ** 2)
    for index in (0, 1, 3):
        assert sphere[index] == pytest.approx(gaussian[index] / factors[index], rel=1e-9)


def test_centring_features_of_independent_keys_makes_every_elementwise_map_as_good_as_the_identity():
    d = 40
    for phi in (ReLU(), EluPlusOne(), Exponential()):
        found = moments(LinearMemory(phi, feature_center="mean"), GaussianKeys(), d)
        assert found.self_mean**2 / found.cross_square == pytest.approx(d, rel=1e-9)
        assert found.cross_mean == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("d, nu", [(2, 1), (3, 2), (4, 3), (4, 5), (6, 3)])
def test_dpfp_moments_are_those_counted_feature_by_feature(d, nu):
    first = {0: 1.0, 1: 1 / math.sqrt(2 * math.pi), 2: 0.5, 4: 1.5}

    def expect(indices):
        powers = {p: indices.count(p) for p in indices}
        if any((p + d) % (2 * d) in powers for p in powers):
            return 0.0
        return math.prod(first[power] for power in powers.values())

    features = [(p, (p - i) % (2 * d)) for i in range(1, nu + 1) for p in range(2 * d)]
    m1 = sum(expect(a * 2) for a in features)
    mu = sum(expect(a) ** 2 for a in features)
    m2 = sum(expect(a + b) ** 2 for a in features for b in features)
    square = sum(expect(a * 2 + b * 2) for a in features for b in features)
    found = moments(LinearMemory(Dpfp(nu)), GaussianKeys(), d)
    assert tuple(found) == pytest.approx((m1, square, mu, m2), rel=1e-12)


def relu(x):
    return np.maximum(x, 0)


def elu_plus_one(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def dpfp(x):
    r = relu(np.concatenate([x, -x], axis=-1))
    return r * np.roll(r, 1, axis=-1)


MAPS = [(ReLU(), relu), (EluPlusOne(), elu_plus_one), (Dpfp(1), dpfp)]
NAMES = ["relu", "elu_plus_one", "dpfp"]


def draw_keys(rng, shape, d, c, norm=True):
    """Equicorrelated keys (..., N, d) at scale sqrt(d), a common key for each leading index."""
    u = rng.standard_normal((*shape[:-1], 1, d))
    keys = math.sqrt(c) * u + math.sqrt(1 - c) * rng.standard_normal((*shape, d))
    return keys / np.linalg.norm(keys, axis=-1, keepdims=True) * math.sqrt(d) if norm else keys


def simulated_moments(phi, d, c, norm, pairs=150_000):
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(pairs // 10_000):
        features = phi(draw_keys(rng, (10_000, 2), d, c, norm))
        own, cross = np.sum(features[:, 0] ** 2, axis=1), np.sum(features[:, 0] * features[:, 1], axis=1)
        rows.append(np.stack([own, own**2, cross, cross**2]))
    samples = np.concatenate(rows, axis=1)
    return samples.mean(axis=1), samples.std(axis=1) / math.sqrt(samples.shape[1])


@pytest.mark.parametrize("c", [0.0, 0.6])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("phi, plain", MAPS, ids=NAMES)
def test_moments_agree_with_simulation(phi, plain, norm, c):
    d = 32
    mean, error = simulated_moments(plain, d, c, norm)
    found = np.array(moments(LinearMemory(phi, key_scale="sqrt_dim"), EquicorrelatedKeys(c, norm), d))
    known = np.array([0.01, 0.025, 0.02, 0.03]) * (c > 0)
    assert np.all(np.abs(found - mean) < 4 * error + known * mean)
    if c:
        ignored = moments(LinearMemory(phi, key_scale="sqrt_dim"), EquicorrelatedKeys(0.0, norm), d)
        assert ignored.cross_square < 0.7 * mean[3]


def simulated_optimal_error(phi, n, d, c, trials, calibrate=False):
    found = []
    for trial in range(trials):
        rng = np.random.default_rng([5, trial])
        features = phi(draw_keys(rng, (n + 2048 * calibrate,), d, c))
        features = features[:n] - features[n:].mean(axis=0) if calibrate else features
        values = rng.standard_normal((n, d))
        values *= math.sqrt(d) / np.linalg.norm(values, axis=1, keepdims=True)
        read = features @ (features.T @ values)
        found.append(1 - np.sum(read * values) ** 2 / (np.sum(read**2) * np.sum(values**2)))
    return np.mean(found), np.std(found) / math.sqrt(trials)


@pytest.mark.parametrize("n", [32, 256])
@pytest.mark.parametrize("c", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("phi, plain", MAPS, ids=NAMES)
def test_optimal_error_of_unit_keys_agrees_with_simulation(phi, plain, c, n):
    d = 32
    mean, error = simulated_optimal_error(plain, n, d, c, 100)
    memory = LinearMemory(phi, key_scale="sqrt_dim")
    found = predict(memory, EquicorrelatedKeys(c), d, d, n).scale_optimal_error
    known = 0.03 if isinstance(phi, Dpfp) else 0.01
    assert abs(found - mean) < 4 * error + known * mean


def test_optimal_error_with_centred_features_agrees_with_simulation():
    d, n, c = 32, 48, 0.5
    mean, error = simulated_optimal_error(relu, n, d, c, 100, calibrate=True)
    memory = LinearMemory(ReLU(), key_scale="sqrt_dim", feature_center="mean")
    assert abs(predict(memory, EquicorrelatedKeys(c), d, d, n).scale_optimal_error - mean) < 4 * error + 0.005
    plain = replace(memory, feature_center="none")
    assert predict(plain, EquicorrelatedKeys(c), d, d, n).scale_optimal_error > mean + 0.2


@pytest.mark.parametrize("renorm", [False, True])
@pytest.mark.parametrize("phi, plain", MAPS, ids=NAMES)
def test_moments_of_centred_unit_keys_agree_with_simulation(phi, plain, renorm):
    d, c, rows = 32, 0.5, []
    for trial in range(300):
        keys = draw_keys(np.random.default_rng([8, trial]), (3000,), d, c)
        keys -= keys.mean(axis=0)
        if renorm:
            keys *= math.sqrt(d) / np.linalg.norm(keys, axis=1, keepdims=True)
        features = plain(keys)
        own, cross = np.sum(features**2, axis=1), np.sum(features[::2] * features[1::2], axis=1)
        rows.append([np.mean(x) for x in (own, own**2, cross, cross**2)])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / math.sqrt(300)
    memory = LinearMemory(phi, key_center="mean", key_norm="l2" if renorm else "none", key_scale="sqrt_dim")
    found = np.array(moments(memory, EquicorrelatedKeys(c), d))
    known = 0.015 if isinstance(phi, Dpfp) else 0.004
    assert np.all(np.abs(found - mean) < 4 * error + known * mean)


@pytest.mark.parametrize("phi, plain", MAPS[:2], ids=NAMES[:2])
def test_normalised_error_agrees_with_simulation_and_tends_to_one(phi, plain):
    d, n = 32, 64
    errors = []
    for trial in range(200):
        features = plain(draw_keys(np.random.default_rng([9, trial]), (n,), d, 0.0))
        weights = features @ features.T
        weights /= weights.sum(axis=1, keepdims=True)
        own = np.diag(weights)
        errors.append(np.mean((1 - own) ** 2 + np.sum(weights**2, axis=1) - own**2))
    memory = LinearMemory(phi, readout=Normalized(), key_scale="sqrt_dim")
    found = predict(memory, SphereKeys(), d, d, n)
    slack = 4 * np.std(errors) / math.sqrt(200) + 0.002
    assert abs(found.relative_squared_error - np.mean(errors)) < slack
    assert predict(memory, SphereKeys(), d, d, 10**6).relative_squared_error == pytest.approx(1, abs=0.001)


def test_sample_participation_ratio_is_no_estimate_of_the_effective_dimension():
    d, n = 64, 32
    features = relu(draw_keys(np.random.default_rng(1), (200, n), d, 0.0, norm=False))
    gram = features @ np.swapaxes(features, -1, -2)
    own = np.einsum("tii->ti", gram)
    square = np.sum(gram**2, axis=(1, 2))
    cross = (square - np.sum(own**2, axis=1)).mean() / (n * (n - 1))
    expected = effective_dimension(ReLU(), GaussianKeys(), d)
    assert own.mean() ** 2 / cross == pytest.approx(expected, rel=0.03)
    assert np.mean(own.sum(axis=1) ** 2 / square) < 0.9 * expected


def test_a_subclass_that_changes_a_listed_map_is_not_given_its_formula():
    class Changed(Dpfp):
        def __call__(self, x, positions=None):
            return -super().__call__(x, positions)

    with pytest.raises(TheoryUnavailable, match="Changed"):
        moments(LinearMemory(Changed()), GaussianKeys(), 16)
