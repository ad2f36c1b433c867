"""A sweep that is killed at any moment leaves no process, loses no row, and a rerun completes it bit for bit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from capmem import store
from tests.conftest import ROOT

GRID = [
    "key_dim=32,64",
    "feature_map=identity,relu,dpfp",
    "keys.correlation=0,0.5",
    "num_pairs=64,1000,2048",
    "trials=4",
]
ORPHAN_SECONDS = 3.0


def command(folder):
    run = [sys.executable, "-m", "analyses.sweep", *GRID]
    return [*run, "workers=2", "figures=false", f"hydra.sweep.dir={folder}"]


def table(folder):
    return store.read(folder).drop(columns="elapsed_s")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of an uninterrupted run, and how long it took."""
    folder = tmp_path_factory.mktemp("whole")
    started = time.monotonic()
    subprocess.run(command(folder), cwd=ROOT, check=True, capture_output=True)
    return table(folder), time.monotonic() - started


def group_members(group):
    """The processes of a process group that are still alive."""
    alive = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(state[2]) == group and state[0] != "Z":
                alive.append(int(name))
    return alive


def workers_of(parent):
    found = []
    for pid in group_members(os.getpgid(parent)):
        try:
            words = open(f"/proc/{pid}/cmdline").read()
        except OSError:
            continue
        if pid != parent and "spawn_main" in words:
            found.append(pid)
    return found


def kill_once(folder, how, moment):
    """Start the sweep, send the signal at that moment, and wait; return what is left of it after three seconds."""
    running = subprocess.Popen(
        command(folder), cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    time.sleep(moment)
    if how == "worker":
        for pid in workers_of(running.pid)[:1]:
            os.kill(pid, signal.SIGKILL)
    elif running.poll() is None:
        sender = os.killpg if how == signal.SIGINT else os.kill
        sender(running.pid, how)
    try:
        running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        pytest.fail(f"still running 60 s after {how}")
    deadline = time.monotonic() + ORPHAN_SECONDS
    while group_members(running.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    return group_members(running.pid)


def check(folder, whole, how, seed):
    expected, seconds = whole
    moment = float(np.random.default_rng(seed).uniform(0.3, 1.0)) * seconds
    assert kill_once(folder, how, moment) == []
    before = {p: p.read_bytes() for p in store.part_files(folder)}
    subprocess.run(command(folder), cwd=ROOT, check=True, capture_output=True)
    assert {p: p.read_bytes() for p in before} == before
    pd.testing.assert_frame_equal(table(folder), expected, check_exact=True)


KILLS = [signal.SIGKILL, "worker", signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, *(pytest.param(how, marks=pytest.mark.slow) for how in ("worker", signal.SIGTERM))], ids=str
)
def test_a_killed_sweep_is_completed_by_a_rerun(how, whole, tmp_path):
    check(tmp_path / "sweep", whole, how, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", KILLS, ids=str)
def test_a_sweep_killed_at_random_moments_is_completed_by_a_rerun(how, seed, whole, tmp_path):
    check(tmp_path / "sweep", whole, how, seed=100 + seed)


@pytest.mark.slow
def test_two_sweeps_into_one_folder_at_once_give_the_same_table(whole, tmp_path):
    both = [
        subprocess.Popen(command(tmp_path), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in "ab"
    ]
    said = [running.communicate(timeout=120)[1] for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    pd.testing.assert_frame_equal(table(tmp_path), whole[0], check_exact=True)


@pytest.mark.slow
def test_a_full_disk_is_told_and_a_rerun_completes(whole, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        full = subprocess.run(command(disk / "sweep"), cwd=ROOT, capture_output=True, text=True)
        assert full.returncode == 1
        assert "No space left on device" in full.stderr and "Traceback" not in full.stderr
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        subprocess.run(command(disk / "sweep"), cwd=ROOT, check=True, capture_output=True)
        pd.testing.assert_frame_equal(table(disk / "sweep"), whole[0], check_exact=True)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
