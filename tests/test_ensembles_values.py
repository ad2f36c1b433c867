"""Values for which the answer differs: one-hot, signs, and a common mean."""

import math

import numpy as np
import pytest

from capmem import Experiment, LinearMemory
from capmem.ensembles import (
    ArrayValues,
    GaussianKeys,
    GaussianValues,
    OneHotValues,
    RademacherValues,
    SphereKeys,
    SphereValues,
)
from capmem.feature_maps import Identity, ReLU

LAWS = [GaussianValues, SphereValues, RademacherValues, OneHotValues]


def run(keys, values, num_pairs, trials=4, **fields):
    fields = {"key_dim": 8, "value_dim": 256, "dtype": "float64"} | fields
    return Experiment(LinearMemory(Identity()), keys, values, num_pairs=num_pairs, trials=trials, **fields).run()


def test_rademacher_values_are_signs_of_norm_sqrt_v():
    rows = RademacherValues().sample(np.random.default_rng(0), 500, 9)
    assert set(np.unique(rows)) == {-1.0, 1.0}
    assert abs(rows.mean()) < 4 / math.sqrt(rows.size)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 3, rtol=1e-12)


def test_one_hot_values_are_all_different_and_orthonormal():
    rows = OneHotValues().sample(np.random.default_rng(0), 12, 12)
    assert set(np.unique(rows)) == {0.0, 1.0}
    np.testing.assert_array_equal(rows @ rows.T, np.eye(12))
    assert not np.array_equal(rows, np.eye(12))


@pytest.mark.parametrize("num_pairs", [2, 16, 64, 256])
def test_one_hot_values_unit_keys_and_exact_cues_are_always_found(num_pairs):
    """By Cauchy-Schwarz, whatever the load: here up to 32 pairs a dimension."""
    records = run(SphereKeys(), OneHotValues(), num_pairs)
    assert all(r["top1_accuracy"] == 1 for r in records)


@pytest.mark.parametrize(
    ("keys", "values", "fields"),
    [
        (GaussianKeys(), OneHotValues(), {}),
        (SphereKeys(), OneHotValues(), {"query_cosine": 0.8}),
        (SphereKeys(), SphereValues(), {"value_dim": 16}),
    ],
    ids=["keys not unit", "noisy cues", "dense values"],
)
def test_top1_falls_without_any_one_of_the_three(keys, values, fields):
    records = run(keys, values, 256, **fields)
    assert all(r["top1_accuracy"] < 0.9 for r in records)


def test_one_hot_errors_are_exactly_the_sum_of_squared_cosines():
    record = run(SphereKeys(), OneHotValues(), 64, trials=1)[0]
    keys = SphereKeys().sample(np.random.default_rng([0, 0, 0]), 64, 8)
    expected = (((keys @ keys.T) ** 2).sum() - 64) / 64
    assert record["relative_squared_error"] == pytest.approx(expected, rel=1e-12)


def test_one_hot_codewords_that_were_not_stored_are_the_other_rows():
    records = run(SphereKeys(), OneHotValues(), (8, 100), codebook_size=256)
    assert all(r["codebook_size"] == 256 and r["top1_accuracy"] == 1 for r in records)
    stream = OneHotValues().start(np.random.default_rng(0), 20)
    rows = np.concatenate([stream.draw(6), stream.others(np.random.default_rng(1), 6, 14)])
    np.testing.assert_array_equal(rows @ rows.T, np.eye(20))
    with pytest.raises(ValueError, match="codebook_size must be at most 256, all values there are, got 300"):
        run(SphereKeys(), OneHotValues(), 8, codebook_size=300)


def test_more_pairs_than_one_hot_values_are_skipped():
    records = run(SphereKeys(), OneHotValues(), (20, 21), value_dim=20, trials=1)
    assert [(r["num_pairs"], r["status"]) for r in records] == [(20, "ok"), (21, "skipped")]
    assert "20 pairs at most" in records[1]["reason"]


@pytest.mark.parametrize("law", LAWS)
def test_a_mean_is_added_to_every_coordinate_and_changes_no_draw(law):
    plain, moved = (law(mean=m).sample(np.random.default_rng(3), 10, 12) for m in (0.0, 2.5))
    np.testing.assert_array_equal(moved, plain + 2.5)


def test_a_mean_moves_the_values_of_a_file(pairs_file):
    plain, moved = (
        ArrayValues(str(pairs_file), "v", mean=m).sample(np.random.default_rng(3), 40, 10) for m in (0.0, -1.0)
    )
    np.testing.assert_array_equal(moved, plain - 1)


@pytest.mark.parametrize("law", LAWS)
def test_a_mean_that_is_not_finite_is_refused(law):
    with pytest.raises(ValueError, match="mean must be a finite number, got nan"):
        law(mean=math.nan)


def error_with_a_mean(d, v, n, mean):
    """E|y - v|^2 of ReLU features of N(0, I) keys, values of variance 1 and mean vbar (docs/mathematics, 1.7)."""
    f1, f2, f3, f4 = 1 / math.sqrt(2 * math.pi), 0.5, 2 / math.sqrt(2 * math.pi), 1.5
    m1, M2 = d * f2, d * f4 + d * (d - 1) * f2**2
    m2 = d * f2**2 + d * (d - 1) * f1**4
    shared = f1**2 * (d * f2 + d * (d - 1) * f1**2)  # E kappa_ij kappa_il
    mixed = d * f1 * (f3 + (d - 1) * f2 * f1) - d * f1**2  # E (kappa_ii - 1) kappa_ij
    vbar2 = v * mean**2
    around = (v + vbar2) * (M2 - 2 * m1 + 1 + (n - 1) * m2)
    return around, vbar2 * ((n - 1) * (n - 2) * shared + 2 * (n - 1) * mixed)


@pytest.mark.parametrize("law", [GaussianValues, SphereValues, RademacherValues])
def test_a_common_mean_adds_a_term_that_grows_as_n_squared(law):
    d, v, n, mean = 8, 16, 12, 0.5
    rng, errors = np.random.default_rng(0), []
    for _ in range(2000):
        features = ReLU()(GaussianKeys().sample(rng, n, d))
        values = law(mean=mean).sample(rng, n, v)
        errors.append(np.sum((features @ (features.T @ values) - values) ** 2) / n)
    around, term = error_with_a_mean(d, v, n, mean)
    error = np.std(errors, ddof=1) / math.sqrt(len(errors))
    assert abs(np.mean(errors) - around - term) < 4 * error
    assert error < 0.03 * (around + term)
    assert term > around  # what the formulas for values of mean zero would miss


@pytest.mark.parametrize("values", [SphereValues(mean=0.5), RademacherValues(), OneHotValues()], ids=str)
def test_the_prediction_is_that_of_the_law_of_values(values):
    records = run(SphereKeys(), values, 8, trials=200)
    errors = [record["relative_squared_error"] for record in records]
    predicted = records[0]["theory_relative_squared_error"]
    assert abs(np.mean(errors) - predicted) < 4 * np.std(errors, ddof=1) / math.sqrt(len(errors))
    if values.mean:  # a common mean is read from every stored pair, and only this error is predicted
        plain = run(SphereKeys(), SphereValues(), 8, trials=1)[0]["theory_relative_squared_error"]
        assert predicted != pytest.approx(plain, rel=0.01) or math.isnan(records[0]["theory_scale_optimal_error"])
