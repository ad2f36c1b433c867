"""What a sweep's folder says of itself, and what happens to files in it that are no parts."""

import json
import subprocess
import sys

import pandas as pd
import pytest

from capmem import parts, store
from capmem.sweeps import engine, run
from capmem.sweeps.folder import RUNS, run_records
from capmem.sweeps.status import status
from tests.conftest import ROOT
from tests.test_engine import GRID, POINT, failing_map, table  # noqa: F401


def quiet(points, folder, **options):
    return run(points, folder, **({"progress": False, "workers": 1} | options))


def test_a_finished_sweep_is_complete(tmp_path):
    quiet(GRID, tmp_path)
    found = status(tmp_path)
    assert (found.asked, found.finished, found.failed, found.left, found.running) == (16, 16, 0, 0, False)
    assert found.size == sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    assert found.speed > 0 and found.seconds_left == 0
    assert f"{tmp_path}: complete" in str(found) and "finished  16 measurements" in str(found)


def stop_after(slabs, monkeypatch):
    """Interrupt the sweep after so many slabs, as Ctrl-C would."""
    work, count = engine.run_slab, iter(range(100))

    def interrupted(slab):
        if next(count) == slabs:
            raise KeyboardInterrupt
        return work(slab)

    monkeypatch.setattr(engine, "run_slab", interrupted)


def test_a_stopped_sweep_says_what_is_left_and_how_to_go_on(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(engine.Stopped, match=f"12 of 16 measurements stored in {tmp_path}.*resumes"):
            quiet(GRID, tmp_path)
    found = status(tmp_path)
    assert (found.finished, found.left, found.running) == (12, 4, False)
    assert quiet(GRID, tmp_path).computed == 4
    assert status(tmp_path).left == 0


def test_a_killed_run_counts_what_its_parts_hold(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(KeyboardInterrupt):
            quiet(GRID, tmp_path)
    (record,) = (tmp_path / RUNS).iterdir()
    written = json.loads(record.read_text())
    record.write_text(json.dumps(written | {"computed": 0, "ended": None}))  # killed before it could note them
    found = status(tmp_path)
    assert (found.left, found.running) == (4, True)
    record.write_text(json.dumps(written | {"computed": 0, "ended": None, "updated": 0.0, "started": 0.0}))
    for part in store.part_files(tmp_path):
        part.rename(part.with_name("part-1-00000000.parquet"))
    assert not status(tmp_path).running


def test_failures_are_named_by_what_sets_them_apart(tmp_path, failing_map, capsys):  # noqa: F811
    points = [POINT | {"feature_map": m, "key_dim": d} for m in (failing_map, "relu") for d in (8, 16)]
    report = run(points, tmp_path, workers=1)
    (failure,) = report.failed
    assert str(failure) == "feature_map=fails_at_16 key_dim=16: RuntimeError: sixteen is too many"
    assert failure.units == 4
    assert f"failed: {failure}" in capsys.readouterr().err
    assert str(failure) in status(tmp_path).errors
    again = quiet(points, tmp_path)
    assert list(map(str, again.failed)) == [str(failure)]


def test_a_run_tells_what_it_found(tmp_path, capsys):
    quiet(GRID[:3], tmp_path)
    run(GRID, tmp_path, workers=1)
    assert f"12 of 16 measurements are stored in {tmp_path}; computing the other 4" in capsys.readouterr().err
    assert [r.found for r in run_records(tmp_path)] == [0, 12]


def damage_truncated(path):
    path.write_bytes(path.read_bytes()[:-200])


def damage_one_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 1
    path.write_bytes(content)


def damage_foreign(path):
    pd.DataFrame({"a": [1]}).to_parquet(path)


def damage_unnamed(path):
    frame = pd.read_parquet(path)
    frame.loc[0, "point"] = None
    frame.to_parquet(path)


@pytest.mark.parametrize("damage", [damage_truncated, damage_one_bit, damage_foreign, damage_unnamed])
def test_a_part_that_is_none_is_named_set_aside_and_computed_again(damage, tmp_path):
    quiet(GRID, tmp_path)
    expected = table(tmp_path)
    (part,) = store.part_files(tmp_path)
    damage(part)
    spoilt = part.read_bytes()
    with pytest.raises(store.StoreError, match=part.name):
        store.read(tmp_path)
    report = quiet(GRID, tmp_path)
    assert (report.found, report.computed) == (0, 16)
    assert len(report.set_aside) == 1 and part.name in report.set_aside[0]
    assert (tmp_path / store.SET_ASIDE / part.name).read_bytes() == spoilt
    pd.testing.assert_frame_equal(table(tmp_path), expected, check_exact=True)


def test_the_state_names_damage_and_leaves_it_where_it_is(tmp_path):
    quiet(GRID, tmp_path)
    (part,) = store.part_files(tmp_path)
    damage_truncated(part)
    (line,) = status(tmp_path).damaged
    assert part.name in line and store.part_files(tmp_path) == [part]


def test_a_part_of_other_numerics_is_refused_and_stays(tmp_path, monkeypatch):
    quiet(GRID[:1], tmp_path)
    before = store.part_files(tmp_path)
    monkeypatch.setattr(parts, "NUMERICS", parts.NUMERICS + 1)
    with pytest.raises(store.StoreError, match="cannot stand in one table"):
        quiet(GRID[:1], tmp_path)
    assert store.part_files(tmp_path) == before


def test_a_folder_that_is_no_sweeps_is_named(tmp_path):
    with pytest.raises(store.StoreError, match="is no sweep's folder"):
        status(tmp_path)


def test_the_command_tells_the_state(tmp_path):
    quiet(GRID, tmp_path / "one")
    command = [sys.executable, "-m", "analyses.status"]
    told = subprocess.run([*command, f"folder={tmp_path / 'one'}"], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0 and "finished  16 measurements" in told.stdout, told.stderr
    for folder in ("null", tmp_path / "two"):
        refused = subprocess.run([*command, f"folder={folder}"], cwd=ROOT, capture_output=True, text=True)
        assert refused.returncode == 1 and refused.stderr.startswith("error: ") and refused.stderr.count("\n") == 1
    assert not (tmp_path / "two").exists()
