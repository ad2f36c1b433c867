"""Write rules on one stream: golden errors, overwriting, the double descent, and the sentences."""

import numpy as np
import pandas as pd
import pytest

from capmem import figures
from capmem.studies._replacement import averaging_error, replacement_rows
from capmem.studies.write_rules import STUDY, WriteRules, finding, ridge_label, rows

ERROR = "relative_squared_error"
GOLDEN = WriteRules(  # d = v = 64, the numbers of the reference tables
    num_pairs=(64, 256), age_pairs=256, age_bins=8, fractions=(0.0, 0.75), distinct_keys=(20,),
    noise_pairs=(32, 64, 128), ridges=(0.0, 0.5), trials=4,
)  # fmt: skip
SURE = 4  # standard errors


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(GOLDEN))


def of(table, part, **chosen):
    found = table[table["part"] == part]
    for column, value in chosen.items():
        found = found[found[column] == value]
    assert len(found)
    return found


def near(rows, expected):
    """Whether the mean lies within the stated number of its standard errors."""
    assert abs(rows[ERROR].mean() - expected) <= SURE * rows[ERROR].sem() + 1e-9
    return True


@pytest.mark.parametrize(
    ("rule", "pairs", "error"),
    [
        ("hebbian", 64, 0.9844), ("delta, step=1", 64, 0.5982), ("least_squares", 64, 0.0),
        ("hebbian", 256, 3.9844), ("delta, step=1", 256, 1.4955), ("least_squares", 256, 0.75),
    ],
)  # fmt: skip
def test_golden_errors_at_one_and_four_pairs_a_dimension(table, rule, pairs, error):
    found = of(table, "load", rule=rule, num_pairs=pairs)
    assert near(found, error)
    assert found[f"theory_{ERROR}"].iloc[0] == pytest.approx(error, abs=1e-4)


def test_decay_would_not_pass_for_hebbian(table):
    found = of(table, "load", rule="decay, rate=0.99", num_pairs=64)
    assert abs(found[ERROR].mean() - 0.9844) > SURE * found[ERROR].sem()


def test_the_limit_of_many_dimensions_is_near(table):
    n = np.array([1.0, 4.0])
    limit = (2 - np.exp(-n)) * (1 - (1 - np.exp(-n)) / n)
    np.testing.assert_allclose(limit, [0.6004, 1.4953], atol=1e-4)
    for load, error in zip(n, limit, strict=True):
        assert of(table, "load", rule="delta, step=1", load=load)[f"theory_{ERROR}"].iloc[0] == pytest.approx(
            error, abs=0.003
        )


def test_delta_reads_the_newest_and_forgets_the_oldest_as_its_closed_form_says(table):
    """e(m) = 2 (1 - r^m) - (1 - 1/d)(r^m - A^m) r^(N-1-m), with r = 1 - 1/d, A = 1 - 2 (d+1)/(d (d+2))."""
    d, n = 64, 256
    r, a, m = 1 - 1 / d, 1 - 2 * (d + 1) / (d * (d + 2)), np.arange(n)
    error = 2 * (1 - r**m) - (1 - 1 / d) * (r**m - a**m) * r ** (n - 1 - m)
    age = of(table, "age", rule="delta, step=1")
    for low, part in age.groupby("age_low"):
        high = int(part["age_high"].iloc[0])
        assert near(part, error[int(low) : high + 1].mean())
        assert part[f"theory_{ERROR}"].iloc[0] == pytest.approx(error[int(low) : high + 1].mean(), rel=1e-9)


def test_a_repeated_key_is_overwritten_by_delta_and_mixed_in_by_hebbian(table):
    means = of(table, "overwrite").groupby(["rule", "fraction"])[ERROR].mean()
    assert means["delta, step=1", 0.75] < 0.5 * means["delta, step=1", 0.0]
    assert means["hebbian", 0.75] > 2 * means["hebbian", 0.0]
    assert means["least_squares", 0.0] < 1e-9 < 0.3 < means["least_squares", 0.75]  # it averages the old values in


@pytest.mark.parametrize(("distinct", "loss"), [(20, 0.1082), (40, 0.1123), (100, 0.1148), (200, 0.1157)])
def test_golden_losses_of_reading_the_average_of_all_values(distinct, loss):
    """Half of the error: the published loss is .5 |v - y|^2."""
    assert averaging_error(distinct) / 2 == pytest.approx(loss, abs=5e-5)


def test_keys_drawn_with_replacement_come_to_the_closed_form():
    found = pd.DataFrame(replacement_rows([4], 600, seed=1)).groupby("rule")[ERROR].agg(["mean", "sem"])
    average = found.loc["hebbian, normalised"]
    assert abs(average["mean"] - averaging_error(4)) < SURE * average["sem"]
    assert abs(average["mean"] - averaging_error(4) / (1 - 1 / 4)) > SURE * average["sem"]  # equal values are right
    assert found.loc["delta, step=1", "mean"] < 1e-25


def test_the_pseudo_inverse_of_noisy_cues_is_that_of_a_dense_solve(table):
    """The same draws, solved at once by numpy."""
    from capmem.cues import noisy_cues
    from capmem.ensembles import SphereKeys, SphereValues

    for n in (32, 128):
        rng = {s: np.random.default_rng([0, 0, s]) for s in range(3)}
        keys, values = SphereKeys().sample(rng[0], n, 64), SphereValues().sample(rng[1], n, 64)
        read = noisy_cues(rng[2], keys, 0.8) @ np.linalg.pinv(keys) @ values
        error = ((read - values) ** 2).sum() / (values**2).sum()
        found = of(table, "noise", rule=ridge_label(0.0), num_pairs=n, trial=0)[ERROR].iloc[0]
        assert found == pytest.approx(error, rel=1e-8)


def test_the_pseudo_inverse_peaks_at_one_pair_a_dimension_and_a_ridge_takes_the_peak_away(table):
    plain, ridge = (of(table, "noise", rule=ridge_label(x)).groupby("num_pairs")[ERROR].mean() for x in (0.0, 0.5))
    assert plain[64] > 10 * max(plain[32], plain[128])
    assert ridge[32] < ridge[64] < ridge[128] < 1
    assert np.isnan(of(table, "noise", rule=ridge_label(0.0), num_pairs=64)[f"theory_{ERROR}"]).all()


def test_ridges_come_to_their_closed_form_and_the_best_is_inside(table):
    scan = of(table, "ridge")
    means = scan.groupby("ridge")[[ERROR, f"theory_{ERROR}"]].mean()
    known = means.dropna()
    assert len(known) >= 8
    errors = scan.groupby("ridge")[ERROR].sem().loc[known.index]
    gaps = (known[ERROR] - known[f"theory_{ERROR}"]).abs()
    assert (gaps <= SURE * errors + 0.02 * known[ERROR]).all()  # 2%: the expansion in 1/d
    assert means.index[0] < means[ERROR].idxmin() < means.index[-1]


def test_the_sentences_follow_the_table(table):
    told = finding(table)
    assert "(closed form 0.598)" in told and "(closed form 1.496)" in told and "(closed form 0.750)" in told
    made = table.copy()
    made.loc[(made["part"] == "load") & (made["rule"] == "hebbian"), ERROR] = 7.25
    made.loc[(made["part"] == "ridge") & (made["ridge"] == 2.0), ERROR] = 0.125
    assert "hebbian 7.250" in finding(made) and "the best of these ridges is 2, with 0.125" in finding(made)
    assert "7.250" not in told


def test_what_diverges_is_said_not_to_be_trusted(table):
    assert "Not to be trusted" not in finding(table)
    made = table.assign(warning=[None] * (len(table) - 1) + ["the rule diverges"])
    assert "Not to be trusted: in 1 rows, the rule diverges" in finding(made)


def test_the_figures_leave_nothing_out(table):
    assert set(figures.error_by_load(table).table["rule"]) == set(of(table, "load")["rule"])
    assert set(figures.double_descent(table).table["part"]) == {"noise", "ridge"}
    assert set(figures.overwriting(table).table["part"]) == {"overwrite", "replacement"}
    by_age = figures.error_by_age(table)
    assert len(by_age.axes[0, 0].lines) == 2 * len(set(by_age.table["rule"]))  # measured and closed form
    assert STUDY.figures.keys() == {"load", "age", "overwrite", "noisy_cues"}


@pytest.mark.parametrize(
    ("change", "told"),
    [({"step_size": 2.0}, "step_size"), ({"fractions": (1.0,)}, "fractions"), ({"rate": 1.0}, "rate"),
     ({"query_cosine": 1.0}, "query_cosine"), ({"ridges": (-1.0,)}, "ridges"), ({"age_bins": 257}, "age_bins")],
)  # fmt: skip
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told} must be"):
        WriteRules(**change)
