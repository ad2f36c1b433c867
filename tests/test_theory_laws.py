"""Predictions for every key law, value law and read-out, and for few pairs: simulations, golden tables, controls."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from capmem.ensembles import (
    AutoregressiveKeys,
    ClusteredKeys,
    DuplicatedKeys,
    EquicorrelatedKeys,
    GaussianKeys,
    GaussianValues,
    OneHotValues,
    OrthonormalKeys,
    PowerLawKeys,
    RademacherKeys,
    RademacherValues,
    SphereKeys,
    SphereValues,
    TightFrameKeys,
)
from capmem.feature_maps import Dpfp, EluPlusOne, Identity, Polynomial, ReLU, SquaredReLU, Taylor
from capmem.memory import LinearMemory
from capmem.readouts import Normalized, RMSNorm
from capmem.theory import meanfield, predict, trial_moments
from capmem.theory.top1 import top1_accuracy
from capmem.theory.values import value_law
from capmem.write_rules import Delta, LeastSquares

MEMORY = LinearMemory(Identity())
STANDARD_ERRORS = 4.5
RAW, OPTIMAL, COSINE, ODDS, TOP1 = range(5)
NAMES = ("relative_squared_error", "scale_optimal_error", "cosine_similarity", "signal_to_noise", "top1_accuracy")


def name(value):
    """A name that is the same in every process: functions are printed with an address."""
    return getattr(value, "__name__", None) or str(value)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def identity(x):
    return x


def relu(x):
    return np.maximum(x, 0)


def elu_plus_one(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def squared_relu(x):
    return relu(x) ** 2


def dpfp(x):
    r = relu(np.concatenate([x, -x], axis=-1))
    return r * np.roll(r, 1, axis=-1)


def linear(kappa, values):
    return kappa @ values


def normalized(kappa, values):
    return kappa @ values / kappa.sum(axis=1, keepdims=True)


def rms_norm(kappa, values):
    read = kappa @ values
    return read / np.sqrt(np.mean(read**2, axis=1, keepdims=True))


def simulate(keys, n, d, v, trials, phi=identity, read=linear, values=None, cosine=1.0, codebook=None):
    """Mean and standard error of the five metrics, with numpy alone but for the draws."""
    found = np.empty((trials, 5))
    law = values or SphereValues()
    for trial in range(trials):
        rng = np.random.default_rng([17, trial])
        stream = keys.start(rng, d)
        k = stream.draw(n)
        w = rng.standard_normal(k.shape)
        w = unit(w - np.sum(w * k, axis=1, keepdims=True) / np.sum(k * k, axis=1, keepdims=True) * k)
        size = np.linalg.norm(k, axis=1, keepdims=True)
        q = k if cosine == 1 else cosine * k + math.sqrt(1 - cosine**2) * size * w
        words = law.sample(np.random.default_rng([18, trial]), codebook or n, v)
        target = words[:n]
        y = read(phi(q) @ phi(k).T, target)
        scored = ~stream.superseded(np.arange(n), n)
        right = np.argmax(y @ words.T, axis=1) == np.arange(n)
        y, target, right = y[scored], target[scored], right[scored]
        total = np.sum(target**2)
        error = 1 - np.sum(y * target) ** 2 / (np.sum(y**2) * total)
        cos = np.mean(np.sum(unit(y) * unit(target), axis=1))
        with np.errstate(divide="ignore"):
            found[trial] = np.sum((y - target) ** 2) / total, error, cos, 1 / error - 1, right.mean()
    return found.mean(axis=0), found.std(axis=0) / math.sqrt(trials)


def gram_error(keys, n, d, trials, phi=identity, cosine=1.0, extra=0.0):
    """Mean and standard error of e_raw, averaged over values by hand; `extra`: the weight of the rows' sums."""
    errors = np.empty(trials)
    for trial in range(trials):
        rng = np.random.default_rng([19, trial])
        stream = keys.start(rng, d)
        k = stream.draw(n)
        w = rng.standard_normal(k.shape)
        w = unit(w - np.sum(w * k, axis=1, keepdims=True) / np.sum(k * k, axis=1, keepdims=True) * k)
        q = cosine * k + math.sqrt(1 - cosine**2) * np.linalg.norm(k, axis=1, keepdims=True) * w
        rest = (phi(q) @ phi(k).T - np.eye(n))[~stream.superseded(np.arange(n), n)]
        errors[trial] = np.mean(np.sum(rest**2, axis=1) + extra * rest.sum(axis=1) ** 2) / (1 + extra)
    return errors.mean(), errors.std() / math.sqrt(trials)


def agree_raw(found, mean, error):
    assert abs(found.relative_squared_error - mean) < STANDARD_ERRORS * error + 1e-12


def agree(found, simulated, **stated):
    """Assert that the named metrics are within the stated relative error, besides the standard errors."""
    mean, error = simulated
    for name, slack in stated.items():
        i = NAMES.index(name)
        assert abs(getattr(found, name) - mean[i]) < STANDARD_ERRORS * error[i] + slack * abs(mean[i]), name


@pytest.mark.parametrize("n", [10, 40])
@pytest.mark.parametrize(
    "keys, optimal, cosine, top1",
    [
        (RademacherKeys(), 0, 0.006, 0.03),
        (PowerLawKeys(1.0), 0.055, 0.09, 0.2),
        (PowerLawKeys(0.5), 0.02, 0.02, 0.05),
        (AutoregressiveKeys(0.9), 0.005, 0.01, 0.06),
        (AutoregressiveKeys(-0.7), 0.01, 0.02, 0.05),
        (AutoregressiveKeys(0.8, unit_norm=False), 0.03, 0.07, 0.2),
        (ClusteredKeys(5, 0.6), 0.01, 0.015, 0.06),
        (DuplicatedKeys(0.25), 0.03, 0.01, None),
    ],
    ids=name,
)
def test_key_laws_agree_with_simulation(keys, optimal, cosine, top1, n):
    d, v = 20, 16
    found = predict(MEMORY, keys, d, v, n)
    stated = {} if top1 is None else {"top1_accuracy": top1}
    simulated = simulate(keys, n, d, v, max(2500 // n, 100))
    agree(found, simulated, relative_squared_error=0, scale_optimal_error=optimal, cosine_similarity=cosine, **stated)
    assert found.sources["relative_squared_error"].exact
    as_sphere = predict(MEMORY, SphereKeys(), d, v, n).relative_squared_error
    mean, error = simulated
    assert isinstance(keys, RademacherKeys) or abs(as_sphere - mean[RAW]) > 6 * error[RAW]


def test_normed_power_law_keys_have_a_spectrum_of_their_own():
    d, n = 24, 20
    found = predict(LinearMemory(Identity(), key_norm="l2"), PowerLawKeys(1.0), d, d, n)
    simulated = simulate(PowerLawKeys(1.0), n, d, d, 250, phi=unit)
    agree(found, simulated, relative_squared_error=0, scale_optimal_error=0.005, cosine_similarity=0.01)
    spectrum = PowerLawKeys(1.0).variances(d)
    as_if_not_normed = (n - 1) * float(spectrum @ spectrum)
    assert abs(as_if_not_normed - simulated[0][RAW]) > 8 * simulated[1][RAW]


@pytest.mark.parametrize("n, d", [(33, 32), (64, 16), (200, 64)])
def test_tight_frames_meet_the_rank_floor(n, d):
    for values in (SphereValues(), GaussianValues()):
        found = predict(MEMORY, TightFrameKeys(), d, 24, n, values=values)
        assert found.scale_optimal_error == pytest.approx(1 - d / n, rel=1e-12)
        assert found.relative_squared_error == pytest.approx(n / d - 1, rel=1e-12)
        simulated = simulate(TightFrameKeys(), n, d, 24, 30, values=values)
        agree(found, simulated, scale_optimal_error=0, signal_to_noise=0.001, cosine_similarity=0.004)
    assert found.sources["scale_optimal_error"].exact
    sphere = predict(MEMORY, SphereKeys(), d, 24, n).scale_optimal_error
    assert sphere > 1.05 * (1 - d / n)


def test_orthonormal_keys_and_short_frames_are_read_without_error():
    for keys in (OrthonormalKeys(), TightFrameKeys()):
        found = predict(MEMORY, keys, 32, 8, 20)
        assert (found.relative_squared_error, found.scale_optimal_error) == (0, 0)
        assert (found.cosine_similarity, found.top1_accuracy, found.signal_to_noise) == (1, 1, math.inf)
    # noise across the key meets the others: (1-c)^2 + (1-c^2) (N-1)/(d-1)
    noisy = predict(MEMORY, OrthonormalKeys(), 32, 8, 20, query_cosine=0.8)
    assert noisy.relative_squared_error == pytest.approx(0.2**2 + 0.36 * 19 / 31)
    agree_raw(noisy, *gram_error(OrthonormalKeys(), 20, 32, 100, cosine=0.8))


@pytest.mark.parametrize(
    "keys",
    [TightFrameKeys(), AutoregressiveKeys(0.8, unit_norm=False), ClusteredKeys(4, 0.7), PowerLawKeys(1.0)],
    ids=name,
)
def test_noisy_cues_to_structured_keys(keys):
    d, n, c = 12, 24, 0.6
    found = predict(MEMORY, keys, d, d, n, query_cosine=c)
    agree_raw(found, *gram_error(keys, n, d, 400, cosine=c))


@pytest.mark.parametrize(
    "phi, plain, keys, scale",
    [
        (ReLU(), relu, PowerLawKeys(1.0), 1.0),
        (EluPlusOne(), elu_plus_one, PowerLawKeys(0.5), 2.0),
        (EluPlusOne(), elu_plus_one, RademacherKeys(), 1.0),
        (Dpfp(1), dpfp, DuplicatedKeys(0.4), 3.0),
    ],
    ids=name,
)
def test_maps_of_unlike_coordinates_and_of_repeated_keys(phi, plain, keys, scale):
    d, n = 16, 12
    found = predict(LinearMemory(phi, key_scale=scale), keys, d, d, n)
    agree_raw(found, *gram_error(keys, n, d, 500, phi=lambda x: plain(scale * x)))


def test_laws_at_the_edge_of_their_range_are_plainer_laws():
    pairs = [
        (ClusteredKeys(1, 0.4), EquicorrelatedKeys(0.4)),
        (ClusteredKeys(7, 0.0), SphereKeys()),
        (AutoregressiveKeys(0.0), SphereKeys()),
        (PowerLawKeys(0.0), EquicorrelatedKeys(0.0, unit_norm=False)),
        (DuplicatedKeys(0.0), SphereKeys()),
    ]
    for keys, plainer in pairs:
        for memory in (MEMORY, LinearMemory(ReLU())):
            assert predict(memory, keys, 24, 24, 30) == predict(memory, plainer, 24, 24, 30)
    expected = predict(MEMORY, SphereKeys(), 24, 24, 30).relative_squared_error
    for keys in (ClusteredKeys(7, 1e-5), AutoregressiveKeys(1e-5), DuplicatedKeys(1e-7)):
        assert predict(MEMORY, keys, 24, 24, 30).relative_squared_error == pytest.approx(expected, rel=1e-5)


def test_drifting_keys_have_the_published_sum_over_lags():
    d, n, a = 64, 40, 0.9
    r = a * a
    lags = 2 * r * (n * (1 - r) - 1 + r**n) / (n * (1 - r) ** 2)
    found = predict(MEMORY, AutoregressiveKeys(a, unit_norm=False), d, d, n)
    assert found.relative_squared_error == pytest.approx((n + 1) / d + (1 + 1 / d) * lags, rel=1e-10)
    long = predict(MEMORY, AutoregressiveKeys(a, unit_norm=False), d, d, 10**9).relative_squared_error
    assert long == pytest.approx((10**9 + 1) / d + (1 + 1 / d) * 2 * r / (1 - r), rel=1e-10)


def test_a_power_law_has_the_published_participation_ratio():
    found = predict(MEMORY, PowerLawKeys(1.0), 64, 64, 50).relative_squared_error
    assert 51 / found == pytest.approx(13.81, abs=0.005)


VALUES = [GaussianValues(), RademacherValues(), OneHotValues()]


@pytest.mark.parametrize("values", VALUES, ids=name)
def test_value_laws_agree_with_simulation(values):
    d, v, n = 16, 32, 24
    found = predict(MEMORY, SphereKeys(), d, v, n, values=values)
    agree(
        found,
        simulate(SphereKeys(), n, d, v, 250, values=values),
        relative_squared_error=0,
        scale_optimal_error=0.003,
        signal_to_noise=0.008,
        cosine_similarity=0.005,
    )


def test_one_hot_values_ask_for_the_nearest_key():
    d, v, n = 12, 40, 30
    assert predict(MEMORY, SphereKeys(), d, v, n, values=OneHotValues()).top1_accuracy == 1
    for keys, cosine in ((SphereKeys(), 0.7), (GaussianKeys(), 1.0), (GaussianKeys(), 0.7)):
        found = predict(MEMORY, keys, d, v, n, values=OneHotValues(), query_cosine=cosine, codebook_size=v)
        simulated = simulate(keys, n, d, v, 300, values=OneHotValues(), cosine=cosine, codebook=v)
        agree(found, simulated, top1_accuracy=0)
        assert found.top1_accuracy < 0.97


@pytest.mark.parametrize(
    "phi, plain, keys, values, extra",
    [
        (Identity(), identity, EquicorrelatedKeys(0.5), SphereValues(0.7), 0.49),
        (Identity(), identity, RademacherKeys(), OneHotValues(0.3), 0.6 + 16 * 0.09),
        (ReLU(), relu, GaussianKeys(), GaussianValues(0.7), 0.49),
        (EluPlusOne(), elu_plus_one, GaussianKeys(), OneHotValues(-0.2), -0.4 + 16 * 0.04),
    ],
    ids=name,
)
def test_a_common_mean_of_the_values_costs_what_the_rows_sum_to(phi, plain, keys, values, extra):
    d, v, n = 8, 16, 12
    memory = LinearMemory(phi, key_scale=0.3)
    found = predict(memory, keys, d, v, n, values=values)
    mean, error = gram_error(keys, n, d, 600, phi=lambda x: plain(0.3 * x), extra=extra)
    agree_raw(found, mean, error)
    assert math.isnan(found.scale_optimal_error)
    ignored = predict(memory, keys, d, v, n, values=type(values)()).relative_squared_error
    assert isinstance(keys, RademacherKeys) or abs(ignored - mean) > 6 * error


def test_what_rows_sum_to_is_what_values_with_a_mean_cost():
    values, n = OneHotValues(0.3), 10
    found = predict(LinearMemory(Identity(), key_scale=0.5), EquicorrelatedKeys(0.5), 8, 12, n, values=values)
    simulated = simulate(EquicorrelatedKeys(0.5), n, 8, 12, 800, phi=lambda x: 0.5 * x, values=values)
    agree(found, simulated, relative_squared_error=0)


def test_a_denominator_lets_the_common_mean_pass():
    values, n = SphereValues(1.0), 20
    memory = LinearMemory(EluPlusOne(), readout=Normalized())
    found = predict(memory, GaussianKeys(), 16, 16, n, values=values)
    plain = predict(memory, GaussianKeys(), 16, 16, n)
    assert found.relative_squared_error == pytest.approx(plain.relative_squared_error / 2)
    simulated = simulate(GaussianKeys(), n, 16, 16, 150, phi=elu_plus_one, read=normalized, values=values)
    agree(found, simulated, relative_squared_error=0.005)


@pytest.mark.parametrize(
    "phi, plain, optimal",
    [
        (ReLU(), relu, 0.02),
        (EluPlusOne(), elu_plus_one, 0.01),
        (SquaredReLU(), squared_relu, 0.04),
        (Dpfp(), dpfp, 0.03),
    ],
    ids=name,
)
@pytest.mark.parametrize("n", [8, 64])
def test_a_denominator_in_the_mean_field(phi, plain, optimal, n):
    d = 64
    found = predict(LinearMemory(phi, readout=Normalized()), GaussianKeys(), d, d, n)
    simulated = simulate(GaussianKeys(), n, d, d, 800 // n, phi=plain, read=normalized)
    agree(found, simulated, relative_squared_error=0.025, scale_optimal_error=optimal)
    linear_one = predict(LinearMemory(phi), GaussianKeys(), d, d, n)
    assert found.cosine_similarity == linear_one.cosine_similarity
    assert found.top1_accuracy == linear_one.top1_accuracy


def test_an_epsilon_shrinks_what_is_read():
    memory = LinearMemory(ReLU(), readout=Normalized(epsilon=20.0))
    found = predict(memory, GaussianKeys(), 32, 32, 16)

    def read(kappa, values):
        return kappa @ values / (kappa.sum(axis=1, keepdims=True) + 20.0)

    simulated = simulate(GaussianKeys(), 16, 32, 32, 150, phi=relu, read=read)
    agree(found, simulated, relative_squared_error=0.01, scale_optimal_error=0.02)
    without = predict(LinearMemory(ReLU(), readout=Normalized()), GaussianKeys(), 32, 32, 16).relative_squared_error
    assert abs(without - simulated[0][RAW]) > 0.03 * without


def test_a_normalised_output_leaves_the_angle_alone():
    d, n = 32, 24
    memory = LinearMemory(Identity(), readout=RMSNorm(epsilon=0.0))
    found = predict(memory, SphereKeys(), d, d, n)
    simulated = simulate(SphereKeys(), n, d, d, 200, read=rms_norm)
    agree(found, simulated, relative_squared_error=0.006, scale_optimal_error=0.005, signal_to_noise=0.03)
    assert found.relative_squared_error == pytest.approx(2 * (1 - found.cosine_similarity))
    assert found.top1_accuracy == predict(MEMORY, SphereKeys(), d, d, n).top1_accuracy
    shrunk = predict(LinearMemory(Identity(), readout=RMSNorm(epsilon=10.0)), SphereKeys(), d, d, n)
    power = 1 + (n - 1) / d
    expected = 1 + power / (power + 10) - 2 * (power / (power + 10)) ** 0.5 * found.cosine_similarity
    assert shrunk.relative_squared_error == pytest.approx(expected)


FEW = [
    (Identity(), identity, SphereKeys(), 0.012, 0.075),
    (Identity(), identity, GaussianKeys(), 0.012, 0.04),
    (ReLU(), relu, GaussianKeys(), 0.02, 0.03),
    (SquaredReLU(), squared_relu, SphereKeys(), 0.03, 0.06),
    (Dpfp(), dpfp, SphereKeys(), 0.05, 0.11),
]


@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("d, v", [(16, 64), (64, 64)])
@pytest.mark.parametrize("phi, plain, keys, optimal, odds", FEW, ids=name)
def test_few_pairs_are_put_right_to_second_order(phi, plain, keys, optimal, odds, d, v, n):
    found = predict(LinearMemory(phi), keys, d, v, n)
    mean, error = simulate(keys, n, d, v, 1200 // n, phi=plain)
    agree(found, (mean, error), scale_optimal_error=optimal, signal_to_noise=odds)


def test_the_ratio_of_means_fails_where_pairs_are_few():
    d, v = 16, 64
    for n in (4, 8):
        mean, error = simulate(GaussianKeys(), n, d, v, 500)
        assert (n + 1) / (n + 1 + d) - mean[OPTIMAL] > 5 * error[OPTIMAL]
        assert mean[ODDS] - d / (n + 1) > 5 * error[ODDS]


def test_few_values_make_the_optimal_error_smaller():
    d, n = 64, 8
    few, many = (predict(MEMORY, SphereKeys(), d, v, n).scale_optimal_error for v in (4, 10**6))
    mean, error = simulate(SphereKeys(), n, d, 4, 1500)
    assert abs(few - mean[OPTIMAL]) < STANDARD_ERRORS * error[OPTIMAL]
    assert abs(many - mean[OPTIMAL]) > 5 * error[OPTIMAL]


def test_one_pair_is_read_exactly_up_to_scale():
    for memory in (MEMORY, LinearMemory(ReLU()), LinearMemory(Dpfp())):
        found = predict(memory, GaussianKeys(), 16, 8, 1)
        assert (found.scale_optimal_error, found.signal_to_noise) == (0, math.inf)
        assert found.relative_squared_error > 0.1


@pytest.mark.parametrize(
    "phi, plain, cosine, top1",
    [(ReLU(), relu, 0.015, 0.06), (EluPlusOne(), elu_plus_one, 0.01, 0.08), (Dpfp(), dpfp, 0.015, 0.08)],
    ids=name,
)
@pytest.mark.parametrize("n, codebook", [(32, 32), (16, 400)])
def test_cosine_and_top1_of_any_map_in_the_mean_field(phi, plain, cosine, top1, n, codebook):
    d = 48
    found = predict(LinearMemory(phi), GaussianKeys(), d, d, n, codebook_size=codebook)
    simulated = simulate(GaussianKeys(), n, d, d, 80, phi=plain, codebook=codebook)
    agree(found, simulated, cosine_similarity=cosine, top1_accuracy=top1)


def test_the_mean_field_is_the_accurate_form_for_gaussian_keys():
    d, n = 64, 200
    found, law = trial_moments(MEMORY, GaussianKeys(), d), value_law(SphereValues(), d)
    accurate = predict(MEMORY, GaussianKeys(), d, d, n)
    assert meanfield.expected_top1(found, n, n, law) == pytest.approx(accurate.top1_accuracy, rel=2e-3)
    assert meanfield.expected_cosine(found, n, law) == pytest.approx(accurate.cosine_similarity, rel=1e-4)


def test_an_uncentred_spectrum_is_what_interferes():
    d, n = 48, 40
    mean, error = simulate(GaussianKeys(), n, d, d, 150, phi=relu)
    found = predict(LinearMemory(ReLU()), GaussianKeys(), d, d, n).scale_optimal_error
    assert abs(found - mean[OPTIMAL]) < STANDARD_ERRORS * error[OPTIMAL] + 0.005
    centred = (n - 1) / (n - 1 + d)  # the effective dimension of the covariance is d
    assert mean[OPTIMAL] - centred > 0.2


# N, e_raw, e_opt, cosine, top-1 by formula and by simulation, delta rule: d = v = 64 on the sphere
GOLDEN = [
    (2, 0.0156, 0.0154, 0.9926, 1.0000, 1.0000, 0.0082, 0),
    (8, 0.1094, 0.0986, 0.9505, 1.0000, 1.0000, 0.0600, 0),
    (16, 0.2344, 0.1899, 0.9021, 1.0000, 1.0000, 0.1345, 0),
    (32, 0.4844, 0.3263, 0.8236, 1.0000, 1.0000, 0.2923, 0),
    (64, 0.9844, 0.4961, 0.7125, 0.9998, 0.9999, 0.5982, 0),
    (96, 1.4844, 0.5975, 0.6362, 0.9961, 0.9966, 0.8557, 0.3333),
    (128, 1.9844, 0.6649, 0.5801, 0.9804, 0.9809, 1.0583, 0.5000),
    (192, 2.9844, 0.7490, 0.5016, 0.8931, 0.8971, 1.3327, 0.6667),
    (256, 3.9844, 0.7994, 0.4484, 0.7581, 0.7592, 1.4955, 0.7500),
    (384, 5.9844, 0.8568, 0.3788, 0.5023, 0.5049, 1.6655, 0.8333),
    (512, 7.9844, 0.8887, 0.3328, 0.3319, 0.3343, 1.7498, 0.8750),
    (1024, 15.9844, 0.9411, 0.2426, 0.0916, 0.0922, 1.8750, 0.9375),
]


@pytest.mark.parametrize("n, raw, optimal, cosine, top1, simulated, delta, least_squares", GOLDEN)
def test_the_golden_table_of_the_sphere(n, raw, optimal, cosine, top1, simulated, delta, least_squares):
    sizes = {"key_dim": 64, "value_dim": 64, "num_pairs": n}
    found = predict(MEMORY, SphereKeys(), **sizes)
    assert found.relative_squared_error == pytest.approx(raw, abs=6e-5)
    assert found.scale_optimal_error == pytest.approx(optimal, abs=6e-5, rel=0.1 / n)  # the table's is for large N
    assert found.cosine_similarity == pytest.approx(cosine, abs=4 * 0.0007)
    assert found.top1_accuracy == pytest.approx(top1, abs=1.5e-4)
    assert found.top1_accuracy == pytest.approx(simulated, rel=0.012)
    for rule, expected in ((Delta(1.0), delta), (LeastSquares(0.0), least_squares)):
        memory = LinearMemory(Identity(), write_rule=rule)
        assert predict(memory, SphereKeys(), **sizes).relative_squared_error == pytest.approx(expected, abs=6e-5)


CAPACITIES = [(16, 7, 15, 38), (32, 28, 52, 117), (64, 113, 188, 385), (128, 443, 691, 1313), (256, 1697, 2533, 4552)]


@pytest.mark.parametrize("d, pairs", [(row[0], row[1:]) for row in CAPACITIES])
def test_the_golden_capacities_of_a_square_memory(d, pairs):
    for share, expected in zip((0.99, 0.9, 0.5), pairs, strict=True):
        low, high = max(2, int(expected * 0.9) - 1), int(expected * 1.1) + 2
        crossing = brentq(lambda n, share=share: top1_accuracy(d, d, n, n, True) - share, low, high, xtol=0.01)
        assert crossing == pytest.approx(expected, abs=0.51, rel=5e-4)


def textbook_top1(n, d, v):
    """The textbook integral: all scores independent normal variables."""
    z, weights = np.polynomial.hermite_e.hermegauss(81)
    noise = (n - 1) / d
    spread = math.sqrt(1 / d + (1 + noise - 1 / d) / v)
    return weights @ ndtr((1 + z * math.sqrt(noise / v)) / spread) ** (n - 1) / weights.sum()


def test_the_textbook_integral_misses_the_golden_table():
    misses = [abs(textbook_top1(row[0], 64, 64) / row[5] - 1) for row in GOLDEN if row[5] < 0.95]
    assert min(misses) > 0.03


@pytest.mark.parametrize(
    "d, v, expected",
    [
        (16, 64, (1.000, 0.9998, 0.9948, 0.915, 0.549, 0.181, 0.048)),
        (64, 64, (1, 1, 1, 1.0000, 0.9992, 0.9385, 0.5563)),
        (128, 128, (1, 1, 1, 1, 1, 1.0000, 0.9998)),
    ],
)
def test_the_golden_recall_against_a_large_codebook(d, v, expected):
    for n, share in zip((4, 8, 16, 32, 64, 128, 256), expected, strict=True):
        found = predict(MEMORY, SphereKeys(), d, v, n, codebook_size=4096).top1_accuracy
        assert found == pytest.approx(share, abs=6e-4)


def test_the_golden_interference_of_a_quadratic_kernel():
    for n, expected in ((16, 0.0107), (64, 0.0447), (256, 0.181), (1024, 0.727)):
        found = predict(LinearMemory(Polynomial(2)), SphereKeys(), 64, 64, n).relative_squared_error
        assert found == pytest.approx(expected, abs=6e-4, rel=1e-3)


def test_taylor_features_of_signs_are_summed_over_the_binomial_law():
    d, n = 16, 12
    memory = LinearMemory(Taylor(2), key_scale="sqrt_dim")
    found = predict(memory, RademacherKeys(), d, d, n)
    u = math.sqrt(d) * (1 - 2 * np.arange(d + 1) / d)
    chances = np.array([math.comb(d, j) for j in range(d + 1)]) / 2**d
    kappa = 1 + u + u * u / 2
    expected = (kappa[0] - 1) ** 2 + (n - 1) * float(chances @ kappa**2)
    assert found.relative_squared_error == pytest.approx(expected, rel=1e-12)
