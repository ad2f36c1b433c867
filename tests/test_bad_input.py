"""Every mistake gives one clear line (key, value given, what is allowed) and exit code 1; nothing is written."""

import sys

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra

from analyses import sweep

CASES = [
    # misspelt keys and choices
    ("key_dmi=3", "key 'key_dmi' does not exist. Did you mean 'key_dim'?"),
    ("key_dmi=3,4", "key 'key_dmi' does not exist. Did you mean 'key_dim'?"),
    ("feature_mp=relu", "key 'feature_mp' does not exist. Did you mean 'feature_map'?"),
    ("keys.corelation=0,1", "Did you mean 'keys.correlation'?"),
    ("keys=gaussian keys.correlation=0.5", "key 'keys.correlation' does not exist"),
    ("feature_map.nu=2", "key 'feature_map.nu' does not exist"),
    ("feature_map.name=dpfp", "key 'feature_map.name' does not exist"),
    ("readout.epsilon=1", "key 'readout.epsilon' does not exist"),
    ("key.dim=3", "key 'key.dim' does not exist"),
    ("feature_map=dpf", "feature_map 'dpf' does not exist. Did you mean 'dpfp'?"),
    ("feature_map=relu,dpf", "feature_map 'dpf' does not exist. Did you mean 'dpfp'?"),
    ("feature_map={name:dpfp}", "feature_map {'name': 'dpfp'} does not exist"),
    ("keys=sfere", "keys 'sfere' does not exist. Did you mean 'sphere'?"),
    ("values=sphare", "values 'sphare' does not exist. Did you mean 'sphere'?"),
    ("write_rule=hebb", "write_rule 'hebb' does not exist. Did you mean 'hebbian'?"),
    ("readout=normalised", "readout 'normalised' does not exist. Did you mean 'normalized'?"),
    ("memory=holographic", "memory 'holographic' does not exist. Allowed: linear, softmax"),
    ("+experiment=mian", "experiment 'mian' does not exist. Did you mean 'main'?"),
    ("key_center=median", "key_center must be one of none, mean, got 'median'"),
    ("key_norm=l1", "key_norm must be one of none, l2, sum, got 'l1'"),
    ("feature_norm=max", "feature_norm must be one of none, l2, sum, got 'max'"),
    ("feature_center=true", "feature_center must be one of none, mean, got True"),
    ("dtype=float16", "dtype must be one of float32, float64, got 'float16'"),
    ("criterion=accuracy", "criterion 'accuracy' does not exist. Did you mean 'top1_accuracy'?"),
    ("keys@foo=gaussian", "set GROUP=CHOICE, without @"),
    ("trials=9223372036854775807", "trials must be at most 1000000, got 9223372036854775807"),
    # wrong types
    ("key_dim=lots", "key_dim must be an integer or null, got 'lots'"),
    ("key_dim=2.5", "key_dim must be an integer or null, got 2.5"),
    ("key_dim=[16]", "key_dim must be an integer or null, got [16]"),
    ("key_dim=true", "key_dim must be an integer or null, got True"),
    ("value_dim=1e3", "value_dim must be an integer or null, got 1000.0"),
    ("num_pairs=many", "num_pairs must be a list, each entry an integer, got 'many'"),
    ("num_pairs=[8,x]", "num_pairs must be a list, each entry an integer"),
    ("num_pairs=8.5", "num_pairs must be a list, each entry an integer, got 8.5"),
    ("num_pairs=null", "num_pairs must be a list, each entry an integer, got None"),
    ("trials=true", "trials must be an integer, got True"),
    ("seed=null", "seed must be an integer, got None"),
    ("seed=9223372036854775808", "seed must be an integer, got 9223372036854775808"),
    ("keys.correlation=high", "keys.correlation must be a number, got 'high'"),
    ("keys.unit_norm=1", "keys.unit_norm must be true or false, got 1"),
    ("feature_map=dpfp feature_map.nu=1.0", "feature_map.nu must be an integer, got 1.0"),
    ("key_scale=sqrt", "key_scale must be a number or one of sqrt_dim, got 'sqrt'"),
    ("query_cosine=half", "query_cosine must be a number, got 'half'"),
    ("workers=two", "workers must be an integer or null, got 'two'"),
    ("figures=maybe", "figures must be true or false, got 'maybe'"),
    # out of range
    ("key_dim=0", "key_dim must be an integer of at least 1, got 0"),
    ("key_dim=16,0", "key_dim must be an integer of at least 1, got 0"),
    ("value_dim=-1", "value_dim must be an integer of at least 1, got -1"),
    ("num_pairs=0", "num_pairs must be one or more integers of at least 1"),
    ("num_pairs=[]", "num_pairs must be one or more integers of at least 1, got ()"),
    ("trials=0", "trials must be an integer of at least 1, got 0"),
    ("seed=-1", "seed must be an integer of at least 0, got -1"),
    ("keys.correlation=1.5", "keys.correlation must be a number from 0 to 1, got 1.5"),
    ("keys.correlation=-0.1", "keys.correlation must be a number from 0 to 1, got -0.1"),
    ("keys.correlation=nan", "keys.correlation must be a number from 0 to 1, got nan"),
    ("feature_map=dpfp feature_map.nu=0", "feature_map.nu must be an integer of at least 1, got 0"),
    ("readout=normalized readout.epsilon=-1", "readout.epsilon must be a number of at least 0, got -1.0"),
    ("write_rule=decay write_rule.rate=1.1", "write_rule.rate must be a number above 0, up to 1, got 1.1"),
    ("write_rule=delta write_rule.step_size=0", "write_rule.step_size must be a number above 0, got 0.0"),
    ("memory=softmax memory.beta=0", "memory.beta must be a positive number, or null"),
    ("key_scale=0", "key_scale must be a positive number or sqrt_dim, got 0.0"),
    ("query_cosine=1.5", "query_cosine must be a number from -1 to 1, got 1.5"),
    ("query_cosine=0.5 key_dim=1", "key_dim must be at least 2 for noisy cues, got 1"),
    ("max_queries=0", "max_queries must be an integer of at least 1, got 0"),
    ("codebook_size=32", "codebook_size must be at least num_pairs = 64, got 32"),
    ("workers=0", "workers must be an integer of at least 1, or null, got 0"),
    ("workers=1,2", "workers cannot be swept, got 1, 2"),
    ("threshold=inf", "threshold must be finite, got inf"),
    # words that are no overrides
    ("key_dim", "'key_dim' cannot be read as KEY=VALUE"),
    ("=4", "'=4' cannot be read as KEY=VALUE"),
    ("key_dim=", "'key_dim=' has no value"),
    ("key_dim=1,2,", "'key_dim=1,2,' cannot be read as KEY=VALUE"),
    ("+new=1", "keys cannot be added or deleted"),
    ("~key_dim", "keys cannot be added or deleted"),
    ("key_dim=range(4,4)", "'key_dim=range(4,4)' has no values"),
    ("keys.correlation=interval(0,1)", "an interval has no list of values"),
    ("hydra/launcher=basic", "needs hydra/sweeper=basic"),
    # files
    ("keys=array", "keys.path must be given"),
    ("keys=array keys.path=missing.npz", "keys.path 'missing.npz' cannot be read: No such file"),
    ("keys=array keys.path={folder}", "not an .npy or .npz file"),
    ("keys=array keys.path={folder}/good.npz", "keys.name must be given, "),
    ("keys=array keys.path={folder}/good.npz keys.name=kk", "keys.name 'kk' does not exist. Did you mean 'k'?"),
    ("keys=array keys.path={folder}/good.npy keys.name=k", "keys.name must be null for the .npy file"),
    ("keys=array keys.path={folder}/nan.npy", "holds nan or inf in 1 rows, the first is 2"),
    ("keys=array keys.path={folder}/cube.npy", "must hold an array (N, dim) with rows, got shape (2, 3, 4)"),
    ("keys=array keys.path={folder}/empty.npy", "must hold an array (N, dim) with rows, got shape (0, 3)"),
    ("keys=array keys.path={folder}/complex.npy", "must hold real numbers, got dtype complex128"),
    ("keys=array keys.path={folder}/pickled.npy", "not an .npy or .npz file of plain numbers"),
    ("keys=array keys.path={folder}/good.npy keys.order=sorted", "keys.order must be one of random, given"),
    ("keys=array keys.path={folder}/good.npy key_dim=4", "key_dim must be 3, as in the file, or null, got 4"),
    (
        "keys=array keys.path={folder}/good.npy values=array values.path={folder}/five.npy",
        "keys and values must be arrays of equally many rows, got (4, 5)",
    ),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    good = np.arange(12.0).reshape(4, 3)
    bad = good.copy()
    bad[2, 1] = np.nan
    arrays = {"good": good, "five": np.ones((5, 3)), "nan": bad, "cube": np.ones((2, 3, 4)), "empty": np.ones((0, 3))}
    for name, rows in (arrays | {"complex": good * 1j}).items():
        np.save(folder / f"{name}.npy", rows)
    np.save(folder / "pickled.npy", np.array([[object()]]), allow_pickle=True)
    np.savez(folder / "good.npz", k=good, v=good)
    return folder


def run(words, monkeypatch, capsys):
    """Run the application in this process; return its exit code and what it said."""
    monkeypatch.setattr(sys, "argv", ["capmem-sweep", *words])
    GlobalHydra.instance().clear()
    with pytest.raises(SystemExit) as left:
        sweep.main()
    return left.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("words", "told"), CASES, ids=[c[0] for c in CASES])
def test_a_mistake_is_one_clear_line(words, told, files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = [word.format(folder=files) if "{folder}" in word else word for word in words.split()]
    code, said = run([*given, f"hydra.sweep.dir={tmp_path / 'out'}"], monkeypatch, capsys)
    assert code == 1
    assert told in said
    assert said.startswith("error: ") and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_there_are_sixty_cases_at_least():
    assert len(CASES) >= 60


def foreign(folder):
    folder.mkdir()
    (folder / "results.csv").write_text("mine")


def garbage(folder):
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "part-1.parquet").write_bytes(b"not parquet")


FOLDERS = [
    (foreign, "holds something else (results.csv): name a new one, or a sweep's"),
    (garbage, "part-1.parquet is not a part of a sweep, or is damaged"),
    (lambda folder: folder.write_text("a file"), "cannot be made: File exists"),
    (lambda folder: (folder.mkdir(), (folder / "parts").write_text("")), "parts is in the way"),
]


@pytest.mark.parametrize(("make", "told"), FOLDERS, ids=["foreign", "garbage", "file", "misplaced"])
def test_a_folder_that_is_no_sweeps_is_refused_and_left_alone(make, told, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    make(folder)
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    code, said = run(["key_dim=4", "trials=1", f"hydra.sweep.dir={folder}"], monkeypatch, capsys)
    assert code == 1
    assert told in said and said.startswith("error: ") and said.count("\n") == 1
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


def test_an_empty_folder_name_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, said = run(["key_dim=4", "hydra.sweep.dir="], monkeypatch, capsys)
    assert (code, said) == (1, "error: hydra.sweep.dir must name a folder, got ''\n")
    assert list(tmp_path.iterdir()) == []
