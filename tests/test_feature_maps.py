"""What single feature maps promise beyond the conformance suite: averages, variances, scale, positions, limits."""

import math
import warnings
from dataclasses import dataclass

import array_api_strict
import numpy as np
import pytest

from capmem import geometry, metrics
from capmem.feature_maps import (
    FEATURE_MAPS,
    CosFormer,
    Dpfp,
    EluPlusOne,
    Exp,
    Identity,
    OverflowWarning,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    ReLU,
    SiLU,
    SoftmaxFeatures,
    Softplus,
    SquaredReLU,
    Taylor,
    UnderflowWarning,
)
from capmem.memory import LinearMemory
from capmem.readouts import Normalized
from tests import conformance
from tests.conformance import unit
from tests.conftest import ROOT
from tests.test_conformance import FlooredFeatures

D = 16


class UnfixedQR(PositiveRandomFeatures):
    """Takes Q of LAPACK's QR as it comes."""

    def directions(self, key_dim):
        rng = np.random.default_rng(self.seed)
        q = np.linalg.qr(rng.standard_normal((-(-self.num_features // key_dim), key_dim, key_dim)))[0]
        rows = np.swapaxes(q, -1, -2).reshape(-1, key_dim)[: self.num_features]
        return rows * np.sqrt(rng.chisquare(key_dim, (self.num_features, 1)))


class EqualLengths(PositiveRandomFeatures):
    """Every direction of length sqrt(d)."""

    def directions(self, key_dim):
        rows = super().directions(key_dim)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) * key_dim**0.5


def block_bias(kind, sign, blocks=4 * 10_000):
    """Relative bias of the kernel from blocks of D orthogonal directions, and its standard error."""
    key = sign * np.full((1, D), D**0.25 * math.sqrt(2 / D) / 2)  # scaled keys add up to sign sqrt(2 / D) ones
    estimates = []
    for seed in range(8):
        phi = kind(num_features=blocks * D // 8, seed=seed)
        products = phi(key) ** 2 * phi.num_features
        estimates.append(products.reshape(-1, D).mean(axis=1))
    estimates = np.concatenate(estimates) / float(PositiveRandomFeatures().kernel(key, key)[0, 0])
    return estimates.mean() - 1, estimates.std() / blocks**0.5


@pytest.mark.parametrize("sign", [1, -1])
def test_orthogonal_positive_features_are_unbiased_in_the_directions_that_qr_signs_spoil(sign):
    bias, error = block_bias(PositiveRandomFeatures, sign)
    assert error < 0.004
    assert abs(bias) < 4 * error


@pytest.mark.parametrize("kind, sign, known", [(UnfixedQR, 1, -0.21), (UnfixedQR, -1, 0.20), (EqualLengths, 1, -0.048)])
def test_the_bias_of_unfixed_qr_and_of_equal_lengths_would_show(kind, sign, known):
    bias, error = block_bias(kind, sign)
    assert abs(bias) > 4 * error
    assert bias == pytest.approx(known, abs=0.02)


def test_directions_are_orthogonal_in_blocks_and_have_chi_lengths():
    w = PositiveRandomFeatures(num_features=D * 4000 + 5).directions(D)
    first = unit(w[:D])
    np.testing.assert_allclose(first @ first.T, np.eye(D), atol=1e-12)
    squares = np.sum(w * w, axis=1)
    assert w.shape == (D * 4000 + 5, D)
    assert squares.mean() == pytest.approx(D, rel=0.01)
    assert squares.var() == pytest.approx(2 * D, rel=0.03)


def squared_error_of_one_draw(phi, x, y, copies=1):
    """E (phi(x) . phi(y) - kernel)^2 for a single random direction, from the many of `phi`."""
    products = (phi(x) * phi(y)).reshape(copies, phi.num_features).sum(axis=0) * phi.num_features
    return np.mean((products - float(phi.kernel(x, y)[0, 0])) ** 2)


@pytest.mark.parametrize("hyperbolic", [False, True])
def test_variance_of_positive_features_is_the_closed_form(hyperbolic, rng):
    x, y = unit(rng.standard_normal((2, 1, D)))
    total, cross = np.sum((x + y) ** 2) / D**0.5, np.sum(x * y) / D**0.5
    expected = math.exp(total) * math.exp(2 * cross) * (1 - math.exp(-total))
    if hyperbolic:
        expected *= (1 - math.exp(-total)) / 2
    phi = PositiveRandomFeatures(400_000, orthogonal=False, hyperbolic=hyperbolic)
    assert squared_error_of_one_draw(phi, x, y, 1 + hyperbolic) == pytest.approx(expected, rel=0.05)


def test_variance_of_fourier_features_is_the_closed_form(rng):
    x, y = unit(rng.standard_normal((2, 1, D)))
    expected = (1 - math.exp(-np.sum((x - y) ** 2))) ** 2 / 2
    assert squared_error_of_one_draw(RandomFourierFeatures(100_000), x, y, 2) == pytest.approx(expected, rel=0.05)


def test_orthogonal_directions_lower_the_variance(rng):
    x, y = unit(rng.standard_normal((2, 1, D)))
    maps = [PositiveRandomFeatures(D * 5000, orthogonal) for orthogonal in (True, False)]
    orthogonal, independent = (((phi(x) * phi(y)).reshape(-1, D).sum(axis=1)).std() for phi in maps)
    assert orthogonal < 0.95 * independent


def test_an_added_epsilon_turns_the_memory_of_large_keys_into_an_average(rng):
    """The sound features keep answering as the norm of keys grows; with a floor, recall is lost."""

    def recall(phi, norm):
        keys, values = norm * unit(rng.standard_normal((64, 64))), rng.standard_normal((64, 64))
        memory = LinearMemory(phi, readout=Normalized())
        state = memory.write(memory.init(64, 64), keys, values)
        return float(metrics.top1_accuracy(memory.read(state, keys), values))

    assert min(recall(PositiveRandomFeatures(1024), norm) for norm in (4, 8, 12, 16)) > 0.6
    assert recall(FlooredFeatures(1024), 4) > 0.6
    assert recall(FlooredFeatures(1024), 16) < 0.3


def test_hyperbolic_features_are_each_direction_and_its_negative(rng):
    x = rng.standard_normal((5, D))
    both = PositiveRandomFeatures(30, hyperbolic=True)(x)
    plain = PositiveRandomFeatures(30)
    np.testing.assert_allclose(both[:, :30] * 2**0.5, plain(x), rtol=1e-12)
    np.testing.assert_allclose(both[:, 30:] * 2**0.5, plain(-x), rtol=1e-12)


def test_taylor_full_and_compressed_have_one_kernel_and_their_own_widths(rng):
    x, y = rng.standard_normal((2, 30, D))
    full, compressed = Taylor(compressed=False), Taylor()
    assert (full.width(D), compressed.width(D), Taylor(order=1).width(D)) == (273, 153, 17)
    np.testing.assert_allclose(full(x) @ full(y).T, compressed(x) @ compressed(y).T, rtol=1e-12)
    assert (compressed.kernel(x, y) >= 0.5).all()


def test_sign_of_polynomial_and_taylor_kernels_follows_the_degree():
    assert [Polynomial(p).positive_kernel for p in (1, 2, 3, 4)] == [False, True, False, True]
    assert [Taylor(order=o).positive_kernel for o in (1, 2)] == [False, True]


def test_cosformer_weighs_pairs_by_their_distance(rng):
    x, y, phi = rng.standard_normal((4, 5)), rng.standard_normal((3, 5)), CosFormer(max_length=50)
    i, j = np.array([7, 0, 49, 3]), np.array([7, 48, 2])
    expected = np.maximum(x, 0) @ np.maximum(y, 0).T * np.cos(np.pi * (i[:, None] - j) / 100)
    np.testing.assert_allclose(phi(x, i) @ phi(y, j).T, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(phi.kernel(x, y, i, j), expected, rtol=1e-12, atol=1e-12)
    assert not np.allclose(phi(x, i), phi(x))


def test_cosformer_counts_places_from_one():
    features = CosFormer(max_length=10)(np.ones((2, 1)))
    np.testing.assert_allclose(features[:, 0], np.sin([math.pi / 20, math.pi / 10]), rtol=1e-14)


@pytest.mark.parametrize(
    "rows, positions, words",
    [
        (3, np.array([0, 1, 9]), None),
        (3, np.array([0, 1, 10]), "below max_length = 10, got 10"),
        (3, np.array([-1, 1, 2]), "at least 0 .* got -1"),
        (3, np.array([0, 1]), "3 keys need as many positions, got 2"),
        (10, None, None),
        (11, None, "below max_length = 10, got 10"),
    ],
)
def test_cosformer_refuses_places_that_it_has_no_weight_for(rows, positions, words):
    x, phi = np.ones((rows, 2)), CosFormer(max_length=10)
    if words is None:
        phi(x, positions)
        return
    with pytest.raises(ValueError, match=words):
        phi(x, positions)


@pytest.mark.parametrize("phi", [p for p in conformance.FEATURE_MAPS if not isinstance(p, CosFormer)], ids=str)
def test_other_maps_do_not_depend_on_positions(phi, rng):
    x = rng.standard_normal((4, 6))
    np.testing.assert_array_equal(phi(x, np.array([5, 2, 8, 1])), phi(x))


HOMOGENEOUS = [
    (Identity(), 1),
    (ReLU(), 1),
    (SquaredReLU(), 2),
    (Dpfp(2), 2),
    (Polynomial(3), 3),
    (CosFormer(), 1),
    (RandomReLU(40), 1),
    (RandomFourierFeatures(40), 0),
]


@pytest.mark.parametrize("phi, degree", HOMOGENEOUS, ids=str)
def test_scale_of_keys_comes_out_of_a_homogeneous_map_as_a_power(phi, degree, rng):
    x = rng.standard_normal((5, 6))
    np.testing.assert_allclose(phi(3 * x), 3.0**degree * phi(x), rtol=1e-12)


def scores(phi, keys, values, key_scale=1.0):
    memory = LinearMemory(phi, key_scale=key_scale)
    retrieved = memory.read(memory.write(memory.init(keys.shape[1], values.shape[1]), keys, values), keys)
    names = ("cosine_similarity", "scale_optimal_error", "relative_squared_error")
    found = [float(getattr(metrics, name)(retrieved, values)) for name in names]
    return [float(metrics.top1_accuracy(retrieved, values)), *found]


def test_scale_of_keys_matters_to_no_score_but_raw_error_under_homogeneous_maps(rng):
    keys, values = rng.standard_normal((40, D)), rng.standard_normal((40, 8))
    for phi, degree in HOMOGENEOUS:
        one, other = scores(phi, keys, values), scores(phi, keys, values, key_scale=0.3)
        np.testing.assert_allclose(other[:3], one[:3], rtol=1e-9)
        assert (abs(other[3] / one[3] - 1) > 1e-3) == (degree > 0)
    for phi in (EluPlusOne(), Exp(), Softplus(), SiLU(), Taylor(), PositiveRandomFeatures(), SoftmaxFeatures()):
        assert abs(scores(phi, keys, values, key_scale=0.3)[2] / scores(phi, keys, values)[2] - 1) > 1e-3


@dataclass(frozen=True)
class Scaled(Taylor):
    def __call__(self, x, positions=None):
        return 3.0 * super().__call__(x)


def test_scale_of_features_matters_to_no_score_but_raw_error(rng):
    keys, values = rng.standard_normal((40, D)), rng.standard_normal((40, 8))
    one, other = scores(Taylor(), keys, values), scores(Scaled(), keys, values)
    np.testing.assert_allclose(other[:3], one[:3], rtol=1e-9)
    assert other[3] > 2 * one[3]


MEASURED = [
    (SquaredReLU(), 23.3, 23.2),
    (Exp(), 6.72, 1.03),
    (Softplus(), 1.98, 1.016),
    (SiLU(), 33.6, 63.9),
    (SoftmaxFeatures(), 6.0, 1.03),
    (Taylor(), 467, 1.28),
    (Polynomial(), 1408, 1408),
    (RandomFourierFeatures(), 7.13, 7.11),
    (PositiveRandomFeatures(), None, 1.28),
    (PositiveRandomFeatures(hyperbolic=True), None, 1.28),
]


@pytest.mark.parametrize("phi, normal, sphere", MEASURED, ids=str)
def test_effective_dimension_is_that_of_an_independent_implementation(phi, normal, sphere, rng):
    """Reference figures at d = 64; that of FAVOR+ on N(0, 1) keys has no stable value, and is left out."""
    keys = rng.standard_normal((1000, 64))
    assert geometry.effective_dimension(phi(unit(keys))) == pytest.approx(sphere, rel=0.05)
    assert normal is None or geometry.effective_dimension(phi(keys)) == pytest.approx(normal, rel=0.08)


def test_fourier_features_of_a_zero_key_are_those_of_zero():
    phi = RandomFourierFeatures(8)
    features = phi(np.zeros((1, 5)))
    np.testing.assert_allclose(features, np.repeat([[0, 8**-0.5]], 8, axis=1), rtol=1e-15)
    assert phi.kernel(np.zeros((1, 5)), np.ones((1, 5)))[0, 0] == pytest.approx(math.exp(-0.5))


def test_fourier_features_have_unit_norm_for_keys_of_any_size(rng):
    for size in (1e-30, 1.0, 1e30):
        features = RandomFourierFeatures(8)((size * rng.standard_normal((4, 5))).astype(np.float32))
        np.testing.assert_allclose(np.sum(features**2, axis=1), 1, rtol=1e-5)


def test_random_relu_kernel_of_a_key_with_itself_is_half_its_square(rng):
    x = rng.standard_normal((6, 5))
    np.testing.assert_allclose(np.diag(RandomReLU().kernel(x, x)), np.sum(x * x, axis=1) / 2, rtol=1e-12)
    assert RandomReLU().kernel(np.zeros((1, 5)), x).max() == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_elu_plus_one_and_softplus_are_not_zero_below_zero(dtype):
    x = np.full((1, 1), -8.0, dtype=dtype)
    for phi in (EluPlusOne(), Softplus(), Exp()):
        assert phi(x)[0, 0] == pytest.approx(math.exp(-8), rel=0.01)


def test_overflow_is_counted_in_words():
    x = np.array([[1.0, 89.0, 90.0]], dtype=np.float32)
    with pytest.warns(OverflowWarning, match=r"2 of 3 features of Exp\(\) are not finite in float32"):
        Exp()(x)
    with pytest.warns(OverflowWarning, match="1 of 1 kernel values"):
        PositiveRandomFeatures().kernel(100 * x, x)
    with pytest.warns(OverflowWarning, match=r"1 of 1 features of Polynomial\(degree=20\)"):
        Polynomial(20)(x[:, 1:2])


@pytest.mark.parametrize("phi", [Exp(), SquaredReLU(), Dpfp(), Polynomial(), Taylor()], ids=str)
def test_overflow_warnings_point_at_the_caller(phi):
    with pytest.warns(OverflowWarning) as caught:
        phi(np.full((1, 2), 1e200))
    assert [w.filename for w in caught] == [__file__]


def test_sums_that_overflow_are_not_taken_for_features_that_do():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(SquaredReLU()(np.full((1, 4), 1.8e19, dtype=np.float32))).all()


def test_keys_without_a_feature_left_are_counted():
    x = np.array([[0.0, 0.0], [1.0, 1.0], [1e3, 1e3]])
    with pytest.warns(UnderflowWarning, match="1 of 3 keys have only zero features under PositiveRandom") as caught:
        PositiveRandomFeatures()(x)
    assert [w.filename for w in caught] == [__file__]
    with pytest.warns(UnderflowWarning, match="1 of 3 keys have only zero features under Polynomial"):
        Polynomial(40)(x * 1e-9)


@pytest.mark.parametrize(
    "build, words",
    [
        (lambda: Dpfp(0), "nu must be an integer of at least 1, got 0"),
        (lambda: Dpfp(1.5), "nu must be an integer, got 1.5"),
        (lambda: PositiveRandomFeatures(0), "num_features must be an integer of at least 1, got 0"),
        (lambda: PositiveRandomFeatures(seed=-1), "seed must be an integer of at least 0, got -1"),
        (lambda: PositiveRandomFeatures(orthogonal=1), "orthogonal must be true or false, got 1"),
        (lambda: RandomFourierFeatures(seed=None), "seed must be an integer, got None"),
        (lambda: RandomReLU(2.0), "num_features must be an integer, got 2.0"),
        (lambda: Taylor(order=3), "order must be 1 or 2, got 3"),
        (lambda: Taylor(compressed="no"), "compressed must be true or false, got 'no'"),
        (lambda: Polynomial(0), "degree must be an integer of at least 1, got 0"),
        (lambda: CosFormer(0), "max_length must be an integer of at least 1, got 0"),
        (lambda: FEATURE_MAPS.build({"name": "taylor", "ordre": 1}), "feature_map.ordre"),
    ],
)
def test_values_out_of_range_are_refused_with_what_is_allowed(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("name", FEATURE_MAPS.names())
def test_each_map_has_a_yaml_with_its_defaults(name):
    omegaconf = pytest.importorskip("omegaconf")
    loaded = omegaconf.OmegaConf.load(ROOT / "conf" / "feature_map" / f"{name}.yaml")
    assert dict(loaded) == FEATURE_MAPS.describe(FEATURE_MAPS.build(name))


def test_positions_may_come_from_any_library():
    x = array_api_strict.asarray(np.ones((3, 2)))
    given = CosFormer(10)(x, array_api_strict.asarray(np.array([4, 5, 6])))
    np.testing.assert_array_equal(np.asarray(given), CosFormer(10)(np.ones((3, 2)), np.array([4, 5, 6])))


@pytest.mark.parametrize("phi", conformance.FEATURE_MAPS, ids=str)
def test_gradients_flow_and_are_those_of_finite_differences(phi, rng):
    torch = pytest.importorskip("torch")
    x = torch.tensor(rng.uniform(0.2, 1, (2, 3)) * rng.choice([-1, 1], (2, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(phi, (x,))


@pytest.mark.parametrize("phi", conformance.FEATURE_MAPS, ids=str)
def test_no_map_leaves_the_library_or_the_dtype_of_a_tensor(phi, rng):
    torch = pytest.importorskip("torch")

    class Refuses(torch.Tensor):
        def __array__(self, *args, **kwargs):
            raise AssertionError("converted to NumPy")

    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        x = torch.tensor(rng.standard_normal((2, 5, 6)), dtype=dtype).as_subclass(Refuses)
        assert phi(x).dtype == phi.kernel(x, x).dtype == dtype


def test_elu_plus_one_is_not_zero_below_zero_in_bfloat16():
    torch = pytest.importorskip("torch")
    features = EluPlusOne()(torch.full((1, 1), -8.0, dtype=torch.bfloat16))
    assert float(features[0, 0]) == pytest.approx(math.exp(-8), rel=0.01)
