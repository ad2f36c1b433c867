"""Gram statistics against loops over pairs, known dimensions, and their stated answers for odd input."""

import math

import numpy as np
import pytest

from capmem import geometry as g
from capmem.feature_maps import Dpfp, EluPlusOne, Identity, ReLU

STATISTICS = [
    g.mean_coherence,
    g.mean_squared_coherence,
    g.max_coherence,
    g.participation_ratio,
    g.effective_dimension,
    g.effective_rank,
]
OF_PAIRS = [g.mean_coherence, g.mean_squared_coherence, g.max_coherence, g.effective_dimension]


def cosines_of_pairs(x):
    return [
        x[i] @ x[j] / (np.linalg.norm(x[i]) * np.linalg.norm(x[j]))
        for i in range(len(x))
        for j in range(len(x))
        if i != j
    ]


def test_coherences_are_those_of_a_loop_over_pairs(rng):
    x = rng.standard_normal((9, 4))
    cosines = np.abs(cosines_of_pairs(x))
    assert g.mean_coherence(x) == pytest.approx(cosines.mean(), rel=1e-12)
    assert g.mean_squared_coherence(x) == pytest.approx((cosines**2).mean(), rel=1e-12)
    assert g.max_coherence(x) == pytest.approx(cosines.max(), rel=1e-12)


def test_gram_with_others_is_every_inner_product(rng):
    x, y = rng.standard_normal((3, 5)), rng.standard_normal((4, 5))
    np.testing.assert_allclose(g.gram(x, y), [[a @ b for b in y] for a in x], rtol=1e-12)
    np.testing.assert_allclose(g.gram(x), g.gram(x, x), rtol=1e-12)


def test_effective_dimension_is_that_of_a_loop_and_leaves_the_diagonal_out(rng):
    x = rng.standard_normal((9, 4))
    off = [(x[i] @ x[j]) ** 2 for i in range(9) for j in range(9) if i != j]
    expected = np.mean([a @ a for a in x]) ** 2 / np.mean(off)
    assert g.effective_dimension(x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("phi", "dimension"), [(Identity(), 64.0), (ReLU(), 8.67), (EluPlusOne(), 2.09), (Dpfp(1), 52.1)], ids=str
)
def test_effective_dimensions_of_normal_keys_are_the_known_ones(phi, dimension):
    x = phi(np.random.default_rng(0).standard_normal((4000, 64)))
    assert g.effective_dimension(x) == pytest.approx(dimension, rel=0.012)


def test_the_participation_ratio_of_few_vectors_is_biased_and_the_effective_dimension_is_not():
    draws = np.random.default_rng(1).standard_normal((400, 32, 64))
    assert g.participation_ratio(draws).mean() == pytest.approx(32 * 64 / (32 + 64), rel=0.02)
    squares = [g.effective_dimension(x) for x in draws]
    assert 1 / np.mean(1 / np.array(squares)) == pytest.approx(64, rel=0.02)


def test_effective_rank_of_equal_singular_values_is_their_number(rng):
    q, _ = np.linalg.qr(rng.standard_normal((10, 10)))
    assert g.effective_rank(q[:4]) == pytest.approx(4, rel=1e-10)
    assert g.participation_ratio(q[:4]) == pytest.approx(4, rel=1e-10)
    weights = np.array([3.0, 1.0])
    share = weights / 4
    expected = math.exp(-(share * np.log(share)).sum())
    assert g.effective_rank(weights[:, None] * q[:2]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "d", "bound"), [(100, 16, 0.0530), (1000, 64, 0.01464), (8, 8, 0.0)])
def test_the_welch_bound_is_the_known_one_and_no_vectors_beat_it(n, d, bound, rng):
    assert g.welch_bound(n, d) ** 2 == pytest.approx(bound, abs=5e-5)
    assert g.max_coherence(rng.standard_normal((n, d))) >= g.welch_bound(n, d)


def test_an_equiangular_frame_meets_the_welch_bound():
    angles = 2 * math.pi / 3 * np.arange(3)
    frame = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert g.max_coherence(frame) == pytest.approx(g.welch_bound(3, 2), rel=1e-12)
    assert g.participation_ratio(frame) == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_batches_are_measured_one_by_one(statistic, rng):
    x = rng.standard_normal((2, 3, 7, 4))
    assert statistic(x).shape == (2, 3)
    assert statistic(x)[1, 2] == pytest.approx(statistic(x[1, 2]), rel=1e-10)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_no_statistic_sees_the_scale(statistic, scale, rng):
    x = rng.standard_normal((7, 4))
    assert statistic(scale * x) == pytest.approx(statistic(x), rel=1e-12)


def test_zero_vectors_have_stated_answers():
    zero = np.zeros((3, 4))
    answers = [float(s(zero)) for s in (g.mean_coherence, g.max_coherence, g.participation_ratio, g.effective_rank)]
    assert answers == [0, 0, 0, 0]
    assert g.effective_dimension(zero) == 0
    assert g.effective_dimension(np.eye(3)) == math.inf


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(statistic, bad):
    x = np.ones((3, 2))
    x[1, 1] = bad
    with pytest.raises(ValueError, match="vectors must be finite"):
        statistic(x)


@pytest.mark.parametrize("statistic", OF_PAIRS)
def test_one_vector_has_no_pairs(statistic):
    with pytest.raises(ValueError, match="vectors must be at least two, got 1"):
        statistic(np.ones((1, 3)))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_no_vectors_are_refused(statistic):
    with pytest.raises(ValueError, match="at least one vector"):
        statistic(np.ones((0, 3)))
