"""Interference: signal and crosstalk add up, their powers are the predicted ones, the sentence follows the table."""

import numpy as np
import pandas as pd
import pytest

from capmem.ensembles import EquicorrelatedKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import Identity, ReLU
from capmem.memory import LinearMemory
from capmem.studies._signal import signal_rows, split
from capmem.studies.interference import ERROR, METRICS, STUDY, Interference, finding, lines, rows
from capmem.write_rules import Delta, LeastSquares, Oja

SMALL = Interference(correlations=(0.0, 0.5), key_dim=16, value_dim=16, num_pairs=(4, 16, 64), age_pairs=64, age_bins=4,
                     trials=6)  # fmt: skip
SURE = 4  # standard errors


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(SMALL))


def asked(memory, trials=1, correlation=0.0, d=16):
    return Experiment(
        memory, EquicorrelatedKeys(correlation), SphereValues(), d, 16, (8,), trials=trials, dtype="float64"
    )


@pytest.mark.parametrize("rule", [Delta(0.7), LeastSquares(0.1)])
def test_signal_and_crosstalk_of_any_linear_rule_add_up_to_what_is_read(rule):
    found = split(asked(LinearMemory(Identity(), rule)), 0, 40)
    assert found.closure < 1e-12
    assert found.signal + found.crosstalk + found.cross_term == pytest.approx(found.retrieved, rel=1e-10)
    assert found.retrieved < found.signal + found.crosstalk + abs(found.cross_term) + 1e-12


def test_a_rule_that_is_not_linear_in_the_values_has_no_split():
    assert list(signal_rows(asked(LinearMemory(Identity(), Oja(0.01))), [8])) == []
    assert split(asked(LinearMemory(Identity(), Oja(0.01))), 0, 8).closure > 1e-3


def test_the_weight_of_a_pair_is_what_its_value_adds_to_its_own_read():
    """Signal power by finite difference: the read with its own value doubled, less the read as it is."""
    experiment = asked(LinearMemory(Identity(), Delta(1.0)))
    rng = {s: np.random.default_rng([0, 0, s]) for s in (0, 1)}
    keys, values = experiment.keys.sample(rng[0], 12, 16), experiment.values.sample(rng[1], 12, 16)
    memory, power = experiment.memory, []
    read = memory.read(memory.write(memory.init(16, 16), keys, values), keys)
    for i in range(12):
        doubled = values.copy()
        doubled[i] *= 2
        again = memory.read(memory.write(memory.init(16, 16), keys, doubled), keys)
        power.append(((again[i] - read[i]) ** 2).sum() / 16)
    assert split(experiment, 0, 12).signal == pytest.approx(np.mean(power), rel=1e-10)


@pytest.mark.parametrize(
    "memory", [LinearMemory(Identity()), LinearMemory(Identity(), Delta(1.0)), LinearMemory(ReLU())]
)
def test_powers_come_to_their_closed_forms(memory):
    frame = pd.DataFrame(signal_rows(asked(memory, trials=200), [24]))
    for part in ("signal", "crosstalk"):
        assert abs(frame[part].mean() - frame[f"theory_{part}"].iloc[0]) <= SURE * frame[part].sem() + 1e-9
    assert abs(frame["cross_term"].mean()) <= SURE * frame["cross_term"].sem()  # independent values of mean zero


def test_crosstalk_of_unit_keys_is_pairs_less_one_by_dimensions(table):
    signal = table[
        (table["part"] == "signal") & (table["centring"] == "features as they are") & (table["level"] == "0")
    ]
    theory = signal.groupby("num_pairs")["theory_crosstalk"].first()
    assert theory.to_dict() == pytest.approx({4: 3 / 16, 16: 15 / 16, 64: 63 / 16})


def test_centring_takes_the_correlation_away(table):
    curve = table[(table["part"] == "curve") & (table["num_pairs"] == 16)]
    means = curve.groupby(["centring", "level"])[ERROR].mean()
    assert means["features as they are", "0.5"] > means["features as they are", "0"] + 0.2
    assert abs(means["features centred", "0.5"] - means["features centred", "0"]) < 0.05


def test_means_over_ages_are_the_error_of_all_pairs(table):
    part = table[(table["level"] == "0.5") & (table["centring"] == "features as they are") & (table["num_pairs"] == 64)]
    age, curve = (part[part["part"] == name].groupby("trial")[ERROR].mean() for name in ("age", "curve"))
    np.testing.assert_allclose(age, curve, rtol=1e-12)


@pytest.mark.parametrize(
    ("by", "field"), [("feature_map", "feature_maps"), ("write_rule", "write_rules"), ("readout", "readouts")]
)
def test_the_lines_are_what_by_names_and_the_others_stay_at_their_first(by, field):
    found = lines(Interference(by=by, correlations=(0.25, 0.5)))
    assert [line.level for line in found] == [*getattr(Interference(), field)] * 2
    assert {line.keys.correlation for line in found} == {0.25}
    assert [line.memory.feature_center for line in found[:1] + found[-1:]] == ["none", "mean"]


def test_which_pairs_are_lost_is_told_only_where_it_is_sure(table):
    assert "are read alike (4 standard errors)" in finding(table)  # a Hebbian memory has no age
    rules = ("hebbian", "delta")
    forgets = pd.DataFrame(rows(Interference(by="write_rule", write_rules=rules, key_dim=16, value_dim=16,
                                             num_pairs=(16, 64), age_pairs=64, age_bins=4, trials=6)))  # fmt: skip
    told = finding(forgets)
    assert "differ by more than 4 standard errors for delta: " in told and "standard errors for hebbian" not in told
    old = forgets[(forgets["part"] == "age") & (forgets["level"] == "delta")].groupby("age_low")[ERROR].mean()
    assert old.is_monotonic_increasing


def test_denominators_that_are_not_positive_are_told():
    frame = pd.DataFrame(
        rows(Interference(by="readout", key_dim=16, value_dim=8, num_pairs=(16, 32), age_pairs=16, trials=2))
    )
    assert "denominators of the normalized read-out were not positive" in finding(frame)
    assert set(frame.loc[frame["part"] == "signal", "level"]) == {"linear"}


def test_the_sentence_follows_the_table(table):
    made = table.copy()
    made.loc[made["level"] == "0.5", ERROR] = 0.777
    assert "correlation 0.5: 0.777" in finding(made) and "0.777" not in finding(table)
    made = table.assign(theory_scale_optimal_error=np.nan)
    assert "There is no closed form to compare with." in finding(made)


@pytest.mark.parametrize("name", STUDY.figures)
def test_the_figures_have_a_panel_for_keys_as_they_are_and_centred(name, table):
    grid = STUDY.figures[name](table)
    titles = [ax.get_title() for ax in grid.axes.flat]
    assert set(titles) == {"features as they are", "features centred"}
    assert set(grid.table["level"]) == {"0", "0.5"}
    assert any(str(column) in (*METRICS, "signal") for column in grid.table)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"correlations": (1.0,)}, "correlations must be"), ({"feature_maps": ("relo",)}, "feature_map 'relo' does not"),
     ({"by": "colour"}, "by must be one of"), ({"readouts": ()}, "readouts must be"),
     ({"age_bins": 257}, "age_bins must be at most age_pairs = 256, got 257")],
)  # fmt: skip
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told}"):
        Interference(**change)
