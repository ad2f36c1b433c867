"""Keys and features that share a mean: golden limits, closed forms, what centring gives back, and the sentences."""

import math

import numpy as np
import pandas as pd
import pytest

from capmem import figures, theory
from capmem.ensembles import GaussianKeys
from capmem.feature_maps import Dpfp, EluPlusOne, Exp, Identity, ReLU, SoftmaxFeatures, Softplus, SquaredReLU
from capmem.studies.correlation import CENTRED, ERROR, Correlation, finding, limit, rows

SMALL = Correlation(
    (0.0, 0.9),
    ("identity", "relu", "elu_plus_one"),
    16,
    16,
    num_pairs=(4, 16),
    key_dims=(16, 64),
    num_keys=128,
    trials=8,
)


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(SMALL))


def errors(table, n=16):
    part = table[(table["part"] == "error") & (table["num_pairs"] == n)]
    return part.groupby(["feature_map", "centred", "correlation"])[ERROR].mean()


@pytest.mark.parametrize(
    ("phi", "expected"),
    [
        (ReLU(), math.pi**2),
        (SquaredReLU(), 36.0),
        (Exp(), math.exp(2)),
        (EluPlusOne(), 2.1308),
        (Softplus(), 2.0104),
        (Dpfp(1), math.pi**4),
        (Dpfp(3), math.pi**4),
        (Identity(), math.inf),
    ],
)
def test_golden_limits(phi, expected):
    for d in (8, 1024):
        assert limit(phi, d) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("phi", [ReLU(), EluPlusOne(), Dpfp(1)])
def test_the_limit_is_where_the_effective_dimension_goes_and_never_passed(phi):
    at = [theory.effective_dimension(phi, GaussianKeys(), d) for d in (16, 256, 4096, 2**20)]
    assert at == sorted(at) and at[-1] < limit(phi, 16)
    assert at[-1] == pytest.approx(limit(phi, 16), rel=1e-3)
    assert at[0] < 0.99 * limit(phi, 16)  # it is no formula for finite d


def test_a_map_without_a_formula_has_no_limit():
    assert math.isnan(limit(SoftmaxFeatures(), 16))


def test_measured_dimensions_come_to_their_closed_forms(table):
    part = table[table["part"] == "dimension"]
    for column in ("effective_dimension", "centred_effective_dimension"):
        away = abs(part[column] - part[f"theory_{column}"])
        assert (away < 5 * part[f"{column}_se"] + 0.005 * part[column]).all()
    centred = part["theory_centred_effective_dimension"]
    np.testing.assert_allclose(centred, part["key_dim"], rtol=1e-6)  # of every elementwise map


def test_centred_keys_are_read_as_keys_that_share_nothing(table):
    mean = errors(table)
    assert mean["identity", "none", 0.9] > mean["identity", "none", 0.0] + 0.3
    assert mean["identity", "keys", 0.9] == pytest.approx(mean["identity", "none", 0.0], abs=0.05)


def test_centred_keys_do_not_help_a_map_with_a_mean_of_its_own(table):
    mean = errors(table)
    assert mean["elu_plus_one", "keys", 0.9] > 0.8
    assert mean["elu_plus_one", "both", 0.9] == pytest.approx(mean["identity", "keys", 0.9], abs=0.05)


def test_errors_come_to_their_closed_forms(table):
    part = table[(table["part"] == "error") & (table["num_pairs"] == 16)]
    means = part.groupby(["feature_map", "centred", "correlation"])[[ERROR, f"theory_{ERROR}"]].mean().dropna()
    assert len(means) >= 18
    np.testing.assert_allclose(means[ERROR], means[f"theory_{ERROR}"], rtol=0.12)


def test_the_sentences_follow_the_table(table):
    first = finding(table)
    assert first.startswith("With 16 pairs and keys of correlation 0.9 the error is: identity 0.")
    assert "relu" in first and "(limit 9.87; features centred" in first and "(limit 2.131;" in first
    made = table.copy()
    for i, centred in enumerate(CENTRED):
        rows_of = (made["centred"] == centred) & (made["feature_map"] == "relu") & (made["correlation"] == 0.9)
        made.loc[rows_of, ERROR] = 0.111 * (i + 1)
    told = finding(made)
    assert (
        "relu 0.11, elu" in told and "relu 0.22, elu" in told and "relu 0.33, elu" in told and "relu 0.44, elu" in told
    )
    last = (made["part"] == "dimension") & (made["key_dim"] == 64)
    made.loc[last, ["effective_dimension", "limit", "centred_effective_dimension"]] = (4.56, 7.89, 12.3)
    told = finding(made)
    assert "at d = 64 D_eff is identity 4.56 (limit 7.89; features centred 12.3)" in told
    assert "without a mean feature" not in told


def test_the_figures_hold_every_map_centring_and_number_of_pairs(table):
    grid = figures.correlation(table)
    assert grid.axes.shape == (2, len(CENTRED))
    assert [ax.get_title() for ax in grid.axes[0]] == [
        "as they are",
        "keys centred",
        "features centred",
        "both centred",
    ]
    assert len(grid.table) == 3 * 4 * 2 * 2
    drawn = figures.mean_feature(table)
    lines = [line.get_ydata()[0] for line in drawn.axes[0, 0].lines if line.get_linewidth() == 0.8]
    assert lines == pytest.approx([math.pi**2, 2.1308], rel=1e-4)
    assert [t.get_text() for t in drawn.axes[0, 0].texts] == ["$\\pi^2 = 9.87$", "$2.13$"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"correlations": (1.0,)}, "correlations must be a list, not empty, of numbers from 0 to 0.99, got"),
        ({"correlations": ()}, "correlations must be"),
        ({"feature_maps": ("cosformer",)}, "feature_maps must be maps that do not depend on the place"),
        ({"feature_maps": ()}, "feature_maps must be"),
        ({"num_pairs": (0,)}, "num_pairs must be"),
    ],
)
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told}"):
        Correlation(**change)
