"""Capacity from a table: where a mean curve leaves its criterion, how sure that is, and when it is not known."""

import math

import numpy as np
import pandas as pd
import pytest

from capmem.capacity import CapacityEstimate, Criterion, crossing, from_curves, from_table
from capmem.tables import summary_table
from tests.synthetic_table import CHECKPOINTS, capacity, effective_dimension, table

BY = ["feature_map", "keys.correlation", "key_dim"]
EXACT = {"maps": ("identity",), "correlations": (0.0,), "noise": 0.0}


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_crossing_is_the_analytic_capacity_on_a_fine_grid(threshold):
    frame = table(**EXACT, key_dims=(64,), num_pairs=range(2, 600, 2), trials=1)
    found = from_table(frame, Criterion(threshold=threshold), BY).iloc[0]
    assert found["pairs"] == pytest.approx(capacity(64, threshold), rel=2e-3)
    assert found["theory_pairs"] == pytest.approx(capacity(64, threshold), rel=2e-3)


def test_crossing_stays_within_five_percent_on_powers_of_two():
    found = from_table(table(**EXACT, trials=1), by=BY)
    expected = [capacity(effective_dimension("identity", d, 0.0)) for d in found["key_dim"]]
    np.testing.assert_allclose(found["pairs"], expected, rtol=0.05)


def test_interpolation_is_in_the_logarithm_of_the_number_of_pairs():
    assert from_curves([16, 64], np.array([[0.25, 0.75]])).pairs == pytest.approx(32)


def test_a_higher_threshold_on_an_accuracy_gives_fewer_pairs():
    frame = table(**EXACT, key_dims=(64,), trials=1)
    strict, loose = (from_table(frame, Criterion("top1_accuracy", t), BY)["pairs"][0] for t in (0.99, 0.5))
    assert strict < loose
    # exp(-(x / 8)^2) = 0.5
    assert loose == pytest.approx(1 + 64 * 8 * math.sqrt(math.log(2)), rel=0.05)


def test_interval_covers_the_noiseless_capacity(rng):
    grid = np.array(CHECKPOINTS)
    x = (grid - 1) / 64
    truth = from_curves(grid, (x / (1 + x))[None]).pairs
    hits = 0
    for _ in range(200):
        noisy = x * np.exp(0.3 * rng.standard_normal((16, 1))) + 0.02 * x * rng.standard_normal((16, grid.size))
        found = from_curves(grid, noisy / (1 + noisy))
        hits += found.low <= truth <= found.high
    assert 0.91 <= hits / 200 <= 0.99


def test_interval_is_as_wide_as_students_t_of_the_trials(rng):
    """Curves (N / 64) f, with a factor f a trial, cross 1 at N* = 64 / mean f: their relative errors are the same."""
    grid, ratios = np.geomspace(16, 256, 65), []
    for _ in range(60):
        factors = np.exp(0.2 * rng.standard_normal(12))
        found = from_curves(grid, grid / 64 * factors[:, None], Criterion("relative_squared_error", 1.0))
        half = 2.2010 * factors.std(ddof=1) / math.sqrt(12) / factors.mean()  # t of 11 degrees of freedom, 97.5%
        ratios.append(math.log(found.high / found.low) / 2 / half)
    assert 0.93 < np.mean(ratios) < 1.03


def test_interval_resamples_whole_trials():
    """Trials that differ as a whole spread N*; the same numbers shuffled between trials cancel out."""
    rng = np.random.default_rng(0)
    x = (np.array(CHECKPOINTS) - 1) / 64
    curves = x * np.exp(0.5 * np.linspace(-1, 1, 16))[:, None]
    shuffled = rng.permuted(curves, axis=0)
    mean = from_curves(CHECKPOINTS, curves, Criterion("relative_squared_error", 1.0))
    other = from_curves(CHECKPOINTS, shuffled, Criterion("relative_squared_error", 1.0))
    assert mean.pairs == pytest.approx(other.pairs)
    assert mean.high - mean.low > 1.1 * (other.high - other.low)


def test_seed_zero_is_a_seed():
    frame = table(maps=("identity",), correlations=(0.0,))
    first, again, other = (from_table(frame, by=BY, seed=s) for s in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert (first["low"] != other["low"]).any()
    assert (first["pairs"] == other["pairs"]).all()


def test_row_order_changes_nothing():
    frame = table(maps=("identity",), correlations=(0.0,))
    shuffled = frame.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(from_table(frame, by=BY), from_table(shuffled, by=BY), check_exact=True)


def test_the_first_failure_counts_where_a_curve_comes_back():
    values = np.array([[0.1, 0.6, 0.2, 0.9]])
    found = from_curves([8, 16, 32, 64], values)
    assert 8 < found.pairs < 16


def test_an_unbracketed_capacity_is_a_bound_and_no_number():
    above = from_curves([8, 16], np.array([[0.1, 0.2], [0.1, 0.3]]))
    below = from_curves([8, 16], np.array([[0.7, 0.8], [0.7, 0.9]]))
    assert math.isnan(above.pairs) and math.isnan(below.pairs)
    assert (above.bound, above.low, str(above)) == ("at least", 16, ">= 16")
    assert (below.bound, below.high, str(below)) == ("below", 8, "< 8")
    assert not above.bracketed and not below.bracketed


def test_a_single_checkpoint_gives_a_bound():
    assert str(from_curves([8], np.array([[0.1]]))) == ">= 8"
    assert str(from_curves([8], np.array([[0.9]]))) == "< 8"


def test_one_trial_has_no_interval():
    found = from_curves(CHECKPOINTS, (np.array(CHECKPOINTS) / 2000)[None] * 4)
    assert found.bracketed and math.isnan(found.low) and math.isnan(found.high)


def test_an_interval_may_leave_the_grid():
    found = from_curves([8, 16, 32], np.array([[0.1, 0.2, 0.2], [0.1, 0.3, 0.9]]))
    assert found.bracketed and math.isinf(found.high)
    assert str(found).endswith(f"(>= {found.low:.0f})")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_checkpoint_without_a_number_fails_an_error_criterion(bad):
    found = from_curves([8, 16, 32], np.array([[0.1, 0.2, bad]]))
    assert (found.pairs, found.bracketed) == (pytest.approx(16), True)


def test_an_infinite_signal_to_noise_ratio_holds():
    found = from_curves([1, 16, 32], np.array([[np.inf, 4.0, 0.5]]), Criterion("signal_to_noise", 1.0))
    assert 16 < found.pairs < 32


def test_crossings_of_many_curves_agree_with_one_at_a_time(rng):
    grid = np.array(CHECKPOINTS, dtype=float)
    curves = np.sort(rng.random((50, grid.size)), axis=1)
    together = crossing(grid, curves, Criterion())
    np.testing.assert_array_equal(together, [crossing(grid, c, Criterion()) for c in curves])


def test_failed_and_skipped_rows_are_no_checkpoints():
    frame = table(**EXACT, key_dims=(64,), trials=2)
    frame.loc[frame["num_pairs"] > 64, ["status", "scale_optimal_error"]] = ["skipped", 0.0]
    assert from_table(frame, by=BY)["bound"].tolist() == ["at least"]
    assert from_table(frame, by=BY)["low"].tolist() == [64]


def test_a_group_where_everything_failed_is_kept_and_has_no_number():
    frame = table(**EXACT, key_dims=(16, 32), trials=2)
    frame.loc[frame["key_dim"] == 32, "status"] = "failed"
    found = from_table(frame, by=BY)
    assert found["bound"].tolist() == ["", "no data"]
    assert "no data" in summary_table(found, ["feature_map"])


def test_a_map_without_a_prediction_has_no_predicted_capacity():
    found = from_table(table(maps=("dpfp",), correlations=(0.0,)), by=BY)
    assert found["bracketed"].all() and found["theory_pairs"].isna().all()


def test_groups_that_mix_settings_are_refused():
    frame = table(maps=("identity",))
    with pytest.raises(ValueError, match="keys.correlation"):
        from_table(frame, by=["key_dim"])
    with pytest.raises(ValueError, match="cannot contain num_pairs"):
        from_table(frame, by=["key_dim", "num_pairs"])
    assert len(from_table(frame)) == 16  # by default: all that varies


def test_wrong_criteria_are_refused():
    with pytest.raises(ValueError, match="scale_optimal_error.*'error'"):
        Criterion("error")
    with pytest.raises(ValueError, match="finite, got nan"):
        Criterion(threshold=math.nan)
    with pytest.raises(ValueError, match="no column 'top1_accuracy'"):
        from_table(table(**EXACT).drop(columns="top1_accuracy"), Criterion("top1_accuracy"), BY)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (CapacityEstimate(95.7, 88.2, 101.4, True), "96 (88-101)"),
        (CapacityEstimate(95.7, math.nan, math.nan, True), "96"),
        (CapacityEstimate(9.3, 0.0, 12.0, True), "9.3 (<= 12)"),
        (CapacityEstimate(math.nan, 1024.0, math.nan, False), ">= 1024"),
        (CapacityEstimate(math.nan, math.nan, 8.0, False), "< 8"),
    ],
)
def test_an_estimate_reads_as_a_person_would_write_it(estimate, text):
    assert str(estimate) == text


def test_criteria_read_with_their_direction():
    assert str(Criterion()) == "scale-optimal error <= 0.5"
    assert str(Criterion("top1_accuracy", 0.99)) == "top-1 accuracy >= 0.99"


def test_summary_table_shows_every_capacity_and_bound():
    frame = table(maps=("identity", "elu_plus_one"), correlations=(0.0,), key_dims=(16, 1024), noise=0.0)
    frame = frame[(frame["feature_map"] == "identity") | (frame["key_dim"] == 16)]
    text = summary_table(from_table(frame, by=BY), ["feature_map", "keys.correlation"])
    assert text.splitlines() == [
        "Pairs held (N*): largest number of pairs with scale-optimal error <= 0.5; value_dim 64, 8 trials",
        "",
        "                                key_dim",
        "feature_map   keys.correlation  16    1024",
        "------------------------------------------",
        "elu_plus_one  0                 <8       -",
        "identity      0                 17  >=1024",
        "-: not run",
    ]


@pytest.mark.parametrize(("name", "shown"), [("scale_optimal_error", "-"), ("signal_to_noise", ">=1024")])
def test_a_memory_without_a_finite_value_has_no_bound_unless_infinity_is_good(name, shown):
    frame = table(maps=("identity", "relu"), correlations=(0.0,), key_dims=(16,), trials=2)
    frame.loc[frame["feature_map"] == "relu", name] = math.inf
    criterion = Criterion(name, 0.5)
    lines = summary_table(from_table(frame, criterion, BY), ["feature_map"]).splitlines()
    assert next(line for line in lines if line.startswith("relu")).split()[1] == shown
    assert ("-: no finite value" in lines) == (shown == "-")


def test_summary_table_refuses_two_estimates_in_one_cell():
    found = from_table(table(maps=("identity",)), by=BY)
    with pytest.raises(ValueError, match="share one cell"):
        summary_table(found, ["feature_map"])
