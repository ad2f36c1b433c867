"""The application as a user runs it: command lines in, exit codes, text and files out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from capmem import store
from capmem.sweeps.points import GROUPS
from tests.conftest import ROOT

TINY = ["trials=2", "workers=1", "figures=false"]


CUBE = """
from dataclasses import dataclass
from capmem.feature_maps import ElementwiseMap

@dataclass(frozen=True)
class Cube(ElementwiseMap):
    gain: float = 1.0
    signed = True
    positive_kernel = False

    def function(self, x, xp):
        return self.gain * x**3
"""


def sweep(*overrides, cwd=ROOT, command=(sys.executable, "-m", "analyses.sweep"), env=None):
    arguments = [*command, *map(str, overrides)]
    return subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, timeout=120, env=env)


def done(*overrides, **options):
    result = sweep(*overrides, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def test_the_usual_multirun(tmp_path):
    grid = ["key_dim=16,32", "num_pairs=8,16,32", "feature_map=identity,dpfp", "keys.correlation=0,0.5"]
    result = done("-m", *grid, "trials=3", f"hydra.sweep.dir={tmp_path}")
    frame = pd.read_csv(tmp_path / "results.csv")
    assert len(frame) == 2 * 3 * 2 * 2 * 3
    assert set(frame["status"]) == {"ok"}
    assert set(frame["keys.correlation"]) == {0.0, 0.5}
    assert "8 points, 72 measurements" in result.stdout
    assert "scale-optimal error <= 0.5" in result.stdout
    names = {p.name for p in (tmp_path / "figures").iterdir()}
    for stem in ("heatmap", "interference_curves"):
        assert {f"{stem}.{kind}" for kind in ("png", "svg", "pdf", "csv")} <= names
    assert "feature_map=identity,dpfp" in (tmp_path / "configuration.yaml").read_text()


def test_a_single_run_is_a_sweep_of_one_point_and_resumes(tmp_path):
    run = ["key_dim=8", "num_pairs=[4,9]", *TINY, f"hydra.run.dir={tmp_path}"]
    done(*run)
    before = store.read(tmp_path)
    assert before["num_pairs"].tolist() == [4, 4, 9, 9]
    again = done(*run)
    assert "4 of them stored before" in again.stdout
    more = done(*run[:-1], "trials=3", f"hydra.run.dir={tmp_path}")
    assert "6 measurements, 4 of them stored before" in more.stdout
    after = store.read(tmp_path)
    kept = after[after["trial"] < 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept[before.columns], before, check_exact=True)
    assert {p.name for p in tmp_path.glob("configuration*")} == {"configuration.yaml", "configuration-2.yaml"}


@pytest.mark.slow
def test_two_runs_of_one_command_give_the_same_bits_with_one_worker_or_two(tmp_path):
    grid = ["key_dim=8,16", "num_pairs=4,64,100", "feature_map=relu,dpfp", "trials=2", "figures=false"]
    for folder, workers in (("a", 1), ("b", 2)):
        done(*grid, f"workers={workers}", f"hydra.sweep.dir={tmp_path / folder}")
    tables = [store.read(tmp_path / f).drop(columns="elapsed_s") for f in ("a", "b")]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_an_axis_that_a_choice_does_not_have_is_dropped_there_and_said_once(tmp_path):
    result = done("keys=gaussian,equicorrelated", "keys.correlation=0,0.5", "key_dim=8", "num_pairs=4", *TINY,
                  f"hydra.sweep.dir={tmp_path}")  # fmt: skip
    frame = store.read(tmp_path)
    assert len(frame) == 3 * 2
    assert frame.loc[frame["keys"] == "gaussian", "keys.correlation"].isna().all()
    assert result.stderr.count("keys.correlation does not apply to gaussian") == 1


def test_a_field_of_a_swept_group_may_be_given_once(tmp_path, pairs_file):
    done("keys=gaussian,array", f"keys.path={pairs_file}", "keys.name=k", "key_dim=12", "num_pairs=4", *TINY,
         f"hydra.sweep.dir={tmp_path / 'out'}")  # fmt: skip
    assert set(store.read(tmp_path / "out")["keys"]) == {"gaussian", "array"}


@pytest.mark.slow
def test_floats_of_a_range_read_as_typed(tmp_path):
    done("keys.correlation=range(0.1,0.5,0.1)", "key_dim=8", "num_pairs=4", *TINY, f"hydra.sweep.dir={tmp_path}")
    assert sorted(set(store.read(tmp_path)["keys.correlation"])) == [0.1, 0.2, 0.3, 0.4]


def test_keys_and_values_of_a_file_as_they_are_and_centred(tmp_path, pairs_file):
    done("keys=array", f"keys.path={pairs_file}", "keys.name=k", "values=array", f"values.path={pairs_file}",
         "values.name=v", "key_center=none,mean", "num_pairs=10,40,80", *TINY,
         f"hydra.sweep.dir={tmp_path / 'out'}")  # fmt: skip
    frame = store.read(tmp_path / "out")
    assert (frame["key_dim"] == 12).all() and (frame["value_dim"] == 10).all()
    assert (frame["status"] == "skipped").sum() == 4  # the file holds 40 pairs
    error = frame[frame["num_pairs"] == 40].groupby("key_center")["scale_optimal_error"].mean()
    assert error["mean"] < error["none"] - 0.1
    keys, values = (np.load(pairs_file)[n] for n in "kv")
    centred = keys - keys.mean(axis=0)
    retrieved = centred @ (centred.T @ values)
    gain = np.vdot(retrieved, values) / np.vdot(retrieved, retrieved)
    expected = ((gain * retrieved - values) ** 2).sum() / (values**2).sum()
    assert error["mean"] == pytest.approx(expected, rel=1e-4)


def test_the_digest_of_a_file_stands_in_the_table_and_a_changed_file_is_noticed(tmp_path):
    path, out = tmp_path / "k.npy", tmp_path / "out"
    run = ["keys=array", f"keys.path={path}", "num_pairs=4", *TINY, f"hydra.sweep.dir={out}"]
    rows = np.random.default_rng(0).standard_normal((9, 5))
    for change in (0, 1):
        np.save(path, rows + change)
        done(*run)
    frame = store.read(out)
    assert frame["keys.sha256"].nunique() == frame["point"].nunique() == 2


PRESETS = sorted(p.stem for p in (ROOT / "conf" / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("preset", [PRESETS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in PRESETS[1:])])
def test_every_preset_runs(preset, tmp_path):
    done(f"+experiment={preset}", "num_pairs=4,8", "trials=1", "figures=false", f"hydra.sweep.dir={tmp_path}")
    assert set(store.read(tmp_path)["status"]) == {"ok"}


@pytest.mark.slow
def test_presets_can_be_joined(tmp_path):
    done("+experiment=main,real_heads", "num_pairs=4", "trials=1", "key_dim=32", "feature_map=identity",
         "figures=false", f"hydra.sweep.dir={tmp_path}")  # fmt: skip
    assert set(store.read(tmp_path)["keys"]) == {"equicorrelated", "array"}


@pytest.mark.slow
def test_hydras_own_sweeper_and_launcher_still_run_it(tmp_path):
    done("hydra/launcher=basic", "hydra/sweeper=basic", "key_dim=8,9", "num_pairs=4", *TINY,
         f"hydra.sweep.dir={tmp_path}")  # fmt: skip
    assert [len(store.read(tmp_path / job)) for job in "01"] == [2, 2]


def test_the_configuration_can_be_shown_without_a_run():
    shown = done("--cfg", "job", "feature_map=dpfp", "key_dim=7").stdout
    assert "name: dpfp" in shown and "key_dim: 7" in shown


def test_help_explains_the_groups():
    told = done("--help").stdout
    for word in ("feature_map: ", "dpfp, elu_plus_one", "+experiment=NAME", "key_center", "--cfg job"):
        assert word in told


@pytest.mark.parametrize(("name", "presets"), [("capmem", ["experiment"]), ("capacity", [])])
def test_help_names_every_choice_of_the_groups_that_apply_and_no_other(name, presets):
    template = yaml.safe_load((ROOT / "conf" / "hydra" / "help" / f"{name}.yaml").read_text())["template"]
    part = template.partition("==")[2].partition("\n")[2].partition("A name that does not exist")[0]
    told = {line.partition(": ")[0]: line.partition(": ")[2].split(", ")
            for line in re.sub(r"\n\s+", " ", part).strip().splitlines()}  # fmt: skip
    groups = [*presets, *GROUPS]
    assert told == {g: sorted(p.stem for p in (ROOT / "conf" / g).glob("*.yaml")) for g in groups}


def test_the_console_command_runs_from_any_folder(tmp_path):
    command = Path(sys.executable).with_name("capmem-sweep")
    done("key_dim=8", "num_pairs=4", *TINY, cwd=tmp_path, command=[command])
    (folder,) = (tmp_path / "outputs" / "sweep").iterdir()
    assert len(store.read(folder)) == 2


def test_a_map_of_another_package_is_swept_by_name(tmp_path):
    (tmp_path / "cube.py").write_text(CUBE)
    info = tmp_path / "cube-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cube\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[capmem.feature_map]\ncube = cube:Cube\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done("feature_map=identity,cube", "feature_map.gain=1,2", "key_dim=8", "num_pairs=4", "trials=2",
         "figures=false", "workers=2", f"hydra.sweep.dir={tmp_path / 'out'}", env=environment)  # fmt: skip
    frame = store.read(tmp_path / "out")
    assert set(frame["status"]) == {"ok"}
    assert sorted(frame["feature_map.gain"].dropna().unique()) == [1, 2]
    assert set(frame["feature_map"]) == {"identity", "cube"}
