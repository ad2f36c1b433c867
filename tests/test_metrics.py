"""Each metric against its definition, written out by hand, and its stated answer for odd input."""

import math

import numpy as np
import pytest

from capmem.metrics import (
    bits_per_parameter,
    cosine_similarity,
    interference,
    relative_squared_error,
    scale_optimal_error,
    signal_to_noise,
    top1_accuracy,
)

PAIRWISE = [relative_squared_error, scale_optimal_error, cosine_similarity, signal_to_noise]


def test_relative_squared_error_of_a_case_by_hand():
    retrieved, target = np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 3.0]])
    assert relative_squared_error(retrieved, target) == pytest.approx((1 + 1) / (1 + 9))


def test_scale_optimal_error_is_the_least_over_all_gains(rng):
    retrieved, target = rng.standard_normal((2, 30, 5))
    gains = np.linspace(-2, 2, 40001)
    least = min(relative_squared_error(g * retrieved, target) for g in gains[:: len(gains) // 400])
    best = np.vdot(retrieved, target) / np.vdot(retrieved, retrieved)
    exact = relative_squared_error(best * retrieved, target)
    assert scale_optimal_error(retrieved, target) == pytest.approx(exact, rel=1e-12)
    assert exact <= least


def test_scale_optimal_error_cosine_and_top1_do_not_see_the_scale(rng):
    retrieved, target = rng.standard_normal((2, 30, 5))
    for metric in (scale_optimal_error, cosine_similarity, signal_to_noise, top1_accuracy):
        assert metric(1e4 * retrieved, target) == pytest.approx(metric(retrieved, target), rel=1e-12)
    assert relative_squared_error(1e4 * retrieved, target) > 1e6


def test_signal_to_noise_is_one_over_the_error_less_one(rng):
    target = rng.standard_normal((40, 6))
    retrieved = target + rng.standard_normal((40, 6))
    error = scale_optimal_error(retrieved, target)
    assert signal_to_noise(retrieved, target) == pytest.approx(1 / error - 1, rel=1e-12)


def test_cosine_of_a_case_by_hand():
    retrieved, target = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    assert cosine_similarity(retrieved, target) == pytest.approx((0.6 + 0.0) / 2)


@pytest.mark.parametrize("metric", PAIRWISE)
def test_per_pair_values_average_to_the_total(metric, rng):
    retrieved, target = rng.standard_normal((2, 3, 20, 4))
    each = metric(retrieved, target, per_pair=True)
    assert each.shape == (3, 20)
    np.testing.assert_allclose(each.mean(axis=-1), metric(retrieved, target), rtol=1e-12)


@pytest.mark.parametrize("metric", PAIRWISE)
def test_batches_are_measured_one_by_one(metric, rng):
    retrieved, target = rng.standard_normal((2, 2, 3, 20, 4))
    assert metric(retrieved, target)[1, 2] == pytest.approx(metric(retrieved[1, 2], target[1, 2]), rel=1e-12)


@pytest.mark.parametrize("metric", [*PAIRWISE, top1_accuracy])
def test_float32_stays_float32(metric, rng):
    retrieved, target = rng.standard_normal((2, 8, 4)).astype(np.float32)
    assert metric(retrieved, target).dtype == np.float32


def test_top1_counts_a_tie_of_k_as_one_kth():
    codebook = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert top1_accuracy(codebook, codebook) == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert top1_accuracy(np.zeros((1, 2)), codebook) == pytest.approx(1 / 3)


def test_top1_with_labels_counts_equal_tokens_as_right():
    codebook = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert top1_accuracy(codebook, codebook, labels=np.array([7, 7, 9])) == 1
    wrong = top1_accuracy(codebook[[2]], codebook, targets=np.array([0]), labels=np.array([7, 7, 9]))
    assert wrong == 0


def test_top1_by_dot_and_by_cosine_differ_where_norms_do():
    codebook = np.array([[1.0, 0.0], [3.0, 3.0]])
    query = np.array([[1.0, 0.2]])
    assert top1_accuracy(query, codebook) == 0
    assert top1_accuracy(query, codebook, similarity="cosine") == 1


def test_interference_splits_what_comes_back(rng):
    features, values = rng.standard_normal((9, 4)), rng.standard_normal((9, 3))
    signal, crosstalk = interference(features, values)
    kernel = np.einsum("if,jf->ij", features, features)
    np.testing.assert_allclose(signal, np.diag(kernel)[:, None] * values, rtol=1e-12)
    np.testing.assert_allclose(crosstalk, (kernel - np.diag(np.diag(kernel))) @ values, atol=1e-12)


def test_bits_per_parameter_of_perfect_and_of_chance_recall():
    assert bits_per_parameter(1.0, 100, 256, 400) == pytest.approx(100 * 8 / 400)
    assert bits_per_parameter(1 / 256, 100, 256, 400) == pytest.approx(0, abs=1e-12)


def test_nothing_retrieved_has_stated_answers(rng):
    target = rng.standard_normal((5, 3))
    nothing = np.zeros_like(target)
    answers = [metric(nothing, target) for metric in PAIRWISE]
    assert answers == [1, 1, 0, 0]


def test_exact_retrieval_has_stated_answers(rng):
    target = rng.standard_normal((5, 3))
    assert relative_squared_error(target, target) == 0
    assert scale_optimal_error(target, target) < 1e-30
    assert cosine_similarity(target, target) == pytest.approx(1)
    assert signal_to_noise(np.eye(2), np.eye(2)) == math.inf


def test_zero_targets_have_stated_answers():
    zero, one = np.zeros((2, 3)), np.ones((2, 3))
    assert relative_squared_error(zero, zero) == 0
    assert relative_squared_error(one, zero) == math.inf
    assert scale_optimal_error(one, zero) == 0
    assert cosine_similarity(one, zero) == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_never_a_silent_nan(bad, rng):
    retrieved, target = rng.standard_normal((2, 4, 3))
    retrieved[1, 1] = bad
    answers = [float(metric(retrieved, target)) for metric in PAIRWISE]
    assert answers[:2] == [math.inf, math.inf]
    assert answers[3] == 0
    assert 0 <= abs(answers[2]) <= 1
    assert 0 <= top1_accuracy(retrieved, target) <= 0.75


@pytest.mark.parametrize("shapes", [((0, 3), (0, 3)), ((4, 3), (5, 3)), ((4, 0), (4, 0)), ((4,), (4,))])
@pytest.mark.parametrize("metric", PAIRWISE)
def test_shapes_that_do_not_fit_are_refused(metric, shapes):
    with pytest.raises(ValueError, match="must have"):
        metric(np.ones(shapes[0]), np.ones(shapes[1]))


def test_integers_are_refused():
    with pytest.raises(ValueError, match="floating point"):
        cosine_similarity(np.ones((2, 2), int), np.ones((2, 2), int))


def test_top1_does_not_overflow_before_the_retrieved_does(rng):
    retrieved, codebook = (rng.standard_normal((20, 8)).astype(np.float32) for _ in range(2))
    assert top1_accuracy(retrieved * np.float32(1e37), codebook) == top1_accuracy(retrieved, codebook)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_query_that_is_not_finite_is_never_right():
    codebook = np.array([[1.0, 2.0], [-1.0, 2.0]])
    assert top1_accuracy(np.array([[np.inf, 1.0]]), codebook) == 0
    assert top1_accuracy(np.array([[np.inf, 1.0]]), codebook, labels=np.array([5, 5])) == 0


def test_signal_to_noise_keeps_its_digits_where_there_is_little_signal(rng):
    target = rng.standard_normal((4000, 8))
    retrieved = 1e-3 * target + rng.standard_normal((4000, 8))
    single = signal_to_noise(retrieved.astype(np.float32), target.astype(np.float32))
    overlap, power = np.vdot(retrieved, target), np.vdot(retrieved, retrieved)
    expected = overlap**2 / (power * np.vdot(target, target) - overlap**2)
    assert signal_to_noise(retrieved, target) == pytest.approx(expected, rel=1e-9)
    assert single == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("scale", [1e-170, 1e-25, 1e25, 1e150])
def test_no_scale_of_the_targets_over_or_underflows(scale, rng):
    target = rng.standard_normal((30, 4))
    retrieved = target + rng.standard_normal((30, 4))
    for metric in PAIRWISE:
        assert metric(scale * retrieved, scale * target) == pytest.approx(metric(retrieved, target), rel=1e-9)


def test_half_precision_does_not_overflow_in_its_sums(rng):
    target = np.sign(rng.standard_normal((4096, 64)))
    retrieved = (target + 0.25 * rng.standard_normal(target.shape)).astype(np.float16)
    assert scale_optimal_error(retrieved, target.astype(np.float16)) == pytest.approx(0.0588, rel=0.02)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"targets": np.array([0])}, r"targets must be an integer array of shape \(3,\)"),
        ({"targets": np.array([0.0, 1.0, 2.0])}, "targets must be an integer array"),
        ({"targets": np.array([0, 1, -1])}, "targets must be from 0 to 2, got -1 to 1"),
        ({"targets": np.array([0, 1, 3])}, "targets must be from 0 to 2, got 0 to 3"),
        ({"labels": [1, 2, 3]}, "labels must be an integer array"),
        ({"labels": np.array([1, 2])}, "labels must be an integer array"),
        ({"similarity": "l2"}, "similarity must be dot or cosine"),
    ],
)
def test_top1_refuses_targets_and_labels_that_do_not_fit(given, told):
    with pytest.raises(ValueError, match=told):
        top1_accuracy(np.eye(3), np.eye(3), **given)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_bad_codeword_spoils_its_own_query_only():
    codebook = np.eye(3)
    codebook[2] = np.nan
    assert top1_accuracy(np.eye(3), codebook) == pytest.approx(2 / 3)
