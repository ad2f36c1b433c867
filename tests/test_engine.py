"""The engine computes what is missing and nothing else, and its table depends on the points alone."""

import os
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from capmem import Experiment, LinearMemory, parts, store
from capmem.ensembles import SphereKeys, SphereValues
from capmem.feature_maps import FEATURE_MAPS, Identity
from capmem.sweeps import experiment_from, point_key, run
from capmem.sweeps.plan import plan
from capmem.sweeps.pool import usable_cores
from capmem.sweeps.slab import run_slab

POINT = {"keys": "equicorrelated", "key_dim": 8, "value_dim": 8, "num_pairs": [4, 20], "trials": 2}
GRID = [
    POINT | {"feature_map": m, "keys": {"name": "equicorrelated", "correlation": c}}
    for m in ("relu", "dpfp")
    for c in (0, 0.5)
]


def table(folder):
    return store.read(folder).drop(columns="elapsed_s")


def quiet(points, folder, **options):
    return run(points, folder, progress=False, **({"workers": 1} | options))


def test_one_worker_or_two_give_the_same_bits(tmp_path):
    quiet(GRID, tmp_path / "one")
    quiet(GRID[::-1], tmp_path / "two", workers=2)
    pd.testing.assert_frame_equal(table(tmp_path / "one"), table(tmp_path / "two"), check_exact=True)


def test_the_same_folder_again_computes_nothing(tmp_path):
    first = quiet(GRID, tmp_path)
    parts = {p: p.stat().st_mtime_ns for p in store.part_files(tmp_path)}
    again = quiet(GRID, tmp_path)
    assert (first.found, first.computed) == (0, 16)
    assert (again.found, again.computed) == (16, 0)
    assert {p: p.stat().st_mtime_ns for p in store.part_files(tmp_path)} == parts


@pytest.mark.parametrize(
    ("change", "new"),
    [({"trials": 3}, 2), ({"num_pairs": [4, 10, 20]}, 2), ({"trials": 3, "num_pairs": [4, 10, 20]}, 5)],
)
def test_more_trials_or_checkpoints_compute_only_what_is_new(tmp_path, change, new):
    quiet([POINT], tmp_path)
    before = table(tmp_path)
    report = quiet([POINT | change], tmp_path)
    assert (report.found, report.computed) == (4, new)
    after = table(tmp_path)
    old = after.merge(before[["point", "trial", "num_pairs"]])
    pd.testing.assert_frame_equal(old[before.columns], before, check_exact=True)
    quiet([POINT | change], tmp_path / "fresh")
    pd.testing.assert_frame_equal(after, table(tmp_path / "fresh"), check_exact=True)


def test_another_grid_point_changes_no_other_number(tmp_path):
    quiet(GRID[:1], tmp_path / "alone")
    quiet(GRID, tmp_path / "grid")
    alone, grid = table(tmp_path / "alone"), table(tmp_path / "grid")
    same = grid[grid["point"].isin(alone["point"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(same[alone.columns], alone, check_exact=True, check_dtype=False)


def test_points_that_differ_in_pairs_or_trials_only_are_one_slab():
    slabs = plan([POINT | {"num_pairs": 4}, POINT | {"num_pairs": 20, "trials": 1}, POINT | {"seed": 1}])
    assert [len(s.units) for s in slabs] == [3, 4]


def test_every_point_is_checked_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="key_dim must be an integer of at least 1, got 0"):
        quiet([POINT, POINT | {"key_dim": 0}], tmp_path / "new")
    assert not (tmp_path / "new").exists()


@dataclass(frozen=True)
class FailsAt16(Identity):
    def function(self, x, xp):
        if x.shape[-1] == 16:
            raise RuntimeError("sixteen is too many")
        return x


@pytest.fixture
def failing_map():
    FEATURE_MAPS.register("fails_at_16")(FailsAt16)
    yield "fails_at_16"
    del FEATURE_MAPS._classes["fails_at_16"]


def test_a_failed_slab_is_rows_with_its_error_and_the_others_run(tmp_path, failing_map):
    points = [POINT | {"feature_map": failing_map, "key_dim": d} for d in (8, 16, 32)]
    report = quiet(points, tmp_path)
    frame = store.read(tmp_path)
    assert not report.ok and len(report.failed) == 1
    assert report.failed[0][0]["key_dim"] == 16
    failed = frame[frame["status"] == "failed"]
    assert len(failed) == 4 and set(failed["key_dim"]) == {16}
    assert failed["error"].str.contains("RuntimeError: sixteen is too many").all()
    assert failed["traceback"].str.contains("FailsAt16|in function").all()
    assert (frame["status"] == "ok").sum() == 8


def test_failures_are_kept_unless_a_retry_is_asked_for(tmp_path, failing_map, monkeypatch):
    point = POINT | {"feature_map": failing_map, "key_dim": 16}
    quiet([point], tmp_path)
    monkeypatch.setattr(FailsAt16, "function", lambda self, x, xp: x)
    assert quiet([point], tmp_path).computed == 0
    report = quiet([point], tmp_path, retry_failed=True)
    assert report.ok and report.computed == 4
    assert set(store.read(tmp_path)["status"]) == {"ok"}


def test_the_key_knows_all_that_decides_a_unit_and_nothing_else():
    base = experiment_from(POINT)
    assert point_key(base) == point_key(experiment_from(POINT | {"trials": 9, "num_pairs": 3}))
    for change in ({"seed": 1}, {"key_dim": 9}, {"dtype": "float64"}, {"feature_map": "relu"}, {"key_scale": 2}):
        assert point_key(experiment_from(POINT | change)) != point_key(base)


def test_a_file_counts_by_its_numbers_not_by_its_path(tmp_path):
    def point(name, rows):
        np.save(tmp_path / name, rows)
        return experiment_from({"keys": {"kind": "array", "path": str(tmp_path / name)}, "num_pairs": 4})

    rows = np.random.default_rng(0).standard_normal((10, 6))
    first = point_key(point("a.npy", rows))
    assert first == point_key(point("b.npy", rows))
    assert first != point_key(point("c.npy", rows + 1))


def test_an_experiment_and_its_plain_names_are_the_same_point():
    built = Experiment(LinearMemory(Identity()), SphereKeys(), SphereValues(), 8, 8, num_pairs=(4, 20), trials=2)
    named = {"keys": "sphere", "key_dim": 8, "value_dim": 8, "num_pairs": [4, 20], "trials": 2}
    assert experiment_from(named) == built


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"key_dmi": 3}, "key 'key_dmi' does not exist. Did you mean 'key_dim'"),
        ({"keys": "spheer"}, "keys 'spheer' does not exist. Did you mean 'sphere'"),
        ({"keys": {"name": "equicorrelated", "corelation": 0}}, "Did you mean 'keys.correlation'"),
        ({"keys": {"name": "equicorrelated", "correlation": 1.5}}, "keys.correlation must be a number from 0 to 1"),
        ({"keys": {"name": "equicorrelated", "correlation": "x"}}, "keys.correlation must be a number, got 'x'"),
        ({"keys": {"name": "equicorrelated", "unit_norm": 1}}, "keys.unit_norm must be true or false, got 1"),
        ({"keys": {"correlation": 0.5}}, "keys.name must be one of"),
        ({"keys": 3}, "keys must be a name or a mapping"),
        ({"keys": {"kind": "array"}}, "keys.path must be given"),
        ({"feature_map": {"name": "dpfp", "nu": 0}}, "feature_map.nu must be an integer of at least 1"),
        ({"feature_map": {"name": "dpfp", "nu": 1.0}}, "feature_map.nu must be an integer, got 1.0"),
        ({"readout": {"name": "normalized", "epsilon": -1}}, "readout.epsilon must be a number of at least 0"),
        ({"memory": "softmx"}, "memory 'softmx' does not exist"),
        ({"num_pairs": "many"}, "num_pairs must be a list, each entry an integer"),
        ({"trials": True}, "trials must be an integer, got True"),
        ({"key_center": "median"}, "key_center must be one of none, mean"),
        ({"metrics": ["top1"]}, "metric 'top1' does not exist"),
    ],
)
def test_a_point_that_is_not_valid_is_refused_by_key(change, told):
    with pytest.raises(ValueError, match=told):
        experiment_from(POINT | change)


def test_a_sweep_without_points_or_workers_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one point"):
        quiet([], tmp_path)
    with pytest.raises(ValueError, match="workers must be an integer of at least 1"):
        quiet([POINT], tmp_path, workers=0)


def test_a_folder_that_cannot_be_made_is_told_before_computing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(store.StoreError, match="cannot be made"):
        quiet([POINT], tmp_path / "file" / "sub")


def test_what_can_be_computed_does_not_hang_on_what_cannot(tmp_path):
    """CosFormer has no place beyond its last; the checkpoints below it are computed as they are alone."""
    point = POINT | {"feature_map": {"name": "cosformer", "max_length": 10}, "num_pairs": [4, 20], "trials": 1}
    report = quiet([point], tmp_path / "both")
    alone = quiet([point | {"num_pairs": 4}], tmp_path / "alone")
    assert not report.ok and alone.ok
    frame = store.read(tmp_path / "both")
    assert frame.set_index("num_pairs")["status"].to_dict() == {4: "ok", 20: "failed"}
    same = frame[frame["num_pairs"] == 4]["scale_optimal_error"].item()
    assert same == store.read(tmp_path / "alone")["scale_optimal_error"].item()
    assert quiet([point | {"num_pairs": 4}], tmp_path / "both").ok


def test_a_file_that_changes_under_a_slab_fails_it(tmp_path, monkeypatch):
    path = tmp_path / "keys.npy"
    np.save(path, np.random.default_rng(0).standard_normal((30, 6)))
    (slab,) = plan([{"keys": {"kind": "array", "path": str(path)}, "num_pairs": 4, "trials": 1}])
    whole = Experiment.run_with_ages

    def changed_meanwhile(self, units=None):
        np.save(path, np.random.default_rng(1).standard_normal((31, 6)))
        return whole(self, units)

    monkeypatch.setattr(Experiment, "run_with_ages", changed_meanwhile)
    (record,) = run_slab(slab).records
    assert record["status"] == "failed" and "has changed" in record["error"]


def test_a_width_beyond_64_bits_is_stored(tmp_path):
    store.write_part(tmp_path, [{"point": "a", "trial": 0, "num_pairs": 1, "status": "failed", "feature_dim": 10**30}])
    assert store.read(tmp_path)["feature_dim"].item() == 1e30


@pytest.mark.parametrize(
    ("points", "options", "told"),
    [
        (None, {}, "points must be a list"),
        ([3], {}, "a point must be an Experiment"),
        ([POINT], {"workers": "2"}, "workers must be an integer"),
        ([POINT], {"workers": 1.5}, "workers must be an integer"),
    ],
)
def test_arguments_of_another_type_are_refused(points, options, told, tmp_path):
    with pytest.raises(ValueError, match=told):
        quiet(points, tmp_path / "out", **options)


def test_the_cores_are_known_where_the_system_does_not_tell_which_may_be_used(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert usable_cores() == os.cpu_count()


def by_age(folder):
    return store.read_ages(folder)


def test_rows_by_age_are_stored_beside_and_resume_with_them(tmp_path):
    points = [point | {"age_bins": 2} for point in GRID]
    quiet(points, tmp_path)
    frame = by_age(tmp_path)
    assert len(frame) == 16 * 2 and not frame.duplicated(["point", "trial", "num_pairs", "age_bin"]).any()
    quiet(points[:1], tmp_path / "first")
    quiet([point | {"trials": 3} for point in points], tmp_path / "first", workers=2)
    again = by_age(tmp_path / "first")
    pd.testing.assert_frame_equal(again[again["trial"] < 2].reset_index(drop=True), frame, check_exact=True)


def test_a_part_whose_rows_by_age_are_gone_is_computed_again(tmp_path):
    points = [POINT | {"age_bins": 2}]
    quiet(points, tmp_path)
    expected = by_age(tmp_path)
    (part,) = store.part_files(tmp_path)
    parts.ages_of(part).unlink()
    report = quiet(points, tmp_path)
    assert report.computed == 4 and "rows by age are missing" in report.set_aside[0]
    pd.testing.assert_frame_equal(by_age(tmp_path), expected, check_exact=True)


def test_without_age_bins_there_is_no_second_table(tmp_path):
    quiet([POINT], tmp_path)
    with pytest.raises(store.StoreError, match="age_bins"):
        by_age(tmp_path)
