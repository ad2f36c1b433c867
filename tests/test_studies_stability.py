"""Stability: signed denominators, narrow states and FAVOR+ against closed forms, and the sentences."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from capmem import figures
from capmem.studies._denominators import denominator_rows, nonpositive_fraction
from capmem.studies._kernel_variance import self_kernel_variance, variance_rows
from capmem.studies._rounded_states import rounded_rows
from capmem.studies.stability import Stability, finding, rows

SMALL = Stability(
    key_dim=8, value_dim=8, num_pairs=(4, 32), queries=256, state_dtypes=("bfloat16", "int8"), round_every=(1, 8),
    key_squares=(0.1, 1.0), num_features=8, draws=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(SMALL))


@pytest.mark.parametrize(("n", "share"), [(16, 0.0215), (64, 0.1586), (256, 0.3091), (1024, 0.4016)])
def test_golden_shares_of_nonpositive_denominators(n, share):
    assert nonpositive_fraction(64, n) == pytest.approx(share, abs=5e-5)


def test_the_share_is_students_t_and_not_its_normal_limit():
    rng = np.random.default_rng(3)
    keys = rng.standard_normal((200_000, 3, 2))  # N = 3, d = 2
    denominators = keys[:, 0] @ np.ones(2) * 0 + np.einsum("td,td->t", keys[:, 0], keys.sum(axis=1))
    measured, error = (denominators <= 0).mean(), 4 * (0.25 / 200_000) ** 0.5
    assert nonpositive_fraction(2, 3) == pytest.approx(measured, abs=error)
    assert abs(ndtr(-((2 / 2) ** 0.5)) - measured) > error
    assert nonpositive_fraction(8, 1) == 0


def test_the_measured_share_is_within_4_standard_errors_of_it():
    found = {(r["feature_map"], r["readout"]): r for r in denominator_rows(
        ["identity", "elu_plus_one"], 64, 64, [64], 8192, seed=0)}  # fmt: skip
    row = found["identity", "normalized"]
    assert abs(row["nonpositive_fraction"] - 0.1586) < 4 * row["nonpositive_fraction_se"] < 0.03
    assert row["mean_error"] > 100 * row["median_error"]  # a few errors are huge
    normed = found["identity", "rms_norm"]
    assert normed["largest_error"] <= 4 and normed["mean_error"] < 1.2 * normed["median_error"]
    assert found["elu_plus_one", "normalized"]["nonpositive_fraction"] == 0


def test_golden_errors_of_a_bfloat16_state():
    """z of ELU+1 is .728 of the truth at N = 1024, S of unit keys off by .027 at N = 512 (d = v = 64)."""
    found = {(r["feature_map"], r["num_pairs"]): r for r in rounded_rows(
        ["bfloat16"], [1], [512, 1024], (64, 64), trials=1, seed=0)}  # fmt: skip
    assert found["elu_plus_one", 1024]["z_ratio"] == pytest.approx(0.728, abs=0.006)
    assert found["identity", 512]["state_error"] == pytest.approx(0.027, abs=0.002)
    assert found["identity", 512]["added_error"] == pytest.approx(5.8e-3, rel=0.15)
    assert math.isnan(found["identity", 512]["z_ratio"])


def test_a_state_that_is_rounded_to_what_the_pairs_are_adds_nothing_and_a_rarer_rounding_adds_less():
    found = {(r["state_dtype"], r["round_every"]): r["added_error"] for r in rounded_rows(
        ["float32", "bfloat16"], [1, 8], [64], (8, 8), trials=1, seed=0) if r["feature_map"] == "identity"}  # fmt: skip
    assert found["float32", 1] < 1e-11
    assert found["float32", 1] < found["bfloat16", 8] < found["bfloat16", 1] / 3


def test_an_overflowed_z_is_nan_and_no_number():
    last = [r for r in rounded_rows(["float8_e4m3"], [64], [1024], (4, 2), 1, 0) if r["feature_map"] == "elu_plus_one"]
    assert math.isnan(last[0]["z_ratio"])  # 448 is the largest there is


def test_golden_variances_of_favor():
    assert 64 * self_kernel_variance(64**-0.5, 64) == pytest.approx(0.65, abs=0.002)  # unit keys, d = 64
    assert math.log10(self_kernel_variance(64**0.5, 1)) == pytest.approx(13.9, abs=0.01)  # keys from N(0, I)


def test_the_measured_variance_is_the_closed_form_where_draws_can_see_it():
    found = list(variance_rows([0.03, 0.25], key_dim=8, num_features=8, draws=1500, seed=0))
    for row in found[:2]:
        assert row["directions"] == "independent"
        half = (row["relative_variance_high"] - row["relative_variance_low"]) / 2
        assert abs(row["relative_variance"] - row["theory_relative_variance"]) < 2 * half
        assert half < 0.25 * row["relative_variance"]
    assert found[3]["relative_variance"] < 0.95 * found[1]["relative_variance"]  # orthogonal directions vary less


def test_the_sentences_follow_the_table(table):
    assert "With 32 pairs" in finding(table)
    made = table.copy()
    made.loc[made["part"] == "denominator", ["nonpositive_fraction", "median_error"]] = (0.345, 5.67)
    made.loc[made["part"] == "precision", "added_error"] = 0.089
    made.loc[made["part"] == "favor", ["relative_variance", "median_ratio"]] = (0.0123, 0.5)
    told = finding(made)
    for number in ("0.345 of the denominators of identity", "median 5.67", "bfloat16 0.089", "0.012", "5.0e-01"):
        assert number in told
        assert number not in finding(table)


def test_without_a_bad_denominator_the_sentence_says_so(table):
    positive = table[(table["part"] != "denominator") | (table["feature_map"] == "elu_plus_one")]
    assert "0.000 of the denominators of elu_plus_one" in finding(positive)


def test_the_figures_draw_their_part(table):
    assert set(figures.stability(table).table["feature_map"]) == set(SMALL.feature_maps)
    assert set(figures.precision(table).table["state_dtype"]) == set(SMALL.state_dtypes)
    assert len(figures.kernel_variance(table).table) == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"key_squares": (0.0,)}, "key_squares must be"),
        ({"feature_maps": ("identiy",)}, "feature_map 'identiy' does not exist. Did you mean 'identity'"),
        ({"state_dtypes": ()}, "state_dtypes must be"),
        ({"state_dtypes": ("float7",)}, "state_dtypes must be a list, each entry one of float64"),
        ({"round_every": (0,)}, "round_every must be"),
    ],
)
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told}"):
        Stability(**change)
