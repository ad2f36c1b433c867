"""Theory against simulation: the check passes, a wrong formula fails it, and its verdicts are what they claim."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from capmem import figures
from capmem.ensembles import KEYS, VALUES
from capmem.feature_maps import FEATURE_MAPS, Identity
from capmem.readouts import READOUTS
from capmem.studies import Options, theory_check
from capmem.studies._theory_grid import FILES, PLAIN, STEPS, Sizes, combinations, experiment
from capmem.studies._theory_told import finding
from capmem.studies._theory_verdict import AGREES, FAILS, UNTESTED, limit, unskewed, verdict
from capmem.studies.theory_check import STUDY, TheoryCheck
from capmem.theory import angles, meanfield, moments, predict, top1
from capmem.theory.identity import identity_moments
from capmem.theory.quadrature import normal_rule
from capmem.write_rules import WRITE_RULES

SMALL = TheoryCheck(
    bases=("sphere", "equicorrelated"), interactions=1, key_dim=(16,), value_dim=(16,), num_pairs=(8, 32), trials=50
)
CACHES = (
    theory_check.cases, predict.__globals__["_cached"], moments.__globals__["_law_moments"], top1.top1_accuracy,
    meanfield._top1,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("theory_check")


@pytest.fixture(scope="module")
def judged(folder):
    return STUDY.source.table(SMALL, folder, Options(workers=1))


@pytest.fixture
def judge_again(folder, judged):
    """Judge what was measured by the theory as it now is."""

    def judge():
        for cache in CACHES:
            cache.cache_clear()
        return STUDY.source.table(SMALL, folder, Options(workers=1))

    yield judge
    for cache in CACHES:
        cache.cache_clear()


def test_theory_and_simulation_agree(judged):
    assert judged.failures == ()
    table = judged.frame
    assert len(table) > 600 and table["exact"].sum() > 150
    assert (table["verdict"] == AGREES).mean() > 0.98
    exact = table[table["exact"] & np.isfinite(table["z"]) & (table["z"] != 0)]
    assert 0.7 < exact["z"].std() < 1.3  # as standard errors of what they are


@pytest.mark.slow
def test_theory_and_simulation_agree_wherever_there_is_theory(tmp_path):
    judged = STUDY.source.table(TheoryCheck(), tmp_path, Options())
    assert judged.failures == ()
    assert judged.frame["combination"].nunique() > 600


def textbook_top1(key_dim, value_dim, num_pairs, codebook_size, unit, gain=1.0):
    """The integral of normal scores that are taken as independent."""
    load = (num_pairs - 1) / key_dim
    z, weights = normal_rule(41)
    x = gain + z * (load / value_dim) ** 0.5
    unstored, stored = (1 + load) / value_dim, 1 / key_dim + (1 + load - 1 / key_dim) / value_dim
    chances = ndtr(x / stored**0.5) ** (num_pairs - 1) * ndtr(x / unstored**0.5) ** (codebook_size - num_pairs)
    return float(weights @ chances)


def test_the_textbook_top1_integral_fails(judge_again, monkeypatch):
    assert textbook_top1(64, 64, 128, 128, True) < 0.99 * top1.top1_accuracy(64, 64, 128, 128, True)
    monkeypatch.setattr(angles.top1, "top1_accuracy", textbook_top1)
    failures = judge_again().failures
    assert failures and all(told.startswith("top1_accuracy") for told in failures)
    assert any("plain memory, sphere keys" in told for told in failures)


def test_an_uncentred_spectrum_fails(judge_again, monkeypatch):
    def uncentred(memory, law, key_dim):
        return identity_moments(replace(memory, feature_center="none"), law, key_dim)

    monkeypatch.setitem(moments.__globals__["FORMULAS"], Identity, uncentred)
    failures = judge_again().failures
    assert any(told.startswith("relative_squared_error") for told in failures)
    assert all("features centred" in told for told in failures)


def test_errors_by_age_are_tested_too(judged):
    aged = judged.frame[judged.frame["age_low"] >= 0]
    assert {"delta", "gated_delta", "decay", "oja", "hebbian"} <= set(aged["write_rule"])
    assert (aged["verdict"] == AGREES).all()


def test_every_registered_choice_is_in_the_grid():
    grid = combinations(("sphere",), 1)
    for name, registry in (("feature_map", FEATURE_MAPS), ("keys", KEYS), ("values", VALUES), ("readout", READOUTS),
                           ("write_rule", WRITE_RULES)):  # fmt: skip
        assert {getattr(c, name) for c in grid} == set(registry.names()) - set(FILES if name != "feature_map" else ())
    assert {c.step for c in grid} == set(STEPS) and {c.memory for c in grid} == {"linear", "softmax"}


def test_combinations_of_more_parts_hold_those_of_fewer_and_no_two_share_draws():
    one, two = (combinations(("sphere", "gaussian"), k) for k in (1, 2))
    assert set(one) < set(two) and len(set(two)) == len(two)
    sizes = Sizes(16, 16, (8,))
    covered = [c for c in one if c != PLAIN._replace(feature_map="cosformer", step="features centred")]
    assert len({experiment(c, sizes, 1, 0, 0).seed for c in covered}) == len(covered)


HALF = np.random.default_rng(0).standard_normal(50)
NORMAL = np.concatenate([HALF, -HALF])  # no skewness


def of(values, predicted, bound=0.0, least=0.0):
    return verdict(np.asarray(values, dtype=float), predicted, bound, least, allowed=4.0)


def test_a_number_agrees_within_the_allowed_standard_errors():
    error = NORMAL.std(ddof=1) / 10
    assert of(NORMAL, NORMAL.mean() + 3.9 * error).verdict == AGREES
    assert of(NORMAL, NORMAL.mean() + 4.1 * error).verdict == FAILS
    assert of(NORMAL, NORMAL.mean() + 3.9 * error).z == pytest.approx(-3.9)


def test_an_approximation_may_be_off_by_its_stated_error_on_top():
    values = 10 + NORMAL
    error = values.std(ddof=1) / 10
    assert of(values, values.mean() * 1.05 + 3.9 * error, bound=0.05).verdict == AGREES
    assert of(values, values.mean() * 1.05 + 4.1 * error, bound=0.05).verdict == FAILS
    assert of(values, 20.0, bound=np.inf).verdict == UNTESTED


def test_what_one_trial_decides_is_told_apart():
    values = np.append(1 + 0.001 * NORMAL, 5.0)
    assert of(values, 2.0).verdict == UNTESTED
    assert of(values[:-1], 2.0).verdict == FAILS


def test_skewness_is_allowed_for_and_the_statistic_stays_monotone():
    """The t statistic of 100 fourth powers of normal variables lies far out on one side only; unskewed, on neither."""
    trials = np.random.default_rng(1).standard_normal((20000, 100)) ** 4
    z = (trials.mean(axis=1) - 3) / (trials.std(axis=1, ddof=1) / 10)
    even = np.array([unskewed(float(a), b) for a, b in zip(z, trials, strict=True)])
    assert (z < -4).mean() > 0.01
    assert (even < -4).mean() < 0.3 * (z < -4).mean() and (even > 4).mean() < 1e-3
    assert (np.diff([unskewed(float(t), trials[0]) for t in np.linspace(-30, 30, 301)]) >= 0).all()


def test_rounding_and_infinite_ratios_agree():
    assert of(np.full(100, 1e-31), 0.0).verdict == AGREES
    assert of(np.full(100, 1e30), np.inf).verdict == AGREES
    assert of(np.full(100, 1e3), np.inf).verdict == FAILS


def test_trials_that_all_agree_do_not_make_a_standard_error_of_zero():
    assert of(np.ones(100), 1 - 1e-3).verdict == FAILS
    assert of(np.ones(100), 1 - 1e-3, least=1 / 800).verdict == AGREES


def test_the_limit_grows_with_the_numbers_tested_and_is_not_below_4():
    assert limit(1, 10_000) == 4
    assert limit(10_000, 100) == pytest.approx(5.23, abs=0.05)
    assert limit(10_000, 20) > limit(10_000, 100)


def test_the_sentence_follows_the_table(judged):
    table = judged.frame
    assert "agree with simulation" in finding(table)
    made = table.copy()
    made.loc[made.index[0], "verdict"] = FAILS
    told = finding(made)
    assert told.startswith(f"{(made['verdict'] == AGREES).sum()} of {len(made)} numbers agree") and "1 fail." in told


def test_failures_are_told_as_lines_and_drawn(judged):
    table = judged.frame.copy()
    table.loc[table.index[0], ["verdict", "predicted"]] = (FAILS, 2.5)
    told = theory_check.line(table.iloc[0])
    assert "predicted 2.5" in told and "\n" not in told
    grid = figures.theory_check(table)
    assert (grid.table["kind"] == FAILS).sum() == 1
    assert len(grid.axes.flat) == 6


@pytest.mark.parametrize(
    ("change", "told"),
    [({"bases": ("spere",)}, "spere"), ({"value_dim": (16,)}, "value_dim must be"), ({"trials": 1}, "trials must be")],
)
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=told):
        TheoryCheck(**change)


def test_the_table_holds_every_part_of_a_combination(judged):
    assert set(PLAIN._fields) < set(judged.frame.columns)
    assert isinstance(judged.frame, pd.DataFrame)
