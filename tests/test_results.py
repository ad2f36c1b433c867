"""Results: what the averages, errors and intervals of a tidy table are, and what is never averaged silently."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from capmem import results
from tests.synthetic_table import table

BY = ["feature_map", "keys.correlation", "key_dim", "num_pairs"]


def normal_groups(groups, trials, rng):
    """A table of one metric, N(0, 1), in groups of equal size."""
    values = rng.standard_normal((groups, trials))
    index = {"key_dim": np.repeat(np.arange(groups), trials), "trial": np.tile(np.arange(trials), groups)}
    return pd.DataFrame({**index, "top1_accuracy": values.ravel()}), values


def test_mean_and_standard_error_are_those_of_the_trials():
    frame = pd.DataFrame({"key_dim": [8, 8, 8, 16], "trial": [0, 1, 2, 0], "top1_accuracy": [0.1, 0.4, 0.7, 0.9]})
    found = results.aggregate(frame, ["key_dim"])
    assert found["trials"].tolist() == [3, 1]
    np.testing.assert_allclose(found["top1_accuracy"], [0.4, 0.9])
    np.testing.assert_allclose(found["top1_accuracy_se"][0], 0.3 / np.sqrt(3))


def test_a_single_trial_has_no_interval():
    found = results.aggregate(table(trials=1), BY)
    columns = ["scale_optimal_error_se", "scale_optimal_error_low", "scale_optimal_error_high"]
    assert found[columns].isna().all(axis=None)


@pytest.mark.parametrize(("trials", "expected"), [(4, 0.88), (8, 0.95), (30, 0.95)])
def test_interval_covers_the_true_mean_as_often_as_it_says(rng, trials, expected):
    """Plain percentiles would cover 89% at 8 trials. Of 4 values, 1 in 8 times all lie on one side of the mean."""
    frame, _ = normal_groups(1000, trials, rng)
    found = results.aggregate(frame, ["key_dim"])
    covered = (found["top1_accuracy_low"] <= 0) & (found["top1_accuracy_high"] >= 0)
    assert covered.mean() == pytest.approx(expected, abs=0.03)  # 3 standard errors of 1000 groups


def test_a_lower_confidence_covers_less(rng):
    frame, _ = normal_groups(1000, 30, rng)
    found = results.aggregate(frame, ["key_dim"], confidence=0.5)
    covered = (found["top1_accuracy_low"] <= 0) & (found["top1_accuracy_high"] >= 0)
    assert covered.mean() == pytest.approx(0.5, abs=0.06)


def test_few_trials_have_the_width_of_students_t(rng):
    """But for the tails that means of 8 resampled values lack: 0.95 of it; without the factor sqrt(n/(n - 1)) 0.89."""
    frame, values = normal_groups(2000, 8, rng)
    found = results.aggregate(frame, ["key_dim"])
    half = (found["top1_accuracy_high"] - found["top1_accuracy_low"]) / 2
    ratio = half / (2.3646 * values.std(axis=1, ddof=1) / np.sqrt(8))  # t of 7 degrees of freedom, 97.5%
    assert 0.93 < ratio.mean() < 1


def test_interval_width_is_that_of_the_standard_error(rng):
    frame, values = normal_groups(50, 40, rng)
    found = results.aggregate(frame, ["key_dim"], resamples=4000)
    half = (found["top1_accuracy_high"] - found["top1_accuracy_low"]) / 2
    np.testing.assert_allclose(half, 2.02 * values.std(axis=1, ddof=1) / np.sqrt(40), rtol=0.1)


def test_interval_does_not_depend_on_other_groups_or_on_row_order(rng):
    frame = table()
    whole = results.aggregate(frame, BY)
    part = results.aggregate(frame[frame["key_dim"] == 32].sample(frac=1, random_state=3), BY)
    pd.testing.assert_frame_equal(part, whole[whole["key_dim"] == 32].reset_index(drop=True), check_exact=True)


def test_seed_zero_is_a_seed_and_another_seed_is_another_resampling():
    frame = table(maps=("relu",))
    first, again, other = (results.aggregate(frame, BY, seed=s) for s in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert (first["scale_optimal_error_low"] != other["scale_optimal_error_low"]).any()
    pd.testing.assert_series_equal(first["scale_optimal_error"], other["scale_optimal_error"], check_exact=True)


def test_only_rows_that_went_well_count():
    frame = table(maps=("relu",), correlations=(0.0,), key_dims=(16,))
    spoiled = frame.copy()
    spoiled.loc[frame["trial"] == 3, ["status", "scale_optimal_error"]] = ["failed", 77.0]
    found = results.aggregate(spoiled, BY)
    assert (found["trials"] == 7).all()
    assert found["scale_optimal_error"].max() < 1
    spoiled["status"] = "ok"
    assert results.aggregate(spoiled, BY)["scale_optimal_error"].max() > 9


def test_values_that_are_not_finite_are_left_out_and_counted():
    frame = table(maps=("relu",), correlations=(0.0,), key_dims=(16,), num_pairs=(8,))
    frame.loc[[0, 1], "scale_optimal_error"] = [np.inf, np.nan]
    found = results.aggregate(frame, BY).iloc[0]
    assert (found["trials"], found["scale_optimal_error_nonfinite"]) == (8, 2)
    assert found["scale_optimal_error"] == pytest.approx(frame["scale_optimal_error"][2:].mean())
    assert results.aggregate(frame, BY)["top1_accuracy_nonfinite"][0] == 0


def test_a_group_without_any_number_is_nan():
    frame = table(maps=("relu",), correlations=(0.0,), key_dims=(16,), num_pairs=(8,)).assign(top1_accuracy=np.nan)
    assert results.aggregate(frame, BY).iloc[0][["top1_accuracy", "top1_accuracy_low"]].isna().all()


def test_predictions_are_carried_through_and_stay_missing_where_there_is_none():
    found = results.aggregate(table(maps=("identity", "dpfp"), correlations=(0.0,), key_dims=(16,)), BY)
    known = found[found["feature_map"] == "identity"]
    x = (known["num_pairs"] - 1) / 16
    np.testing.assert_allclose(known["theory_scale_optimal_error"], x / (1 + x))
    assert found.loc[found["feature_map"] == "dpfp", "theory_scale_optimal_error"].isna().all()


def test_a_missing_setting_is_a_group_of_its_own():
    frame = table(maps=("relu",), correlations=(0.0, 0.3), key_dims=(16,), num_pairs=(8,))
    frame.loc[frame["keys.correlation"] == 0.3, "keys.correlation"] = np.nan
    assert results.aggregate(frame, ["keys.correlation"])["trials"].tolist() == [8, 8]


def test_settings_of_mixed_type_can_be_grouped():
    frame = table(maps=("relu",), correlations=(0.0,), key_dims=(16,), num_pairs=(8,), trials=4)
    frame["key_scale"] = pd.Series([1.0, "sqrt_dim", 2.0, "sqrt_dim"], dtype=object)
    found = results.aggregate(frame, ["key_scale"])
    assert dict(zip(found["key_scale"], found["trials"], strict=True)) == {1.0: 1, 2.0: 1, "sqrt_dim": 2}


def test_averaging_over_different_settings_is_said():
    frame = table(maps=("relu",))
    with pytest.warns(UserWarning, match="keys.correlation"):
        results.aggregate(frame, ["key_dim", "num_pairs"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results.aggregate(frame, BY)
        results.aggregate(pd.concat([frame, frame.assign(seed=1)]), BY)  # seeds are repetitions


def test_another_codebook_at_the_same_number_of_pairs_is_another_setting():
    frame = table(maps=("relu",), correlations=(0.0,)).assign(codebook_size=64)
    assert results.mixed(frame, ["key_dim", "num_pairs"]) == []
    half = frame.assign(codebook_size=np.where(frame["trial"] < 4, 64, 4096))
    assert results.mixed(half, ["key_dim", "num_pairs"]) == ["codebook_size"]
    grown = frame.assign(codebook_size=frame["num_pairs"])  # the stored values: it follows from N
    assert results.mixed(grown, ["key_dim", "num_pairs"]) == []


def test_a_step_that_is_left_out_comes_before_the_others():
    frame = table(maps=("relu",), correlations=(0.0,), key_dims=(16,), num_pairs=(8,))
    frame["key_center"] = np.where(frame["trial"] < 4, "mean", "none")
    assert results.aggregate(frame, ["key_center"])["key_center"].tolist() == ["none", "mean"]


def test_groups_default_to_every_setting_that_varies():
    found = results.aggregate(table(maps=("relu",), correlations=(0.0, 0.3)))
    assert list(found.columns[:4]) == ["keys.correlation", "key_dim", "feature_dim", "num_pairs"]
    assert (found["trials"] == 8).all()


def test_varying_lists_settings_in_one_order_whatever_the_order_of_columns():
    frame = table()
    expected = ["feature_map", "feature_map.nu", "keys.correlation", "key_dim", "feature_dim", "num_pairs"]
    assert results.varying(frame) == expected
    assert results.varying(frame[frame.columns[::-1]]) == expected
    assert results.varying(frame[frame["key_dim"] == 16])[-2:] == ["feature_dim", "num_pairs"]
    assert results.varying(frame.assign(key_norm=["l2", "none"] * (len(frame) // 2)))[2] == "key_norm"


def test_wrong_input_is_refused_with_what_was_given():
    frame = table(maps=("relu",))
    with pytest.raises(ValueError, match="'key_dmi'.*key_dim"):
        results.aggregate(frame, ["key_dmi"])
    with pytest.raises(ValueError, match="no rows"):
        results.aggregate(frame[:0], BY)
    with pytest.raises(ValueError, match="between 0 and 1, got 95"):
        results.aggregate(frame, BY, confidence=95)
    with pytest.raises(ValueError, match="'dtype' is not numeric"):
        results.aggregate(frame, BY, metrics=["dtype"])


def test_load_returns_what_was_stored(tmp_path):
    from capmem import store

    frame = table(maps=("relu",), correlations=(0.3,), key_dims=(16,))
    store.write_part(tmp_path, frame.astype(object).where(frame.notna(), None).to_dict("records"))
    loaded = results.load(tmp_path)
    shared = ["num_pairs", "trial", "scale_optimal_error"]
    ordered = [f[shared].sort_values(shared[:2]).reset_index(drop=True) for f in (frame, loaded)]
    pd.testing.assert_frame_equal(*ordered, check_dtype=False)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        results.load(tmp_path / "nowhere")


def test_importing_what_reads_results_loads_no_pandas_and_no_matplotlib():
    code = (
        "import sys, capmem.results, capmem.capacity, capmem.figures;"
        "print([m for m in ('pandas', 'matplotlib', 'seaborn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
