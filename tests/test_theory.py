"""Predictions for the identity map, and the front door: closed forms, golden numbers, simulations, refusals."""

import math
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import hyp2f1

from capmem.ensembles import EquicorrelatedKeys, GaussianKeys, GaussianValues, SphereKeys
from capmem.ensembles.base import Ensemble
from capmem.feature_maps import Dpfp, EluPlusOne, Identity, ReLU
from capmem.memory import LinearMemory
from capmem.readouts import Normalized
from capmem.theory import TheoryUnavailable, moments, predict
from capmem.theory.moments import _law_moments
from capmem.theory.top1 import top1_accuracy

MEMORY = LinearMemory(Identity())
CENTRED = LinearMemory(Identity(), key_center="mean")
SIZES = {"key_dim": 64, "value_dim": 64}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def draw_keys(rng, n, d, c=0.0, norm=True, fixed=False):
    """Equicorrelated keys, written out again."""
    u = rng.standard_normal(d) / math.sqrt(d)
    u = unit(u) if fixed else u
    keys = math.sqrt(c) * u + math.sqrt(1 - c) * rng.standard_normal((n, d)) / math.sqrt(d)
    return unit(keys) if norm else keys


def draw_values(rng, n, v):
    return math.sqrt(v) * unit(rng.standard_normal((n, v)))


def simulate(draw, n, v, trials, cue=lambda rng, keys: keys):
    """Mean and standard error of (e_raw, e_opt, cosine, top-1) for y = sum_j (q . k_j) v_j."""
    found = []
    for trial in range(trials):
        rng = np.random.default_rng([7, trial])
        keys = draw(rng)
        values = draw_values(rng, n, v)
        read = cue(rng, keys) @ (keys.T @ values)
        total = np.sum(values**2)
        found.append(
            (
                np.sum((read - values) ** 2) / total,
                1 - np.sum(read * values) ** 2 / (np.sum(read**2) * total),
                np.mean(np.sum(unit(read) * unit(values), axis=1)),
                np.mean(np.argmax(read @ values.T, axis=1) == np.arange(n)),
            )
        )
    return np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(trials)


@pytest.mark.parametrize("correlation", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("d", [16, 64, 256])
def test_cross_square_of_unit_correlated_keys_is_the_hypergeometric_formula(d, correlation):
    found = moments(MEMORY, EquicorrelatedKeys(correlation), d)
    c2 = correlation**2
    exact = 1 - (d - 1) / d * (1 - c2) * hyp2f1(1, 1, d / 2 + 1, c2)
    assert found.cross_square == pytest.approx(exact, rel=1e-8)
    assert found.self_mean == pytest.approx(1, rel=1e-12)
    approximate = c2 + (1 - c2) ** 2 / d
    assert abs(approximate / exact - 1) > 1e-5  # the check would see a formula that is only close


@pytest.mark.parametrize("d, n", [(8, 5), (64, 64), (200, 1000)])
def test_raw_error_of_keys_that_are_not_normed_is_the_polynomial_in_the_correlation(d, n):
    c = 0.6
    redrawn = predict(MEMORY, EquicorrelatedKeys(c, unit_norm=False), d, d, n)
    assert redrawn.relative_squared_error == pytest.approx(2 / d + (n - 1) * (c**2 + (1 + c**2) / d), rel=1e-10)
    fixed = predict(MEMORY, EquicorrelatedKeys(c, unit_norm=False, fixed_mean=True), d, d, n)
    expected = 2 * (1 - c**2) / d + (n - 1) * (c**2 + (1 - c**2) / d)
    assert fixed.relative_squared_error == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n", [2, 16, 256])
def test_sphere_and_gaussian_keys_have_the_textbook_errors(n):
    d = 64
    sphere = predict(MEMORY, SphereKeys(), num_pairs=n, **SIZES)
    assert sphere.relative_squared_error == pytest.approx((n - 1) / d)
    assert sphere.scale_optimal_error == pytest.approx((n - 1) / (n - 1 + d), rel=0.1 / n)
    assert n == 2 or sphere.signal_to_noise == pytest.approx(d / (n - 1), rel=0.6 / n)
    gaussian = predict(LinearMemory(Identity(), key_scale=d**-0.5), GaussianKeys(), num_pairs=n, **SIZES)
    assert gaussian.relative_squared_error == pytest.approx((n + 1) / d)
    assert n == 2 or gaussian.scale_optimal_error == pytest.approx((n + 1) / (n + 1 + d), rel=0.25 / n)


def test_laws_that_are_the_sphere_law_give_its_numbers():
    expected = predict(MEMORY, SphereKeys(), num_pairs=50, **SIZES)
    same = [
        (MEMORY, EquicorrelatedKeys(0.0)),
        (CENTRED, SphereKeys()),
        (replace(MEMORY, key_norm="l2"), GaussianKeys()),
        (replace(MEMORY, feature_norm="l2"), GaussianKeys()),
        (replace(CENTRED, key_norm="l2"), EquicorrelatedKeys(0.7, unit_norm=False)),
    ]
    for memory, keys in same:
        found = predict(memory, keys, num_pairs=50, **SIZES)
        assert found.relative_squared_error == pytest.approx(expected.relative_squared_error, rel=1e-10)
        assert found.scale_optimal_error == pytest.approx(expected.scale_optimal_error, rel=1e-10)
        assert found.top1_accuracy == pytest.approx(expected.top1_accuracy, rel=1e-6)


def test_norm_after_the_map_is_norm_before_it_for_correlated_keys():
    keys = EquicorrelatedKeys(0.4, unit_norm=False)
    before = predict(replace(MEMORY, key_norm="l2"), keys, num_pairs=50, **SIZES)
    after = predict(replace(MEMORY, feature_norm="l2"), keys, num_pairs=50, **SIZES)
    assert after.relative_squared_error == pytest.approx(before.relative_squared_error, rel=1e-12)


def test_optimal_error_does_not_see_the_key_scale_and_raw_error_does():
    keys = EquicorrelatedKeys(0.4)
    one = predict(MEMORY, keys, num_pairs=50, **SIZES)
    scaled = predict(replace(MEMORY, key_scale="sqrt_dim"), keys, num_pairs=50, **SIZES)
    assert scaled.scale_optimal_error == pytest.approx(one.scale_optimal_error, rel=1e-12)
    assert scaled.relative_squared_error > 100 * one.relative_squared_error


def test_centring_takes_the_correlation_away():
    c, d, n = 0.5, 64, 128
    found = predict(CENTRED, EquicorrelatedKeys(c, unit_norm=False), d, d, n)
    gain = 1 - c
    expected = gain**2 * (1 + 2 / d + (n - 1) / d) - 2 * gain + 1
    assert found.relative_squared_error == pytest.approx(expected, rel=1e-10)
    independent = predict(MEMORY, SphereKeys(), d, d, n).scale_optimal_error
    assert predict(CENTRED, EquicorrelatedKeys(c), d, d, n).scale_optimal_error == pytest.approx(independent, abs=0.005)
    assert predict(MEMORY, EquicorrelatedKeys(c), d, d, n).scale_optimal_error > 0.95


@pytest.mark.parametrize("norm, fixed", [(True, False), (True, True), (False, False), (False, True)])
def test_errors_of_correlated_keys_agree_with_simulation(norm, fixed):
    d, n, c = 24, 32, 0.5
    keys = EquicorrelatedKeys(c, norm, fixed)
    mean, error = simulate(lambda rng: draw_keys(rng, n, d, c, norm, fixed), n, d, 600)
    found = predict(MEMORY, keys, d, d, n)
    assert abs(found.relative_squared_error - mean[0]) < 4 * error[0]
    assert abs(found.scale_optimal_error - mean[1]) < 4 * error[1] + 0.002 * mean[1]


def test_optimal_error_is_averaged_over_common_keys_and_not_taken_at_the_average():
    d, n, c = 12, 16, 0.5
    mean, error = simulate(lambda rng: draw_keys(rng, n, d, c, False), n, 64, 3000)
    keys = EquicorrelatedKeys(c, unit_norm=False)
    slack = 4 * error[1] + 0.02 * (1 - mean[1])
    assert abs(predict(MEMORY, keys, d, 64, n).scale_optimal_error - mean[1]) < slack
    m1, square, _, cross = moments(MEMORY, keys, d)
    assert abs(1 - m1**2 / (square + (n - 1) * cross) - mean[1]) > slack
    ignored = predict(MEMORY, EquicorrelatedKeys(0.0, unit_norm=False), d, 64, n).scale_optimal_error
    assert abs(ignored - mean[1]) > 5 * slack


def test_centred_unit_keys_agree_with_simulation():
    d, n, c = 24, 48, 0.6

    def centred(rng):
        keys = draw_keys(rng, n + 4096, d, c)
        return keys[:n] - keys[n:].mean(axis=0)

    mean, error = simulate(centred, n, d, 150)
    found = predict(CENTRED, EquicorrelatedKeys(c), d, d, n)
    assert abs(found.relative_squared_error - mean[0]) < 4 * error[0] + 0.001 * mean[0]
    assert abs(found.scale_optimal_error - mean[1]) < 4 * error[1] + 0.01 * (1 - mean[1])


@pytest.mark.parametrize(
    "n, cosine, top1",
    [(16, 0.9021, 1.0), (64, 0.7125, 0.9999), (128, 0.5801, 0.9809), (256, 0.4484, 0.7592), (1024, 0.2426, 0.0922)],
)
def test_cosine_and_top1_have_the_golden_values(n, cosine, top1):
    found = predict(MEMORY, SphereKeys(), num_pairs=n, **SIZES)
    assert found.cosine_similarity == pytest.approx(cosine, abs=0.0008)
    assert found.top1_accuracy == pytest.approx(top1, rel=0.012)


def normal_integral(n, d, v):
    """The textbook top-1: all scores independent normal variables."""
    from scipy.special import ndtr

    z, weights = np.polynomial.hermite_e.hermegauss(81)
    noise = (n - 1) / d
    spread = math.sqrt(1 / d + (1 + noise - 1 / d) / v)
    return weights @ ndtr((1 + z * math.sqrt(noise / v)) / spread) ** (n - 1) / weights.sum()


@pytest.mark.parametrize("gaussian", [False, True])
def test_cosine_and_top1_agree_with_simulation(gaussian):
    d, v, n = 32, 24, 64
    scale = math.sqrt(d)
    mean, error = simulate(lambda rng: scale * draw_keys(rng, n, d, 0.0, not gaussian), n, v, 400)
    memory = replace(MEMORY, key_scale=1.0 if gaussian else "sqrt_dim")
    found = predict(memory, GaussianKeys() if gaussian else SphereKeys(), d, v, n)
    assert abs(found.cosine_similarity - mean[2]) < 4 * error[2] + 0.004 * mean[2]
    slack = 4 * error[3] + 0.015 * mean[3]
    assert abs(found.top1_accuracy - mean[3]) < slack
    assert abs(normal_integral(n, d, v) - mean[3]) > slack


def test_noisy_cues_agree_with_simulation():
    d, n, c = 32, 40, 0.75

    def cue(rng, keys):
        across = rng.standard_normal(keys.shape)
        across = unit(across - np.sum(across * keys, axis=1, keepdims=True) * keys)
        return c * keys + math.sqrt(1 - c * c) * across

    mean, error = simulate(lambda rng: draw_keys(rng, n, d), n, d, 400, cue)
    found = predict(MEMORY, SphereKeys(), d, d, n, query_cosine=c)
    assert found.relative_squared_error == pytest.approx((1 - c) ** 2 + (n - 1) / d)
    assert abs(found.relative_squared_error - mean[0]) < 4 * error[0]
    assert abs(found.scale_optimal_error - mean[1]) < 4 * error[1] + 0.005
    assert abs(found.cosine_similarity - mean[2]) < 4 * error[2] + 0.004 * mean[2]
    assert abs(found.top1_accuracy - mean[3]) < 4 * error[3] + 0.025 * mean[3]


def test_gaussian_values_have_a_cosine_of_their_own_and_no_top1():
    d, n = 16, 64
    cosines = []
    for trial in range(300):
        rng = np.random.default_rng([11, trial])
        keys, values = draw_keys(rng, n, d), rng.standard_normal((n, d))
        cosines.append(np.mean(np.sum(unit(keys @ (keys.T @ values)) * unit(values), axis=1)))
    found = predict(MEMORY, SphereKeys(), d, d, n, values=GaussianValues())
    error = np.std(cosines) / math.sqrt(300)
    assert abs(found.cosine_similarity - np.mean(cosines)) < 4 * error + 0.006 * np.mean(cosines)
    assert math.isnan(found.top1_accuracy)
    assert "top1_accuracy" not in found.sources


def test_top1_falls_with_codewords_that_were_not_stored_and_needs_a_size_above_4096_pairs():
    alone = predict(MEMORY, SphereKeys(), num_pairs=100, **SIZES).top1_accuracy
    crowded = predict(MEMORY, SphereKeys(), num_pairs=100, codebook_size=4096, **SIZES).top1_accuracy
    assert crowded < alone < 1
    assert math.isnan(predict(MEMORY, SphereKeys(), num_pairs=5000, **SIZES).top1_accuracy)
    assert 0 < predict(MEMORY, SphereKeys(), num_pairs=5000, codebook_size=5000, **SIZES).top1_accuracy < 0.01
    # a published square memory: half of the items are decoded at N = 385
    assert top1_accuracy(64, 64, 385, 385, True) == pytest.approx(0.5, abs=0.005)


def test_one_pair_on_the_sphere_is_read_without_error():
    found = predict(MEMORY, SphereKeys(), num_pairs=1, **SIZES)
    numbers = (
        found.relative_squared_error,
        found.scale_optimal_error,
        found.cosine_similarity,
        found.top1_accuracy,
    )
    assert numbers == pytest.approx((0, 0, 1, 1), abs=1e-12)
    assert found.signal_to_noise == math.inf


@dataclass(frozen=True)
class StrangeKeys(Ensemble):
    def start(self, rng, dim):
        raise NotImplementedError


@pytest.mark.parametrize(
    "memory, keys, options, reason",
    [
        (MEMORY, StrangeKeys(), {}, "StrangeKeys"),
        (LinearMemory(Identity(), key_norm="sum"), GaussianKeys(), {}, "divided by their sum"),
        (LinearMemory(Identity(), readout=Normalized()), GaussianKeys(), {}, "can be negative"),
        (LinearMemory(ReLU(), readout=Normalized(), feature_center="mean"), GaussianKeys(), {}, "can be negative"),
        (LinearMemory(ReLU(), feature_norm="l2"), GaussianKeys(), {}, "l2 norm"),
        (CENTRED, EquicorrelatedKeys(1.0), {}, "correlation 1"),
    ],
)
def test_what_no_formula_covers_is_refused_in_words(memory, keys, options, reason):
    with pytest.raises(TheoryUnavailable, match=reason):
        predict(memory, keys, num_pairs=10, **SIZES, **options)


@pytest.mark.parametrize(
    "memory", [LinearMemory(ReLU()), LinearMemory(Dpfp(1)), LinearMemory(ReLU(), key_center="mean")]
)
def test_an_expansion_in_one_over_d_is_not_offered_in_few_dimensions(memory):
    with pytest.raises(TheoryUnavailable, match="below d = 16"):
        predict(memory, EquicorrelatedKeys(0.3), 8, 16, 20)
    assert math.isfinite(predict(memory, EquicorrelatedKeys(0.3), 16, 16, 20).scale_optimal_error)


@pytest.mark.parametrize("nu", [1, 2, 3])
def test_sampled_moments_of_dpfp_are_put_right_by_the_exact_ones(nu):
    """Without unit norm, m1 and mu have closed forms: d nu / 2 and d nu c1^2, c1 the arc-cosine kernel."""
    d, c = 64, 0.9
    found = moments(LinearMemory(Dpfp(nu), key_scale="sqrt_dim"), EquicorrelatedKeys(c, unit_norm=False), d)
    first = (math.sqrt(1 - c * c) + (math.pi - math.acos(c)) * c) / (2 * math.pi)
    assert found.self_mean == pytest.approx(d * nu / 2, rel=1e-9)
    assert found.cross_mean == pytest.approx(2 * d * nu * first**2, rel=1e-9)


def test_keys_that_have_no_feature_are_read_as_nothing():
    keys = EquicorrelatedKeys(0.999, unit_norm=False, fixed_mean=True)
    found = predict(LinearMemory(ReLU()), keys, 2, 2, 5)
    assert 0 < found.scale_optimal_error <= 1
    assert math.isnan(found.signal_to_noise)  # there are trials without a signal to expand about


def test_sizes_out_of_range_are_errors_that_name_the_argument():
    with pytest.raises(ValueError, match="num_pairs"):
        predict(MEMORY, SphereKeys(), num_pairs=0, **SIZES)
    with pytest.raises(ValueError, match="codebook_size"):
        predict(MEMORY, SphereKeys(), num_pairs=10, codebook_size=5, **SIZES)


def test_every_number_has_a_source_and_nothing_else_has():
    for memory, keys in ((MEMORY, SphereKeys()), (LinearMemory(EluPlusOne()), EquicorrelatedKeys(0.3))):
        found = predict(memory, keys, 16, 16, 20)
        names = set(found.__dataclass_fields__) - {"sources"}
        assert set(found.sources) == {name for name in names if not math.isnan(getattr(found, name))}
        assert all(source.formula and source.known_error for source in found.sources.values())
    assert predict(MEMORY, SphereKeys(), 16, 16, 20).sources["relative_squared_error"].exact
    assert not predict(LinearMemory(ReLU()), EquicorrelatedKeys(0.3), 16, 16, 20).sources["signal_to_noise"].exact


def test_moments_are_found_once_for_all_numbers_of_pairs():
    memory, keys = LinearMemory(ReLU(), key_scale=1.25), EquicorrelatedKeys(0.37)
    predict(memory, keys, 24, 24, 4)
    before = _law_moments.cache_info().misses
    for n in (8, 16, 1000):
        predict(memory, keys, 24, 24, n)
    assert _law_moments.cache_info().misses == before


def test_importing_the_theory_does_not_load_scipy_stats():
    code = "import sys, capmem.theory; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
