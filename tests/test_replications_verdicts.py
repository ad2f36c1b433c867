"""Verdicts and the command: what agrees, what differs, what judges nothing, and what lands in the folder."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from capmem import results
from capmem.replications import REPLICATIONS, compare, not_comparable
from capmem.replications import stored as storing
from capmem.replications.application import Replicate, show
from capmem.replications.measurement import Estimate, as_frame, estimate, exact, measured
from capmem.replications.verdict import as_text, count
from capmem.schema import construct
from capmem.store import StoreError
from capmem.sweeps.hydra_front import Job
from tests.conftest import ROOT


def test_a_verdict_follows_from_distance_and_tolerance():
    ours = Estimate(1.0, 0.98, 1.02)
    assert compare("q", "published", 1.1, ours, 0.1).verdict == "agrees"
    assert compare("q", "published", 1.13, ours, 0.1).verdict == "differs"
    assert compare("q", "published", 1.0, exact(1.0), 0.0).verdict == "agrees"
    assert compare("q", "published", math.nan, ours, 0.1).verdict == "differs"
    assert compare("q", "published", 1.0, exact(math.nan), 0.1).verdict == "differs"


def test_an_interval_wider_than_the_tolerance_judges_nothing():
    wide = compare("q", "our own", 1.0, Estimate(1.0, 0.5, 1.5), 0.1)
    assert wide.verdict == "not comparable" and "more trials" in wide.note
    far = compare("q", "our own", 3.0, Estimate(1.0, 0.5, 1.5), 0.1)
    assert far.verdict == "differs"  # the interval says as much
    one = compare("q", "our own", 1.0, Estimate(1.0, math.nan, math.nan), 0.1)
    assert one.verdict == "not comparable" and "one seed" in one.note


@pytest.mark.parametrize(
    ("change", "told"),
    [({"kind": "guessed"}, "^kind 'guessed' does not exist"), ({"tolerance": -1}, "^tolerance must")],
)
def test_a_claim_that_cannot_be_is_refused(change, told):
    given = {"quantity": "q", "kind": "published", "published": 1.0, "ours": exact(1.0), "tolerance": 0.1}
    with pytest.raises(ValueError, match=told):
        compare(**(given | change))


def test_the_interval_covers_the_mean_as_often_as_it_says():
    """100 experiments of 12 trials; 95% within 4 standard errors."""
    rng = np.random.default_rng(5)
    covered = [low <= 0 <= high for _, low, high in (estimate(rng.standard_normal((12, 1))) for _ in range(100))]
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * (0.05 * 0.95 / 100) ** 0.5)


def test_the_interval_of_a_mean_is_that_of_the_results():
    values = np.random.default_rng(3).standard_normal(8)
    table = results.aggregate(pd.DataFrame({"trial": range(8), "value": values}), [], ["value"])
    told = table[["value", "value_low", "value_high"]].to_numpy()[0]
    np.testing.assert_allclose(estimate(values[:, None]), told, rtol=1e-12)


def test_a_place_that_was_not_measured_is_no_number():
    frame = as_frame([("part", "line", 1.0, t, 2.0) for t in range(3)])
    assert measured(frame, "part", "line", 1).value == 2
    for wrong in (("part", "line", 3), ("part", "other", None)):
        with pytest.raises(KeyError):
            measured(frame, *wrong)


def test_the_table_tells_everything_and_numbers_its_notes():
    rows = [
        compare("loss", "published", 0.5, Estimate(0.51, 0.5, 0.52), 0.02, "not read"),
        compare("width", "our own", 153, exact(153), 0),
        not_comparable("accuracy", "published", 0.9, "trained"),
    ]
    lines = as_text(rows).splitlines()
    assert lines[0].split() == ["quantity", "kind", "published", "ours", "95%", "interval", "tolerance", "verdict"]
    assert lines[2].split("  ")[0] == "loss" and lines[2].endswith("0.5 to 0.52        0.02  agrees [1]")
    assert " exact " in lines[3] and lines[4].endswith("-  not comparable [2]")
    assert lines[-2:] == ["  [1] not read", "  [2] trained"]
    assert count(row.verdict for row in rows) == "2 agree, 0 differ, 1 is not comparable"


def config(**changes):
    given = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "replicate.yaml"))
    own = {k: v for k, v in given.items() if k not in ("hydra", "defaults")}
    return own | {"workers": 1, "figures": False, "study": "feature_cosines", "trials": 8} | changes


def job(folder, *configs):
    return Job([dict(c) for c in configs], folder, [])


def test_the_keys_of_the_configuration_are_the_fields():
    given = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "replicate.yaml"))
    own = {k: v for k, v in given.items() if k not in ("hydra", "defaults", "workers", "figures")}
    assert construct(Replicate, own) == Replicate()
    assert set(own) == {f.name for f in dataclasses.fields(Replicate)}
    told = (ROOT / "conf" / "hydra" / "help" / "replicate.yaml").read_text()
    assert all(f"\n    {name} " in told for name in REPLICATIONS)
    assert "capmem-replicate = capmem.analyses.replicate:main" in (ROOT / "setup.cfg").read_text()


def test_a_study_leaves_its_table_its_configuration_and_its_figure(tmp_path, capsys):
    assert show(job(tmp_path, config(figures=True)))
    held = {p.name for p in (tmp_path / "figures").iterdir()}
    assert held == {f"feature_cosines.{kind}" for kind in ("png", "svg", "pdf", "csv")}
    rows = pd.read_csv(tmp_path / "verdicts.csv")
    assert len(rows) == 6 and set(rows["verdict"]) == {"agrees"} and (tmp_path / "configuration.yaml").exists()
    assert "6 numbers: 6 agree, 0 differ, 0 are not comparable." in capsys.readouterr().out


def test_what_is_stored_is_not_measured_again(tmp_path, capsys, monkeypatch):
    show(job(tmp_path, config()))
    first = capsys.readouterr().out
    monkeypatch.setattr(storing, "_run", lambda piece: pytest.fail("measured again"))
    show(job(tmp_path, config()))
    assert capsys.readouterr().out == first
    with pytest.raises(pytest.fail.Exception):  # what forbids it is awake
        show(job(tmp_path, config(seed=1)))


def test_a_verdict_that_differs_fails_the_command(tmp_path, capsys, monkeypatch):
    own = REPLICATIONS["feature_cosines"]
    wrong = dataclasses.replace(own, judge=lambda table: [compare("one", "published", 1.0, exact(2.0), 0.5)])
    monkeypatch.setitem(REPLICATIONS, "feature_cosines", wrong)
    assert not show(job(tmp_path, config()))
    assert "differs: feature_cosines, one: 1, ours 2" in capsys.readouterr().out


def test_workers_and_other_studies_change_no_bit(tmp_path):
    asked = [storing.Asked("feature_cosines", 3, 0), storing.Asked("feature_cosines", 2, 1)]
    alone = storing.tables(asked[:1], tmp_path / "alone", 1)[0]
    together = storing.tables(asked, tmp_path / "together", 2)[0]
    pd.testing.assert_frame_equal(alone, together, check_exact=True)


def test_a_damaged_table_is_told_in_one_line(tmp_path):
    asked = storing.Asked("feature_cosines", 3, 0)
    path = asked.path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"no table")
    with pytest.raises(StoreError, match="is damaged, delete it to compute it again") as told:
        storing.tables([asked], tmp_path, 1)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"study": "schlag2020"}, "^study 'schlag2020' does not exist. Did you mean 'schlag2021'"),
        ({"trials": 0}, "^trials must be an integer of at least 1"),
        ({"seed": -1}, "^seed must be"),
        ({"studi": "all"}, "^key 'studi' does not exist. Did you mean 'study'"),
    ],
)
def test_bad_input_is_one_line_and_no_folder(changes, told, tmp_path):
    with pytest.raises(ValueError, match=told) as error:
        show(job(tmp_path / "out", config(**changes)))
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


def test_only_the_study_can_be_swept(tmp_path):
    with pytest.raises(ValueError, match="^trials and seed cannot be swept"):
        show(job(tmp_path / "out", config(seed=0), config(seed=1)))
