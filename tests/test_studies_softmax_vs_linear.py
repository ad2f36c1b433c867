"""Cache against fixed state: golden capacities, the bound, equal bytes, and the sentence."""

import math

import numpy as np
import pandas as pd
import pytest

from capmem import theory
from capmem.ensembles import SphereKeys
from capmem.memory import LinearMemory, SoftmaxMemory
from capmem.studies._equal_bytes import (
    ERROR,
    at_equal_bytes,
    capacities,
    errors,
    guaranteed_error,
    guaranteed_pairs,
    median_separation,
    softmax_capacity,
)
from capmem.studies.softmax_vs_linear import STUDY, SoftmaxVsLinear, draw, finding, points

SMALL = SoftmaxVsLinear(
    key_dim=16, value_dim=16, num_pairs=(2, 4, 64), betas=(1.0, 4.0), degrees=(1, 2), nus=(1,), trials=1
)


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame([record for point in points(SMALL) for record in point.run()])


@pytest.mark.parametrize(("beta", "pairs"), [(4, 1.8e3), (8, 1.27e6), (16, 5.6e10), (32, 1.9e17)])
def test_golden_capacities_of_softmax(beta, pairs):
    assert softmax_capacity(64, beta) == pytest.approx(pairs, rel=0.03)


def test_weights_that_are_all_equal_hold_two_pairs():
    """At beta = 0 each of N values has the same share: signal 1/N^2, noise (N - 1)/N^2."""
    assert softmax_capacity(64, 0.0) == 2


def test_the_capacity_is_where_the_predicted_error_is_one_half():
    n = round(softmax_capacity(64, 4.0))
    found = theory.predict(SoftmaxMemory(4.0), SphereKeys(), key_dim=64, value_dim=64, num_pairs=n)
    assert found.scale_optimal_error == pytest.approx(0.5, abs=0.005)


def test_the_median_separation_is_that_of_drawn_keys():
    rng = np.random.default_rng(5)
    keys = rng.standard_normal((4000, 20, 8))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    nearest = np.einsum("td,tnd->tn", keys[:, 0], keys[:, 1:]).max(axis=1)
    error = 4 * 1.2533 * nearest.std() / 4000**0.5
    assert 1 - median_separation(8, 20) == pytest.approx(np.median(nearest), abs=error)


def test_no_key_violates_the_bound_of_its_own_separation():
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((50, 12))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    values = rng.standard_normal((50, 6))
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    memory = SoftmaxMemory(12.0)
    read = memory.read(memory.write(memory.init(12, 6), keys, values), keys)
    separation = 1 - (keys @ keys.T - 2 * np.eye(50)).max(axis=1)
    bound = 2 * 49 * np.exp(-12.0 * separation)
    error = np.linalg.norm(read - values, axis=1)
    assert (error <= bound).all()
    assert (error > bound / 1000).any()  # it is not empty
    mid = float(np.median(separation))
    assert guaranteed_error(12, 12.0, 50) == pytest.approx((98 * math.exp(-12 * mid)) ** 2, rel=2)


def test_the_guarantee_of_theorem_3_says_nothing_at_small_beta():
    assert math.isnan(guaranteed_pairs(64, 16.0))
    assert guaranteed_pairs(75, 74.0) == pytest.approx(0.001**0.5 * 1.3719**18.5, rel=0.01)  # beta = K = 1 there


def test_the_cache_at_equal_bytes_takes_no_more_than_the_state_and_one_pair_more_would(table):
    equal = at_equal_bytes(errors(table))
    assert len(equal) == 3
    a_pair = SoftmaxMemory().state_size(16, 16, num_pairs=1).bytes
    for row in equal.to_dict("records"):
        assert row["cache_bytes"] == row["num_pairs"] * a_pair
        assert row["cache_bytes"] <= row["state_bytes"] < row["cache_bytes"] + a_pair


def test_more_trials_are_run_where_there_are_few_pairs(table):
    trials = table[table["memory"] == "softmax"].groupby(["memory.beta", "num_pairs"])["trial"].nunique()
    assert trials[4.0, 2] == 16 and trials[4.0, 64] == 16
    assert {type(p.memory) for p in points(SMALL)} == {LinearMemory, SoftmaxMemory}


def test_measured_errors_come_to_their_closed_forms(table):
    means = errors(table)
    known = means[means[f"theory_{ERROR}"].notna() & (means["num_pairs"] == 64)]
    assert {"identity", "softmax"} <= set(known["feature_map"].fillna("softmax"))
    np.testing.assert_allclose(known[ERROR], known[f"theory_{ERROR}"], rtol=0.08)


def test_the_sentence_follows_the_table(table):
    first = finding(table)
    made = table.copy()
    made[ERROR] = made[ERROR].where(made["memory"] != "linear", 0.2345)
    assert "with 0.23." in finding(made) and "with 0.23." not in first
    held = capacities(table)
    best = held[(held["memory"] == "softmax") & held["bracketed"]].iloc[-1]
    assert f"at N = {best['pairs']:.4g} for beta {best['memory.beta']:g}" in first
    assert f"(closed form {best['closed_form']:.4g})" in first


def test_the_figure_holds_all_three_panels(table):
    grid = draw(table)
    assert set(grid.table["panel"]) == {"error", "equal bytes", "capacity"}
    assert STUDY.figures["softmax_vs_linear"] is draw


@pytest.mark.parametrize(
    ("change", "told"), [({"betas": (0.0,)}, "betas"), ({"num_pairs": (1,)}, "num_pairs"), ({"nus": ()}, "nus")]
)
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told} must be"):
        SoftmaxVsLinear(**change)
