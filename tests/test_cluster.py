"""A sweep in tasks gives the table of a local run; what a task leaves undone is told, and a rerun computes it."""

import dataclasses
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from omegaconf import OmegaConf

from capmem import store
from capmem.feature_maps import FEATURE_MAPS, Identity
from capmem.sweeps import Stopped, run, spread
from capmem.sweeps.application import sweep
from capmem.sweeps.cluster import KINDS, Cluster, cluster_from
from capmem.sweeps.folder import run_records
from capmem.sweeps.hydra_front import Application, CapmemLauncher
from capmem.sweeps.plan import plan
from capmem.sweeps.shard import Shard, deal, run_task
from capmem.sweeps.tasks import RUNNERS
from tests.conftest import ROOT

POINT = {"keys": "sphere", "key_dim": 8, "value_dim": 8, "num_pairs": [4, 20], "trials": 2}
GRID = [POINT | {"feature_map": m, "seed": seed} for m in ("identity", "relu", "dpfp") for seed in range(3)]
LONG = [POINT | {"key_dim": 64, "num_pairs": [2048], "trials": 1, "seed": seed} for seed in range(400)]
DEFAULTS = OmegaConf.to_container(OmegaConf.load(ROOT / "conf/hydra/launcher/capmem.yaml"))
SETTINGS = {name: value for name, value in DEFAULTS.items() if name != "_target_"}
ORPHAN_SECONDS = 3.0


def slurm_runs():
    return all(map(shutil.which, ("scontrol", "sbatch", "squeue"))) and not (
        subprocess.run(["scontrol", "ping"], capture_output=True).returncode
    )


needs_submitit = pytest.mark.skipif(importlib.util.find_spec("submitit") is None, reason="submitit is not installed")
on_slurm = pytest.param(
    "slurm", marks=[needs_submitit, pytest.mark.skipif(not slurm_runs(), reason="slurmctld does not run here")]
)
local = pytest.param("local", marks=needs_submitit)


def table(folder):
    return store.read(folder).drop(columns="elapsed_s")


def quiet(points, folder, cluster=None, **options):
    here = {} if cluster else {"workers": 1}
    return run(points, folder, progress=False, cluster=cluster, **here, **options)


def same_table(one, other):
    pd.testing.assert_frame_equal(table(one), table(other), check_exact=True)


def processes_of(folder):
    """The processes whose command line names the folder, as that of every task and its starter does."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text()
        except OSError:
            continue
        if str(folder) in words and "submitit" in words:
            found[int(path.parent.name)] = words
    return found


def when_stored(folder, act):
    """Do something, in a thread, as soon as the sweep has stored a part."""

    def wait():
        while not store.part_files(folder):
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def kill_one_task(folder):
    tasks = [pid for pid, words in processes_of(folder).items() if "core._submit" in words and "srun" not in words]
    os.kill(min(tasks), signal.SIGKILL)


# What a cluster is


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"cluster": "slrum"}, "hydra.launcher.cluster 'slrum' does not exist. Did you mean 'slurm'"),
        ({"cluster": 3}, "hydra.launcher.cluster must be a name, got 3"),
        ({"shards": 0}, "hydra.launcher.shards must be an integer of at least 1, got 0"),
        ({"shards": 1.5}, "hydra.launcher.shards must be an integer, got 1.5"),
        ({"workers": None}, "hydra.launcher.workers must be an integer, got None"),
        ({"timeout_min": -1}, "hydra.launcher.timeout_min must be an integer of at least 1"),
        ({"workers": 4, "cpus_per_task": 2}, "hydra.launcher.cpus_per_task must be an integer of at least workers=4"),
        ({"mem_gb": 0}, "hydra.launcher.mem_gb must be a positive number, got 0"),
        ({"partition": 7}, "hydra.launcher.partition must be a name or null, got 7"),
        ({"options": ["x"]}, "hydra.launcher.options must be a mapping of sbatch options"),
        ({"options": {"time": 5}}, "hydra.launcher.options.time must not be given: set timeout_min"),
        ({"options": {"--ntasks-per-node": 2}}, "must not be given: it follows from the shards"),
        ({"shard": 3}, "'hydra.launcher.shard' does not exist. Did you mean 'hydra.launcher.shards'"),
        ({"cluster": None, "shards": 3}, "hydra.launcher.shards says nothing without hydra.launcher.cluster"),
    ],
)
def test_a_setting_that_is_not_valid_is_refused_in_one_line(settings, told):
    with pytest.raises(ValueError, match=told) as refused:
        cluster_from(SETTINGS | {"cluster": "debug"} | settings)
    assert "\n" not in str(refused.value)


def test_the_configuration_has_the_defaults_of_the_class_and_asks_for_no_cluster():
    assert cluster_from(SETTINGS) is None
    assert cluster_from(SETTINGS | {"cluster": "debug"}) == Cluster("debug")
    assert set(SETTINGS) == {f.name for f in dataclasses.fields(Cluster)} - {"kind"} | {"cluster"}
    assert set(RUNNERS) == set(KINDS)


def test_what_is_not_installed_is_named_with_the_cure(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with pytest.raises(RuntimeError, match="there is no sbatch here"):
        quiet([POINT], tmp_path / "out", Cluster("slurm"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"install capmem\[cluster\]"):
        quiet([POINT], tmp_path / "out", Cluster("local"))
    assert not (tmp_path / "out").exists()


def test_workers_are_those_of_each_task(tmp_path):
    cluster = Cluster("debug", workers=1, cpus_per_task=1)
    with pytest.raises(ValueError, match="cpus_per_task must be an integer of at least workers=2, or null, got 1"):
        run([POINT], tmp_path / "out", workers=2, cluster=cluster)
    assert not (tmp_path / "out").exists()
    assert Cluster("slurm", workers=3).cores == 3


def launcher(work, **settings):
    made = CapmemLauncher(**SETTINGS | settings)
    made.application = Application(work, [], [])
    return made


def test_only_a_command_that_runs_in_tasks_takes_a_cluster(tmp_path):
    with pytest.raises(ValueError, match="hydra.launcher.cluster does not apply to this command"):
        launcher(lambda job: True, cluster="debug").launch_points([], tmp_path)
    assert launcher(lambda job: job.cluster is None).launch_points([], tmp_path)


def test_the_launcher_hands_its_cluster_to_the_sweep(tmp_path, capsys):
    configs = [point | {"workers": None, "figures": False, "retry_failed": False} for point in GRID[:2]]
    configs = [c | {"criterion": "scale_optimal_error", "threshold": 0.5} for c in configs]
    assert launcher(sweep, cluster="debug", shards=5).launch_points(configs, tmp_path / "out")
    assert "2 slabs in 2 tasks, debug" in capsys.readouterr().err
    quiet(GRID[:2], tmp_path / "here")
    same_table(tmp_path / "out", tmp_path / "here")


# What is dealt


def test_every_slab_is_dealt_once_and_shards_differ_by_one_at_most():
    slabs = plan(LONG[:23])
    shards = deal(slabs, 4)
    assert sorted(s.key for shard in shards for s in shard) == sorted(s.key for s in slabs)
    assert sorted(map(len, shards)) == [5, 6, 6, 6]
    assert deal(slabs, 4) == shards
    assert [len(shard) for shard in deal(slabs[:3], 8)] == [1, 1, 1]


def test_no_shard_gets_all_dear_slabs_of_a_grid():
    """Every second slab is the dear one: dealt in the grid's order, one of two shards would get them all."""
    slabs = plan([POINT | {"key_dim": d, "seed": seed} for seed in range(100) for d in (2, 512)])
    dear = [sum(s.experiment.key_dim == 512 for s in shard) for shard in deal(slabs, 2)]
    assert sum(dear) == 100 and max(dear) < 65
    assert [sum(s.experiment.key_dim == 512 for s in slabs[i::2]) for i in (0, 1)] == [0, 100]


# What is stored


@pytest.mark.parametrize("kind", ["debug", local, on_slurm])
def test_tasks_give_the_bits_of_a_local_run(kind, tmp_path):
    points = [point | {"age_bins": 2} for point in GRID]
    quiet(points, tmp_path / "here")
    report = quiet(points, tmp_path / "tasks", Cluster(kind, shards=2, timeout_min=5))
    assert report.ok and (report.found, report.computed) == (0, 36)
    same_table(tmp_path / "here", tmp_path / "tasks")
    ages = [store.read_ages(tmp_path / name) for name in ("here", "tasks")]
    pd.testing.assert_frame_equal(*ages, check_exact=True)
    assert not any((tmp_path / "tasks" / spread.HIDDEN).iterdir())


def test_the_same_folder_again_starts_no_task(tmp_path, monkeypatch):
    quiet(GRID[:4], tmp_path)
    again = quiet(GRID, tmp_path, Cluster("debug", shards=3))
    assert (again.found, again.computed) == (16, 20)
    monkeypatch.setitem(RUNNERS, "debug", None)
    assert quiet(GRID, tmp_path, Cluster("debug")).computed == 0


@dataclasses.dataclass(frozen=True)
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


def test_failures_of_tasks_are_reported_and_retried_as_those_of_a_local_run(tmp_path, failing_map, monkeypatch):
    points = [POINT | {"feature_map": failing_map, "key_dim": d} for d in (8, 16, 32)]
    here = quiet(points, tmp_path / "here")
    tasks = quiet(points, tmp_path / "tasks", Cluster("debug"))
    assert [str(f) for f in tasks.failed] == [str(f) for f in here.failed] == [str(tasks.failed[0])]
    assert tasks.failed[0].units == 4 and not tasks.ok
    still = quiet(points, tmp_path / "tasks", Cluster("debug"), retry_failed=True)
    assert still.computed == 4 and not still.ok
    monkeypatch.setattr(FailsAt16, "function", lambda self, x, xp: x)
    assert quiet(points, tmp_path / "tasks", Cluster("debug"), retry_failed=True).ok


@pytest.mark.parametrize("lost", ["never dealt", "never run"])
def test_a_shard_that_is_never_run_makes_the_run_fail(lost, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        if lost == "never dealt":
            patch.setattr(spread, "deal", lambda slabs, hands: deal(slabs, hands)[:-1])
        else:
            patch.setattr("capmem.sweeps.tasks.run_shard", lambda shard: None)
        with pytest.raises(RuntimeError, match=r"(12|36) measurements are missing.*the same command .* computes them"):
            quiet(GRID, tmp_path / "tasks", Cluster("debug", shards=3))
    assert quiet(GRID, tmp_path / "tasks", Cluster("debug")).ok
    quiet(GRID, tmp_path / "here")
    same_table(tmp_path / "here", tmp_path / "tasks")


# What tasks must know


def test_a_map_that_tasks_cannot_import_is_refused_before_they_start(tmp_path, failing_map, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ValueError, match="tasks do not know tests.test_cluster.FailsAt16: register it in a module"):
        spread.check_buildable(plan([POINT | {"feature_map": failing_map}]))


def test_a_map_of_a_module_that_registers_it_is_known_to_tasks(tmp_path, monkeypatch):
    (tmp_path / "cubes.py").write_text(
        "from dataclasses import dataclass\n"
        "from capmem.feature_maps import FEATURE_MAPS, Identity\n\n\n"
        "@FEATURE_MAPS.register('cube_of_a_module')\n"
        "@dataclass(frozen=True)\n"
        "class Cube(Identity):\n"
        "    def function(self, x, xp):\n"
        "        return x**3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import cubes  # noqa: F401

    try:
        spread.check_buildable(plan([POINT | {"feature_map": "cube_of_a_module"}]))
    finally:
        del FEATURE_MAPS._classes["cube_of_a_module"]


# How it ends


def test_a_task_that_is_told_to_end_stores_what_it_has(tmp_path):
    shard = Shard(plan(LONG), tmp_path, 1)
    when_stored(tmp_path, lambda: os.kill(os.getpid(), signal.SIGUSR2))
    with pytest.raises(RuntimeError, match="told to end"):
        run_task(shard)
    assert 0 < len(store.read(tmp_path)) < len(LONG)


@needs_submitit
def test_ctrl_c_ends_all_tasks_at_once_and_says_how_to_go_on(tmp_path):
    stopped_by_ctrl_c("local", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [on_slurm])
def test_ctrl_c_cancels_what_runs_and_what_waits_on_slurm(kind, tmp_path):
    stopped_by_ctrl_c(kind, tmp_path, shards=4)  # more than the machine has cores
    ask = ["squeue", "--noheader", "--name=capmem", "--states=PENDING,RUNNING"]  # not: one that is being tidied up
    assert subprocess.run(ask, capture_output=True, text=True).stdout == ""


def stopped_by_ctrl_c(kind, folder, shards=2):
    when_stored(folder, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped, match=rf"stopped with \d+ of 400 .* stored in {folder}; the same command .* resumes"):
        quiet(LONG, folder, Cluster(kind, shards=shards, timeout_min=5))
    deadline = time.monotonic() + ORPHAN_SECONDS
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(folder) == {}
    (record,) = run_records(folder)
    assert 0 < record.computed == len(store.read(folder)) < 400


@pytest.mark.slow
@pytest.mark.parametrize("kind", [local, on_slurm])
def test_a_killed_task_is_told_and_a_rerun_completes_the_table(kind, tmp_path):
    cluster = Cluster(kind, shards=2, timeout_min=5)
    killing = when_stored(tmp_path / "tasks", lambda: kill_one_task(tmp_path / "tasks"))
    with pytest.raises(RuntimeError, match=r"measurements are missing.*it was killed, or ran out of time or memory"):
        quiet(LONG, tmp_path / "tasks", cluster)
    killing.join()
    before = {p: p.read_bytes() for p in store.part_files(tmp_path / "tasks")}
    report = quiet(LONG, tmp_path / "tasks", cluster)
    assert report.ok and report.found > 0 and report.computed > 0
    assert {p: p.read_bytes() for p in before} == before
    quiet(LONG, tmp_path / "here")
    same_table(tmp_path / "here", tmp_path / "tasks")


@pytest.mark.slow
@needs_submitit
def test_local_tasks_end_when_who_started_them_is_killed(tmp_path):
    grid = ["key_dim=64", "num_pairs=2048", "trials=1", "seed=range(400)", "figures=false"]
    command = [sys.executable, "-m", "analyses.sweep", *grid, "hydra.launcher.cluster=local"]
    running = subprocess.Popen([*command, f"hydra.sweep.dir={tmp_path}"], cwd=ROOT, stderr=subprocess.DEVNULL)
    when_stored(tmp_path, running.kill).join(timeout=60)
    running.wait()
    deadline = time.monotonic() + ORPHAN_SECONDS
    while processes_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(tmp_path) == {}
