"""Predictions for softmax memories: capacities, exact cases, simulations, refusals."""

import math

import numpy as np
import pytest
from scipy.special import hyp0f1

from capmem.ensembles import (
    EquicorrelatedKeys,
    GaussianKeys,
    OneHotValues,
    OrthonormalKeys,
    RademacherKeys,
    RademacherValues,
    SphereKeys,
    SphereValues,
    TightFrameKeys,
)
from capmem.memory import SoftmaxMemory
from capmem.theory import TheoryUnavailable, predict
from capmem.theory.softmax import log_0f1

STANDARD_ERRORS = 4.5
NAMES = ("relative_squared_error", "scale_optimal_error", "cosine_similarity", "signal_to_noise", "top1_accuracy")


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def simulate(keys, beta, n, d, v, trials, values=None, cosine=1.0):
    """Mean and standard error of the five metrics of V^T softmax(beta K q)."""
    found = np.empty((trials, 5))
    for trial in range(trials):
        rng = np.random.default_rng([23, trial])
        k = keys.sample(rng, n, d)
        w = rng.standard_normal(k.shape)
        w = unit(w - np.sum(w * k, axis=1, keepdims=True) / np.sum(k * k, axis=1, keepdims=True) * k)
        q = cosine * k + math.sqrt(1 - cosine**2) * np.linalg.norm(k, axis=1, keepdims=True) * w
        target = (values or SphereValues()).sample(np.random.default_rng([24, trial]), n, v)
        scores = beta * (q @ k.T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        y = weights @ target / weights.sum(axis=1, keepdims=True)
        total = np.sum(target**2)
        error = 1 - np.sum(y * target) ** 2 / (np.sum(y**2) * total)
        cos = np.mean(np.sum(unit(y) * unit(target), axis=1))
        right = np.mean(np.argmax(y @ target.T, axis=1) == np.arange(n))
        found[trial] = np.sum((y - target) ** 2) / total, error, cos, 1 / error - 1, right
    return found.mean(axis=0), found.std(axis=0) / math.sqrt(trials)


def agree(found, simulated, **stated):
    mean, error = simulated
    for name, slack in stated.items():
        i = NAMES.index(name)
        assert abs(getattr(found, name) - mean[i]) < STANDARD_ERRORS * error[i] + slack * abs(mean[i]), name


@pytest.mark.parametrize("beta, pairs", [(4, 1.8e3), (8, 1.27e6), (16, 5.6e10), (32, 1.9e17)])
def test_the_published_capacities_at_a_signal_to_noise_ratio_of_one(beta, pairs):
    capacity = math.exp(2 * beta - log_0f1(64, 2 * beta))
    assert capacity == pytest.approx(pairs, rel=0.03)
    if pairs < 1e12:  # more are not asked for; the noise is that of N - 1 others
        found = predict(SoftmaxMemory(beta=float(beta)), SphereKeys(), 64, 64, round(capacity) + 1)
        assert found.signal_to_noise == pytest.approx(1, rel=0.05)


def test_the_normal_approximation_of_the_scores_is_not_good_enough():
    exact = log_0f1(64, 2 * 16.0)
    assert math.exp(2 * 16.0**2 / 64 - exact) > 2


@pytest.mark.parametrize("dim", [1, 3, 16, 64, 500])
@pytest.mark.parametrize("x", [1e-3, 0.5, 3.0, 20.0])
def test_the_mean_of_an_exponential_on_the_sphere(dim, x):
    assert log_0f1(dim, x) == pytest.approx(math.log(hyp0f1(dim / 2, x * x / 4)), rel=1e-9, abs=1e-14)
    assert math.isfinite(log_0f1(dim, 5000.0))


@pytest.mark.parametrize(
    "keys, beta, d, n",
    [
        (SphereKeys(), 1.0, 16, 24),
        (SphereKeys(), 4.0, 16, 60),
        (SphereKeys(), 8.0, 64, 100),
        (RademacherKeys(), 4.0, 20, 60),
        (GaussianKeys(), 0.25, 16, 64),
    ],
    ids=str,
)
def test_the_mean_field_agrees_with_simulation(keys, beta, d, n):
    found = predict(SoftmaxMemory(beta=beta), keys, d, d, n)
    simulated = simulate(keys, beta, n, d, d, 150)
    agree(
        found,
        simulated,
        relative_squared_error=0.025,
        scale_optimal_error=0.03,
        signal_to_noise=0.06,
        cosine_similarity=0.01,
        top1_accuracy=0.02,
    )
    undivided = n * math.exp(-2 * beta) if isinstance(keys, SphereKeys) else 0.0
    assert abs(undivided - simulated[0][0]) > 0.1 * simulated[0][0]


@pytest.mark.parametrize(
    ("beta", "d", "n", "cosine"), [(0.517, 3, 2, 0.8), (0.5, 2, 2, 0.8), (1.0, 3, 2, 0.8), (0.5, 8, 4, 0.5)]
)
def test_few_gaussian_keys_are_as_far_off_as_stated(beta, d, n, cosine):
    values = RademacherValues()
    found = predict(SoftmaxMemory(beta=beta), GaussianKeys(), d, 16, n, values=values, query_cosine=cosine)
    mean, error = simulate(GaussianKeys(), beta, n, d, 16, 2000, values, cosine)
    for i, name in enumerate(NAMES[:3]):
        if name in found.sources:
            stated = found.sources[name].known_error.at(d, 16, n)
            assert abs(getattr(found, name) - mean[i]) < stated * mean[i] + 3 * error[i], name
    assert "signal_to_noise" not in found.sources
    off = abs(found.scale_optimal_error / mean[1] - 1)
    assert off > 0.15  # what was stated before


def test_gaussian_keys_of_large_scores_are_not_predicted():
    with pytest.raises(TheoryUnavailable, match="unseen"):
        predict(SoftmaxMemory(beta=1.0), GaussianKeys(), 6, 16, 2, query_cosine=0.5)  # 65% low


def test_noisy_cues_and_one_hot_values():
    d, n, beta, cosine = 32, 40, 6.0, 0.6
    found = predict(SoftmaxMemory(beta=beta), SphereKeys(), d, 64, n, values=OneHotValues(), query_cosine=cosine)
    simulated = simulate(SphereKeys(), beta, n, d, 64, 200, OneHotValues(), cosine)
    agree(
        found,
        simulated,
        relative_squared_error=0.01,
        scale_optimal_error=0.03,
        cosine_similarity=0.01,
        top1_accuracy=0.0,
    )
    assert found.top1_accuracy < 1


def test_orthonormal_keys_have_fixed_weights():
    d, n, beta = 32, 20, 3.0
    found = predict(SoftmaxMemory(beta=beta), OrthonormalKeys(), d, 32, n, values=OneHotValues())
    own = 1 / (1 + (n - 1) * math.exp(-beta))
    other = (1 - own) / (n - 1)
    assert found.relative_squared_error == pytest.approx((1 - own) ** 2 + (n - 1) * other**2)
    assert found.scale_optimal_error == pytest.approx(1 - own**2 / (own**2 + (n - 1) * other**2))
    assert found.cosine_similarity == pytest.approx(own / math.hypot(own, other * math.sqrt(n - 1)))
    assert found.top1_accuracy == 1
    same = predict(SoftmaxMemory(beta=beta), TightFrameKeys(), d, 32, n, values=OneHotValues())
    assert same == found


def test_the_default_temperature_is_that_of_attention():
    d, n = 16, 30
    assert predict(SoftmaxMemory(), SphereKeys(), d, d, n) == predict(SoftmaxMemory(beta=0.25), SphereKeys(), d, d, n)


def test_a_common_mean_of_the_values_passes_through():
    values = SphereValues(2.0)
    found = predict(SoftmaxMemory(beta=4.0), SphereKeys(), 16, 16, 50, values=values)
    plain = predict(SoftmaxMemory(beta=4.0), SphereKeys(), 16, 16, 50)
    assert found.relative_squared_error == pytest.approx(plain.relative_squared_error / 5)
    simulated = simulate(SphereKeys(), 4.0, 50, 16, 16, 100, values)
    agree(found, simulated, relative_squared_error=0.02)


def test_one_pair_is_returned_whatever_is_asked():
    found = predict(SoftmaxMemory(beta=2.0), SphereKeys(), 16, 16, 1, query_cosine=0.1)
    assert (found.relative_squared_error, found.scale_optimal_error) == (0, 0)


def test_the_published_interference_leaves_out_that_denominators_vary():
    beta, d, n = 8.0, 64, 256
    undivided = (n - 1) * math.exp(log_0f1(d, 2 * beta) - 2 * beta)
    assert undivided == pytest.approx(2.00e-4, abs=1e-6)  # 255/64 for the identity map
    found = predict(SoftmaxMemory(beta=beta), SphereKeys(), d, d, n)
    simulated = simulate(SphereKeys(), beta, n, d, d, 40)
    agree(found, simulated, scale_optimal_error=0.01, signal_to_noise=0.02)
    assert simulated[0][1] > 1.3 * undivided


@pytest.mark.parametrize(
    "memory, keys, reason",
    [
        (SoftmaxMemory(steps=3), SphereKeys(), "more than one step"),
        (SoftmaxMemory(), EquicorrelatedKeys(0.5), "EquicorrelatedKeys"),
        (SoftmaxMemory(beta=2.0), GaussianKeys(), "unseen"),
        (SoftmaxMemory(), TightFrameKeys(), "TightFrameKeys"),
    ],
    ids=str,
)
def test_what_no_formula_covers_is_refused(memory, keys, reason):
    with pytest.raises(TheoryUnavailable, match=reason):
        predict(memory, keys, 16, 16, 20)
