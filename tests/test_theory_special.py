"""Special functions of large dimension, and what they are for: numbers, and the right ones."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from capmem import LinearMemory
from capmem.ensembles import AutoregressiveKeys, GaussianValues, SphereKeys
from capmem.feature_maps import Identity
from capmem.theory import classical, predict
from capmem.theory.sequences import unit_mean, unit_square
from capmem.theory.special import LARGE, hyp2f1

MEMORY = LinearMemory(Identity())


def euler(a, b, c, z):
    """Euler's integral: Gamma(c) / (Gamma(b) Gamma(c-b)) int t^(b-1) (1-t)^(c-b-1) (1-zt)^-a dt, with t = s^(1/b)."""
    scale = math.exp(math.lgamma(c) - math.lgamma(b) - math.lgamma(c - b)) / b

    def integrand(s):
        t = s ** (1 / b)
        return (1 - t) ** (c - b - 1) * (1 - z * t) ** -a

    return scale * quad(integrand, 0, 1, epsabs=0, epsrel=1e-11, limit=200, points=[0.05, 0.3])[0]


@pytest.mark.parametrize("a", [0.5, 1.0])
@pytest.mark.parametrize("c", [3.0, 40.0, LARGE - 0.5, LARGE, 100.0, 257.0, 1025.0])
@pytest.mark.parametrize("z", [0.0, 0.3, 0.92, 0.999])
def test_the_hypergeometric_function_is_eulers_integral(a, c, z):
    assert float(hyp2f1(a, a, c, np.array(z))) == pytest.approx(euler(a, a, c, z), rel=1e-9)


@pytest.mark.parametrize("dim", [64, 198, 512, 4096])
def test_cosines_of_correlated_vectors_are_numbers_up_to_one(dim):
    correlation = np.linspace(0, 1, 101)
    mean, square = unit_mean(correlation, dim), unit_square(correlation, dim)
    assert np.all(np.diff(mean) > 0) and np.all(np.diff(square) > 0)
    assert mean[-1] == pytest.approx(1, rel=1e-9) and square[-1] == pytest.approx(1, rel=1e-9)
    np.testing.assert_allclose(mean[1:-1], correlation[1:-1], atol=1 / dim)


def test_drifting_keys_of_many_dimensions_have_the_error_of_a_draw():
    """Before, it was nan, and the scale-optimal error 1; the mean of 400 draws, within 4 standard errors."""
    predicted = predict(MEMORY, AutoregressiveKeys(0.99), key_dim=256, value_dim=16, num_pairs=32)
    errors = []
    for trial in range(400):
        rng = np.random.default_rng([7, trial])
        keys = AutoregressiveKeys(0.99).start(rng, 256).draw(32)
        values = rng.standard_normal((32, 16))
        values *= 4 / np.linalg.norm(values, axis=1, keepdims=True)
        errors.append(np.sum((keys @ (keys.T @ values) - values) ** 2) / np.sum(values**2))
    assert np.mean(errors) == pytest.approx(predicted.relative_squared_error, abs=4 * np.std(errors) / 20)
    assert predicted.scale_optimal_error < 0.99


@pytest.mark.parametrize(("key_dim", "num_pairs"), [(512, 64), (512, 5), (64, 2)])
def test_gaussian_values_of_many_dimensions_have_a_cosine(key_dim, num_pairs):
    given = {"key_dim": key_dim, "value_dim": 512, "num_pairs": num_pairs}
    found = predict(MEMORY, SphereKeys(), values=GaussianValues(), **given).cosine_similarity
    assert found == pytest.approx((1 + (num_pairs - 1) / key_dim) ** -0.5, rel=0.002)


@pytest.mark.parametrize("load", [1e2, 1e8, 1e14, 1e20, 1e300])
def test_bits_of_signs_approach_their_limit_from_below(load):
    limit = 1 / (math.pi * math.log(2))
    assert limit * (1 - 0.5 / load - 1e-12) < classical.hebbian_bits(load) <= limit * (1 + 1e-12)


def test_bits_of_signs_are_the_same_on_both_sides_of_where_the_series_begins():
    below, above = classical.hebbian_bits(1 - 1e-9), classical.hebbian_bits(1 + 1e-9)
    assert above == pytest.approx(below, rel=1e-8)
