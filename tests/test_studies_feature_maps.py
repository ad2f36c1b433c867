"""Feature maps side by side: the reference table of effective dimensions, ranks, weights, alarms, and the sentences."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capmem import attention, figures
from capmem.ensembles import GaussianKeys, SphereKeys
from capmem.feature_maps import (
    FEATURE_MAPS,
    CosFormer,
    Dpfp,
    EluPlusOne,
    Exp,
    Identity,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    ReLU,
    SiLU,
    SoftmaxFeatures,
    Softplus,
    SquaredReLU,
    Taylor,
)
from capmem.readouts import Normalized
from capmem.studies._map_dimension import ALARM, dimensions, of_width, rank, redrawn
from capmem.studies._map_weights import compared, kernel_weights, softmax_weights
from capmem.studies.feature_maps import FeatureMaps, finding, maps, rows

LAWS = {"normal": GaussianKeys(), "unit": SphereKeys()}
# map: D_eff, centred D_eff of keys from N(0, I); the same of unit keys; d = 64. Last digits as they were told.
TABLE = {
    Identity(): (64.0, 64, 64.0, 64),
    ReLU(): (8.67, 64, 8.67, 64),
    SquaredReLU(): (23.3, 64, 23.2, 64),
    EluPlusOne(): (2.09, 64, 1.03, 64),
    Exp(): (6.72, 64, 1.03, 64),
    Softplus(): (1.98, 64, 1.016, 64),
    SiLU(): (33.6, 64, 63.9, 64),
    SoftmaxFeatures(): (6.0, 107, 1.03, 64),
    Dpfp(1): (52.1, 111, 52.1, 111),
    Dpfp(3): (67.0, 223, 67.2, 222),
    RandomReLU(256): (9.07, 80, 9.07, 80),
    RandomFourierFeatures(256): (7.13, 130, 7.11, 130),
}
SMALL = FeatureMaps(
    ("relu", "taylor", "positive_random_features"), 16, 16, feature_dim=64, num_keys=64, num_pairs=(32,), trials=3
)


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(SMALL))


@pytest.mark.parametrize("phi", TABLE, ids=lambda phi: type(phi).__name__ + str(getattr(phi, "nu", "")))
def test_measured_dimensions_are_those_of_the_reference_table(phi):
    """Within 5 standard errors of 4 trials, at least 2%, and the half digit that the table is told to."""
    told = iter(TABLE[phi])
    for law in LAWS.values():
        found = dimensions(phi, law, 64, 384, 4, seed=0)
        for column in ("effective_dimension", "centred_effective_dimension"):
            expected = next(told)
            digit = 0.5 if column.startswith("centred") else 0.05 if expected > 10 else 0.005
            error = max(5 * found[f"{column}_se"], 0.02 * expected) + digit
            assert found[column] == pytest.approx(expected, abs=error)
            theory = found[f"theory_{column}"]
            assert np.isnan(theory) == (phi == SoftmaxFeatures())
            assert np.isnan(theory) or found[column] == pytest.approx(theory, abs=error)


def test_the_biased_participation_ratio_would_not_pass():
    keys = GaussianKeys().sample(np.random.default_rng(3), 512, 64)
    biased = np.trace(keys @ keys.T) ** 2 / ((keys @ keys.T) ** 2).sum()
    assert biased < 0.95 * dimensions(Identity(), GaussianKeys(), 64, 512, 1, 3)["effective_dimension"]


@pytest.mark.parametrize(
    ("phi", "law", "expected"),
    [
        (Polynomial(2), GaussianKeys(), 136),
        (Taylor(2), GaussianKeys(), 153),
        (Taylor(2), SphereKeys(), 152),  # |x|^2 = 1 makes the constant a sum of squares
        (SoftmaxFeatures(), GaussianKeys(), 31),  # both halves sum to 1
        (SoftmaxFeatures(), SphereKeys(), 31),
        (Dpfp(3), GaussianKeys(), 96),
        (Dpfp(16), GaussianKeys(), 480),  # the shift by d pairs x with -x
        (EluPlusOne(), SphereKeys(), 16),
        (PositiveRandomFeatures(32), GaussianKeys(), 32),
    ],
)
def test_golden_ranks(phi, law, expected):
    assert rank(phi, law, 16, seed=0) == expected


def test_a_dimension_above_the_width_is_an_alarm_and_a_noisy_one_is_not():
    favor = dimensions(PositiveRandomFeatures(), GaussianKeys(), 64, 512, 4, seed=0)
    assert favor["above_width"] and favor["largest_effective_dimension"] > ALARM * 256
    assert np.isnan(favor["theory_effective_dimension"])
    assert not dimensions(PositiveRandomFeatures(), SphereKeys(), 64, 512, 4, seed=0)["above_width"]
    assert not dimensions(Identity(), GaussianKeys(), 64, 512, 4, seed=0)["above_width"]


def test_a_map_that_depends_on_the_place_has_no_centred_dimension():
    found = dimensions(CosFormer(), GaussianKeys(), 16, 64, 2, seed=0)
    assert np.isnan(found["centred_effective_dimension"]) and found["theory_effective_dimension"] > 1


@pytest.mark.parametrize("name", FEATURE_MAPS.names())
def test_equal_state_is_as_wide_as_the_map_allows(name):
    phi, d = of_width(FEATURE_MAPS.build(name), 16, 64)
    random = hasattr(phi, "num_features")
    next_width = replace(phi, num_features=phi.num_features + 1).width(d) if random else phi.width(d + 1)
    assert phi.width(d) <= 64 < next_width
    assert type(phi) is FEATURE_MAPS[name] and (d == 16 or not random)


def test_a_random_map_is_drawn_again_in_every_trial():
    drawn = {redrawn(RandomReLU(8), 0, trial).seed for trial in range(3)}
    assert len(drawn) == 3 and redrawn(ReLU(), 0, 1) == ReLU()


@pytest.mark.parametrize("phi", [ReLU(), Taylor(), CosFormer()])
def test_weights_are_what_normalised_attention_reads_values_with(phi):
    """With unit vectors as values, attention returns its own weights."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((12, 8))
    queries = rng.standard_normal((5, 8))
    read = attention.linear_attention(queries, keys, np.eye(12), phi, Normalized())
    np.testing.assert_allclose(kernel_weights(phi, queries, keys), read, atol=1e-12)
    np.testing.assert_allclose(
        softmax_weights(queries, keys), attention.softmax_attention(queries, keys, np.eye(12)), atol=1e-12
    )


def test_golden_fits():
    """Softmax is 0, uniform 1; of one wrong row in three the median hides it, of two it does not."""
    softmax = softmax_weights(2 * np.eye(3), 2 * np.eye(3))
    assert compared(softmax, softmax)["fit_error"] == 0
    uniform = compared(np.full((3, 3), 1 / 3), softmax)
    assert (uniform["fit_error"], uniform["entropy"], uniform["largest_weight"]) == pytest.approx((1, 1, 1 / 3))
    swapped = softmax[[0, 2, 1]]
    p, q = softmax[0, 0], softmax[0, 1]
    assert compared(swapped, softmax)["fit_error"] == pytest.approx(2 * (p - q) ** 2 / (2 / 3 * (p - q) ** 2))
    assert compared(softmax, softmax)["entropy"] == pytest.approx(-(p * np.log(p) + 2 * q * np.log(q)) / np.log(3))


def test_negative_weights_have_no_entropy():
    found = compared(np.array([[1.5, -0.5]]), np.array([[0.4, 0.6]]))
    assert found["negative_weights"] == 0.5
    assert np.isnan(found["entropy"]) and np.isnan(found["largest_weight"])


@pytest.mark.slow
def test_taylor_features_come_close_to_softmax_where_scores_are_small(table):
    weights = table[(table["part"] == "weights") & (table["scale"] == "unit")].set_index("feature_map")
    assert weights.loc["taylor", "fit_error"] < 1e-4 < weights.loc["relu", "fit_error"]
    assert weights.loc["uniform", "fit_error"] == 1 and weights.loc["softmax", "fit_error"] == 0


def test_every_registered_map_is_looked_at():
    found = maps(FeatureMaps())
    assert {type(phi) for phi in found.values()} == {FEATURE_MAPS[name] for name in FEATURE_MAPS.names()}
    assert {"dpfp, nu=3", "positive_random_features, hyperbolic"} <= found.keys()


def test_simulated_capacities_come_to_the_closed_forms(table):
    held = table[(table["part"] == "map") & table["theory_capacity"].notna() & (table["scale"] == "unit")]
    assert len(held) >= 4
    np.testing.assert_allclose(held["capacity"], held["theory_capacity"], rtol=0.12)


def test_the_sentences_follow_the_table(table):
    first = finding(table)
    assert first.startswith("At key dimension 16 and N(0, 1) keys, N* (scale-optimal error 0.5) is largest for taylor")
    made = table.copy()
    here = (made["feature_map"] == "relu") & (made["part"] == "map") & (made["scale"] == "normal")
    made.loc[here, ["capacity", "effective_dimension"]] = (987.0, 12.3)
    assert "is largest for relu 987 (D_eff 12.3 of D = 16)" in finding(made)
    made.loc[here, ["above_width", "largest_effective_dimension"]] = (True, 55.5)
    told = finding(made)
    assert "Not to be trusted" in told and "relu (N(0, 1) keys: up to 55.5, D = 16)" in told
    assert "largest for relu" not in told
    made.loc[made["feature_map"] == "relu", "fit_error"] = 0.0123
    assert "Closest to softmax's weights on N(0, 1) keys is relu (fit error 0.012, uniform weights 1)" in finding(made)


def test_no_alarm_is_told_where_there_is_none(table):
    made = table.assign(above_width=False)
    assert "Not to be trusted" not in finding(made)


def test_the_figures_show_every_map_and_mark_alarms(table):
    grid = figures.feature_maps(table)
    assert set(grid.table["feature_map"]) == set(table.loc[table["part"] == "map", "feature_map"])
    held = table[table["part"] == "map"]
    for alarm in (False, True):
        made = table.assign(above_width=(table["part"] == "map") & alarm)
        told = [text.get_text() for text in figures.feature_maps(made).figure.legends[0].get_texts()]
        assert any("not to be trusted" in text for text in told) is alarm
    fit = figures.softmax_fit(table)
    names = [label.get_text().replace("\n", " ") for label in fit.axes[0, 0].get_yticklabels()]
    assert names[-1] == "softmax" and set(held["feature_map"]) < set(names)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"feature_maps": ("rleu",)}, "feature_map 'rleu' does not exist. Did you mean 'relu'"),
        ({"num_pairs": (1,)}, "num_pairs must be"),
        ({"feature_dim": 3}, "feature_dim must be"),
        ({"cues": "own"}, "cues must be one of stored, independent"),
    ],
)
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=told):
        FeatureMaps(**change)
