"""Rows by age: they add up to the main table, change nothing in it, and follow the theory."""

import math

import numpy as np
import pytest

from capmem import Experiment, LinearMemory
from capmem.ages import AgeBin, age_bins
from capmem.ensembles import DuplicatedKeys, GaussianValues, OrthonormalKeys, SphereKeys, SphereValues
from capmem.feature_maps import Identity, ReLU
from capmem.readouts import RMSNorm
from capmem.theory.by_age import predict_by_age
from capmem.write_rules import Decay, Delta

AVERAGED = ("relative_squared_error", "scale_optimal_error", "cosine_similarity", "top1_accuracy")
DELTA = LinearMemory(Identity(), Delta())
SPHERE = SphereKeys()


def experiment(memory=DELTA, keys=SPHERE, **fields):
    fields = {"values": SphereValues(), "key_dim": 16, "value_dim": 16, "num_pairs": (8, 100), "trials": 2} | fields
    return Experiment(memory, keys, **{"age_bins": 5} | fields)


def rows_of(by_age, trial, num_pairs):
    return [r for r in by_age if (r["trial"], r["num_pairs"]) == (trial, num_pairs)]


def test_bins_cut_the_ages_at_the_floor_of_m_k_over_n():
    for n, k in ((10, 3), (100, 7), (5, 5), (3, 8), (1, 4)):
        expected = {}
        for age in range(n):
            expected.setdefault(age * k // n, []).append(age)
        assert age_bins(n, k) == [AgeBin(j, ages[0], ages[-1]) for j, ages in expected.items()]


@pytest.mark.parametrize("keys", [SphereKeys(), DuplicatedKeys(0.4)], ids=str)
@pytest.mark.parametrize("values", [SphereValues(), GaussianValues()], ids=str)
@pytest.mark.parametrize("max_queries", [4096, 37])
def test_bins_average_to_the_main_table(keys, values, max_queries):
    run = experiment(keys=keys, values=values, max_queries=max_queries, codebook_size=150, dtype="float64")
    records, by_age = run.run_with_ages()
    for record in records:
        rows = rows_of(by_age, record["trial"], record["num_pairs"])
        counts = np.array([r["num_scored"] for r in rows])
        assert counts.sum() == record["num_scored"]
        assert [r["age_low"] for r in rows] + [record["num_pairs"]] == [0] + [r["age_high"] + 1 for r in rows]
        for name in AVERAGED:
            column = np.array([r[name] if r["num_scored"] else 0.0 for r in rows])
            assert counts @ column / counts.sum() == pytest.approx(record[name], rel=1e-12), name


def test_the_gain_is_that_of_the_whole_read_and_not_the_best_of_each_bin():
    records, by_age = experiment(num_pairs=100, trials=1, dtype="float64").run_with_ages()
    alone = []
    for k in range(5):
        error, gain = by_age[k]["relative_squared_error"], by_age[k]["scale_optimal_error"]
        alone.append(error - gain)
    assert max(abs(x) for x in alone) > 0.05
    assert by_age[-1]["scale_optimal_error"] > 1  # no gain of its own would leave more than there was


def same(a, b):
    return repr(a) == repr(b)


def test_ages_change_no_bit_of_the_main_table():
    plain = experiment(age_bins=0).run()
    records, _ = experiment().run_with_ages()
    for before, after in zip(plain, records, strict=True):
        assert set(after) - set(before) == {"age_bins"}
        assert {n for n in before if n != "elapsed_s" and not same(before[n], after[n])} == set()
    assert [r["scale_optimal_error"] for r in experiment().run()] == [r["scale_optimal_error"] for r in plain]


def test_without_bins_there_is_no_table_and_the_configuration_is_the_old_one():
    plain = experiment(age_bins=0)
    assert plain.run_with_ages()[1] == []
    assert "age_bins" not in plain.configuration()
    assert experiment().configuration() == plain.configuration() | {"age_bins": 5}


def test_rows_carry_the_configuration_and_do_not_depend_on_other_units():
    whole = experiment(trials=2).run_with_ages()[1]
    alone = experiment(trials=2).run_with_ages([(1, 100)])[1]
    assert [r["age_bin"] for r in alone] == [0, 1, 2, 3, 4]
    assert same(alone, rows_of(whole, 1, 100))
    row = alone[0]
    expected = {"write_rule": "delta", "write_rule.step_size": 1.0, "key_dim": 16, "trial": 1, "status": "ok"}
    assert {name: row[name] for name in expected} == expected
    assert "signal_to_noise" not in row


def test_age_zero_is_the_pair_written_last():
    """A whole delta step leaves the newest pair exact, and later ones disturb the oldest most."""
    _, by_age = experiment(num_pairs=30, trials=20, age_bins=30, dtype="float64").run_with_ages()
    errors = np.array([r["relative_squared_error"] for r in by_age]).reshape(20, 30).mean(axis=0)
    assert errors[0] == pytest.approx(0, abs=1e-20)
    assert errors[-5:].mean() > 1 > errors[:5].mean()


@pytest.mark.parametrize(
    "memory",
    [DELTA, LinearMemory(Identity(), Decay(0.95)), LinearMemory(Identity())],
    ids=["delta", "decay", "hebbian"],
)
def test_bins_follow_the_theory(memory):
    """4.5 standard errors, of 10 bins and 3 rules; the ages the other way round are far off for rules that forget."""
    run = experiment(memory, num_pairs=40, trials=150, age_bins=10, metrics=("relative_squared_error",))
    _, by_age = run.run_with_ages()
    measured = np.array([r["relative_squared_error"] for r in by_age]).reshape(150, 10)
    expected = np.array([r["theory_relative_squared_error"] for r in by_age[:10]])
    mean, error = measured.mean(axis=0), measured.std(axis=0, ddof=1) / math.sqrt(150)
    assert np.all(np.abs(mean - expected) < 4.5 * error + 1e-9)
    whole = predict_by_age(memory, SPHERE, 16, 16, 40).relative_squared_error
    np.testing.assert_allclose(expected, whole.reshape(10, 4).mean(axis=1), rtol=1e-12)
    if memory.write_rule in (Delta(), Decay(0.95)):
        assert np.max(np.abs(mean - expected[::-1]) / error) > 20


def test_where_there_is_no_formula_the_reason_stands_in_its_place():
    _, by_age = experiment(LinearMemory(ReLU(), Delta(0.1)), num_pairs=10, trials=1).run_with_ages()
    assert {r["theory_relative_squared_error"] for r in by_age} == {None}
    assert "identity map only" in by_age[0]["theory_unavailable"]


def test_superseded_pairs_and_pairs_that_are_not_read_leave_bins_empty_and_nan():
    _, by_age = experiment(num_pairs=64, trials=1, max_queries=2, age_bins=8).run_with_ages()
    assert [r["num_scored"] for r in by_age] == [0, 1, 0, 0, 0, 1, 0, 0]
    assert math.isnan(by_age[0]["relative_squared_error"]) and math.isnan(by_age[0]["top1_accuracy"])
    assert not math.isnan(by_age[1]["relative_squared_error"])


def test_skipped_units_have_no_rows_by_age():
    records, by_age = experiment(keys=OrthonormalKeys(), num_pairs=(8, 40), trials=1).run_with_ages()
    assert [r["status"] for r in records] == ["ok", "skipped"]
    assert {r["num_pairs"] for r in by_age} == {8}


def test_few_pairs_have_fewer_bins():
    _, by_age = experiment(num_pairs=3, trials=1, age_bins=6).run_with_ages()
    assert [(r["age_bin"], r["age_low"], r["age_high"]) for r in by_age] == [(0, 0, 0), (2, 1, 1), (4, 2, 2)]


def test_any_memory_and_read_out_has_rows_by_age():
    memory = LinearMemory(ReLU(), Decay(0.9), RMSNorm())
    _, by_age = experiment(memory, metrics=("cosine_similarity",), trials=1).run_with_ages()
    assert by_age[0]["cosine_similarity"] > by_age[-1]["cosine_similarity"]
    assert "top1_accuracy" not in by_age[0]


@pytest.mark.parametrize("bins", [-1, 10**4 + 1])
def test_a_number_of_bins_out_of_range_is_refused(bins):
    with pytest.raises(ValueError, match="age_bins must be an integer from 0 to 10000"):
        experiment(age_bins=bins)
