"""Every law of keys sweeps by its name on the command line."""

import subprocess
import sys

import pytest

from capmem import store
from capmem.ensembles import KEYS
from tests.conftest import ROOT

LAWS = [name for name in KEYS.names() if name not in ("array", "heads")]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("laws")
    laws = [f"keys={','.join(LAWS)}", "values=rademacher,one_hot"]  # dense, and at most value_dim of them
    rest = ["key_dim=16", "num_pairs=8,80", "trials=1", "workers=1", "figures=false", f"hydra.sweep.dir={folder}"]
    done = subprocess.run(
        [sys.executable, "-m", "analyses.sweep", *laws, *rest],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return store.read(folder)


def test_every_law_is_measured_where_it_has_the_pairs(table):
    measured = table[table["status"] == "ok"]
    assert set(table["status"]) == {"ok", "skipped"}
    assert len(table) == 2 * 2 * len(LAWS)
    assert (measured["num_pairs"] == 8).sum() == len(table) // 2
    assert measured["scale_optimal_error"].notna().all()


def test_what_a_law_does_not_have_is_skipped_with_the_reason(table):
    skipped = table[table["status"] == "skipped"]
    assert set(skipped["num_pairs"]) == {80}
    assert ((skipped["keys"] == "orthonormal") | (skipped["values"] == "one_hot")).all()
    assert set(skipped.loc[skipped["keys"] == "orthonormal", "reason"]) == {
        "these keys or values hold 16 pairs at most"
    }
    other = skipped.loc[skipped["keys"] != "orthonormal", "reason"]
    assert set(other) == {"these keys or values hold 64 pairs at most"}


def test_only_repeated_keys_leave_pairs_unscored(table):
    measured = table[table["status"] == "ok"]
    repeated = measured["keys"] == "duplicated"
    assert (measured["num_scored"] == measured["num_queries"])[~repeated].all()
    assert (measured["num_scored"] < measured["num_queries"])[repeated & (measured["num_pairs"] == 80)].all()
