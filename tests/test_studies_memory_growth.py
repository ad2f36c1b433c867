"""How a memory fills: exact cases, the closed form of the participation ratio, and the sentence."""

import numpy as np
import pandas as pd
import pytest

from capmem import figures, theory
from capmem.ensembles import EquicorrelatedKeys, SphereKeys, SphereValues
from capmem.feature_maps import Identity
from capmem.studies.memory_growth import MemoryGrowth, finding, participation, rows

SMALL = MemoryGrowth(key_dim=16, value_dim=8, num_pairs=(1, 8, 16, 64), gram_pairs=12, trials=3)


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(SMALL))


def of(table, part, **chosen):
    found = table[table["part"] == part]
    for column, value in chosen.items():
        found = found[found[column] == value]
    return found


@pytest.mark.parametrize("law", [SphereKeys(), EquicorrelatedKeys(0.5)])
def test_the_participation_ratio_has_the_expectation_that_is_claimed(law):
    """E tr (S S^T)^2 = N^2 / participation, within 4 standard errors of 20000 draws."""
    d, v, n, draws = 16, 4, 6, 20000
    rng = np.random.default_rng(7)
    keys = np.stack([law.sample(rng, n, d) for _ in range(draws)])
    values = SphereValues().sample(rng, draws * n, v).reshape(draws, n, v) / v**0.5
    state = np.einsum("tnd,tnv->tdv", keys, values)
    squares = (np.einsum("tdv,tdw->tvw", state, state) ** 2).sum(axis=(1, 2))
    error = 4 * squares.std() / draws**0.5
    r = 1 / theory.effective_dimension(Identity(), law, d)
    assert n**2 / participation(n, v, r) == pytest.approx(squares.mean(), abs=error)
    without_cross_term = n + n * (n - 1) * (r + 1 / v)
    assert abs(without_cross_term - squares.mean()) > error


def test_golden_participation_ratios():
    assert participation(64, 64, 0.0) == pytest.approx(64 / (1 + 63 / 64))
    assert participation(10**9, 64, 1 / 64) == pytest.approx(64 * 64 / (64 + 64 + 1), rel=1e-6)  # d v / (d + v + 1)
    assert participation(1, 8, 0.3) == 1


def test_orthonormal_keys_keep_the_energy_of_every_pair():
    """tr S S^T = sum |k_i|^2 |v_i|^2 = N |v|^2 exactly, and no more than d of them exist."""
    one = pd.DataFrame(rows(MemoryGrowth(key_dim=16, value_dim=8, num_pairs=(8, 16, 64), gram_pairs=2, trials=1)))
    singular = of(one, "singular", keys="orthonormal")
    energy = (singular["singular_value"] ** 2).groupby(singular["num_pairs"]).sum()
    assert energy.to_dict() == pytest.approx({8: 8.0, 16: 16.0})


def test_one_pair_is_one_direction(table):
    first = of(table, "state", num_pairs=1)
    np.testing.assert_allclose(first["effective_rank"], 1)
    np.testing.assert_allclose(first["participation_ratio"], 1)
    assert of(table, "singular", num_pairs=1, keys="sphere")["singular_value"].iloc[0] == pytest.approx(1)


def test_means_over_trials_come_near_the_closed_form(table):
    last = of(table, "state", num_pairs=64, keys="sphere")
    assert last["participation_ratio"].mean() == pytest.approx(last["theory_participation_ratio"].iloc[0], rel=0.1)


def test_centring_takes_the_shared_direction_out(table):
    gram = of(table, "gram")
    off = gram[gram["i"] != gram["j"]].groupby("keys")["inner_product"].mean()
    assert off["correlation 0.5"] > 0.3
    assert abs(off["correlation 0.5, centred"]) < 0.05
    state = of(table, "state", num_pairs=64).groupby("keys")["participation_ratio"].mean()
    assert state["correlation 0.5"] < 0.6 * state["sphere"] < state["correlation 0.5, centred"]


def test_the_sentence_follows_the_table(table):
    assert finding(table).startswith("After 64 pairs S (16 x 8) has an effective rank of: sphere keys")
    state = table["part"] == "state"
    made = table.copy()
    made.loc[state, ["effective_rank", "theory_participation_ratio"]] = (12.3, 4.5)
    made.loc[state & (made["keys"] == "correlation 0.5"), "participation_ratio"] = 1.7
    told = finding(made)
    assert "sphere keys 12.3" in told and "closed form 4.5" in told and "in 1.7 for the most correlated" in told


def test_the_figures_draw_every_law(table):
    laws = list(dict.fromkeys(table["keys"]))
    assert set(figures.effective_rank(table).table["keys"]) == set(laws)
    assert [ax.get_title().replace("\n", " ") for ax in figures.spectrum(table).axes.flat] == laws
    gram = figures.gram_heatmap(table)
    mesh = gram.axes[0, 0].collections[0].get_array()
    np.testing.assert_allclose(np.asarray(mesh).reshape(12, 12), np.eye(12), atol=1e-12)  # orthonormal keys


def test_a_gram_matrix_goes_into_a_given_panel_if_it_is_one(table):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert figures.gram_heatmap(of(table, "gram", keys="sphere"), ax=ax) is ax
    with pytest.raises(ValueError, match="ax is one panel, but keys has 4 values"):
        figures.gram_heatmap(table, ax=ax)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"correlation": 1.0}, "correlation"), ({"gram_pairs": 65}, "gram_pairs"), ({"key_dim": 8}, "key_dim")],
)
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told} must be"):
        MemoryGrowth(**change)
