"""The frame of analyses: one way in for all, nothing computed twice, one line for a mistake."""

import dataclasses
import importlib
import pkgutil
import subprocess
import sys

import pandas as pd
import pytest
from omegaconf import OmegaConf

from capmem import figures, studies
from capmem.schema import construct
from capmem.studies import Computed, Options, Study, Swept, at_least
from capmem.studies.settings import fold, labels
from capmem.sweeps import engine
from capmem.sweeps.hydra_front import Job
from tests.conftest import ROOT

FRAMES_OWN = {"workers", "figures", "retry_failed"}
TINY = {
    "benchmark": {
        "key_dims": [8], "num_pairs": [4], "feature_maps": ["relu"], "correlations": [0.0], "value_dim": 4, "trials": 1,
        "loop_trials": 1, "processes": [1], "torch_devices": [],
    },
    "complexity": {"num_pairs": [8, 32], "repetitions": 1, "key_dim": 8, "value_dim": 8, "chunk_size": 8},
    "memory_growth": {"key_dim": 16, "value_dim": 8, "num_pairs": [2, 24], "gram_pairs": 4, "trials": 2},
    "stability": {
        "key_dim": 8, "value_dim": 4, "num_pairs": [4, 16], "queries": 32, "state_dtypes": ["bfloat16", "int8"],
        "round_every": [1, 4], "key_squares": [0.125, 1.0], "num_features": 4, "draws": 5,
    },
    "theory_check": {
        "bases": ["sphere"], "interactions": 0, "key_dim": [16], "value_dim": [16], "num_pairs": [8], "age_bins": 2,
        "trials": 20, "workers": 1,
    },
    "softmax_vs_linear": {
        "key_dim": 8, "value_dim": 8, "num_pairs": [2, 64], "betas": [1.0, 4.0], "degrees": [1], "nus": [1],
        "trials": 1, "workers": 1,
    },
    "heatmap": {"key_dim": [8, 16], "value_dim": 8, "num_pairs": [2, 8, 32], "trials": 2, "workers": 1},
    "correlation": {
        "correlations": [0.0, 0.5], "key_dim": 16, "value_dim": 8, "num_pairs": [8], "key_dims": [8, 16],
        "num_keys": 32, "trials": 2,
    },
    "feature_maps": {
        "feature_maps": ["relu", "dpfp", "identity"], "key_dim": 8, "value_dim": 8, "feature_dim": 32, "num_keys": 32,
        "num_pairs": [8], "trials": 2,
    },
    "interference": {
        "key_dim": 16, "value_dim": 4, "num_pairs": [4, 16], "age_pairs": 8, "age_bins": 2, "trials": 2,
        "correlations": [0.0, 0.5],
    },
    "write_rules": {
        "key_dim": 16, "value_dim": 4, "num_pairs": [8, 32], "age_pairs": 16, "age_bins": 2, "fractions": [0.0, 0.5],
        "overwrite_pairs": 8, "distinct_keys": [4], "noise_pairs": [8, 16, 32], "ridges": [0.0, 1.0], "trials": 2,
    },
}  # fmt: skip


def all_studies():
    modules = [importlib.import_module(f"capmem.studies.{m.name}") for m in pkgutil.iter_modules(studies.__path__)]
    return {m.STUDY.name: m.STUDY for m in modules if hasattr(m, "STUDY")}


STUDIES = all_studies()
of_all = pytest.mark.parametrize("name", sorted(STUDIES))


def job(name, folder, **changes):
    """What a command line hands over: the configuration file with tiny settings."""
    config = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / f"{name}.yaml"))
    config = {k: v for k, v in config.items() if k not in ("hydra", "defaults")}
    return Job([config | TINY[name] | changes], folder, [f"{k}={v}" for k, v in changes.items()])


@of_all
def test_the_keys_of_the_configuration_are_the_fields_of_the_settings(name):
    config = job(name, None).configs[0] | OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / f"{name}.yaml"))
    given = {k: v for k, v in config.items() if k not in FRAMES_OWN | {"hydra", "defaults"}}
    settings = STUDIES[name].settings
    assert construct(settings, given) == settings()
    assert set(given) == {f.name for f in dataclasses.fields(settings)}
    assert config["hydra"]["job"]["name"] == name
    assert (ROOT / "conf" / "hydra" / "help" / f"{name}.yaml").is_file()


@of_all
def test_its_presets_are_settings_that_differ_from_the_default(name):
    presets = sorted((ROOT / "conf" / "experiment" / name).glob("*.yaml"))
    assert presets
    settings = STUDIES[name].settings
    for path in presets:
        assert construct(settings, OmegaConf.to_container(OmegaConf.load(path))) != settings()
        assert path.stem in (ROOT / "conf" / "hydra" / "help" / f"{name}.yaml").read_text()
        assert path.read_text().startswith("# @package _global_\n")


@of_all
def test_every_analysis_has_its_two_commands(name):
    assert importlib.import_module(f"analyses.{name}").main
    told = (ROOT / "setup.cfg").read_text()
    assert f"capmem-{name.replace('_', '-')} = capmem.analyses.{name}:main" in told


@of_all
def test_it_draws_from_what_is_stored_without_computing(name, tmp_path, capsys, monkeypatch):
    study, drawn = STUDIES[name], {}
    assert study.show(job(name, tmp_path, figures=False))
    first = capsys.readouterr().out
    assert {"results.csv", "configuration.yaml"} <= {p.name for p in tmp_path.iterdir()}
    forbid_computing(study, monkeypatch)
    monkeypatch.setattr("capmem.studies.frame.save", lambda grid, folder, stem: drawn.update({stem: grid}))
    assert study.show(job(name, tmp_path))
    assert capsys.readouterr().out.startswith(first.split("\n\nIn ")[0])
    assert drawn.keys() == study.figures.keys()
    assert all(len(grid.table) for grid in drawn.values())
    with pytest.raises(AssertionError):  # what forbids it is awake
        study.show(job(name, tmp_path, seed=1))


def forbid_computing(study, monkeypatch):
    """Make a table that would have to be computed an AssertionError."""
    start = engine.results_of

    def nothing_to_do(slabs, *others):
        assert not slabs
        return start(slabs, *others)

    def rows(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(engine, "results_of", nothing_to_do)
    if isinstance(study.source, Computed):
        monkeypatch.setattr(Computed, "rows", property(lambda self: rows), raising=False)


@of_all
def test_a_setting_out_of_range_is_refused_before_there_is_a_folder(name, tmp_path):
    with pytest.raises(ValueError, match="^num_pairs must be a list, not empty, of numbers of at least") as told:
        STUDIES[name].show(job(name, tmp_path / "out", num_pairs=[0]))
    assert "\n" not in str(told.value)
    assert not (tmp_path / "out").exists()


@dataclasses.dataclass(frozen=True)
class Powers:
    sizes: tuple[int, ...] = (1, 2)
    power: float = 2.0

    def __post_init__(self):
        at_least(self, 1, "sizes", "power")


CALLS = []


def powers(settings):
    CALLS.append(settings)
    return [{"size": size, "result": size**settings.power} for size in settings.sizes]


def bars(table):
    figure, axes = figures._grid.plain_grid(2, 2, (1,))
    axes[0, 0].bar(table["size"], table["result"])
    return figures.Grid(figure, axes, table)


def tell(table):
    return f"The largest is {table['result'].max():g}."


POWERS = Study("powers", Powers, Computed(powers), tell, {"powers": bars})


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def test_the_table_is_computed_once_for_the_same_settings_and_again_for_others(tmp_path):
    for power, calls in ((2.0, 1), (2.0, 1), (3.0, 2), (2.0, 2)):
        assert POWERS.show(Job([{"sizes": [1, 2], "power": power, "figures": False}], tmp_path, []))
        assert len(CALLS) == calls


def test_the_finding_is_told_from_the_stored_table(tmp_path, capsys):
    ask = [{"sizes": [1, 2], "figures": False}]
    POWERS.show(Job([dict(c) for c in ask], tmp_path, []))
    assert "The largest is 4." in capsys.readouterr().out
    (stored,) = (tmp_path / "parts").glob("table-*.parquet")
    pd.read_parquet(stored).assign(result=[1.0, 7.0]).to_parquet(stored)
    POWERS.show(Job(ask, tmp_path, []))
    assert "The largest is 7." in capsys.readouterr().out


def test_swept_entries_of_a_list_are_one_table_and_another_key_gives_a_table_each(tmp_path, capsys):
    configs = [{"sizes": size, "power": power} for power in (2.0, 3.0) for size in (1, 3)]
    assert POWERS.show(Job(configs, tmp_path, []))
    told = capsys.readouterr().out
    assert [call.sizes for call in CALLS] == [(1, 3), (1, 3)]
    assert "power=2.0: The largest is 9." in told and "power=3.0: The largest is 27." in told
    assert {p.stem for p in (tmp_path / "figures").glob("*.png")} == {"powers_power=2.0", "powers_power=3.0"}


def test_lists_are_folded_only_where_all_else_is_equal():
    configs = [{"sizes": 1, "power": 1.0}, {"sizes": 2, "power": 1.0}, {"sizes": [5], "power": 1.0}]
    assert fold(configs, Powers) == [{"sizes": [1, 2], "power": 1.0}, {"sizes": [5], "power": 1.0}]
    assert labels(fold(configs, Powers)) == ["_sizes=1,2", "_sizes=5"]
    assert labels([{"sizes": [1], "power": 1.0}]) == [""]


def test_every_setting_is_checked_before_the_first_table_is_computed(tmp_path):
    with pytest.raises(ValueError, match="power must be at least 1, got 0.5"):
        POWERS.show(Job([{"power": 2.0}, {"power": 0.5}], tmp_path / "out", []))
    assert not CALLS and not (tmp_path / "out").exists()


def test_a_run_leaves_finding_figures_numbers_and_configuration(tmp_path, capsys):
    assert POWERS.show(Job([{"sizes": [2]}], tmp_path, ["sizes=2"]))
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {f"powers.{k}" for k in ("png", "svg", "pdf", "csv")}
    assert {p.name for p in tmp_path.iterdir()} == {"figures", "parts", "results.csv", "configuration.yaml"}
    assert "sizes=2" in (tmp_path / "configuration.yaml").read_text()
    assert capsys.readouterr().out.startswith("The largest is 4.")


def test_how_it_is_run_cannot_be_swept(tmp_path):
    with pytest.raises(ValueError, match="figures cannot be swept, got True, False"):
        POWERS.show(Job([{"figures": True}, {"figures": False}], tmp_path, []))


def test_figures_can_be_left_out(tmp_path):
    POWERS.show(Job([{"figures": False}], tmp_path, []))
    assert not (tmp_path / "figures").exists()
    assert (tmp_path / "results.csv").exists()


def test_a_damaged_table_is_one_line(tmp_path):
    ask = {"sizes": [1], "figures": False}
    POWERS.show(Job([dict(ask)], tmp_path, []))
    (stored,) = (tmp_path / "parts").glob("table-*.parquet")
    stored.write_bytes(b"no table")
    with pytest.raises(ValueError, match="is damaged, delete it to compute it again") as told:
        POWERS.show(Job([ask], tmp_path, []))
    assert "\n" not in str(told.value)


@dataclasses.dataclass(frozen=True)
class Few:
    num_pairs: tuple[int, ...] = (2,)
    trials: int = 1


def few(settings):
    return [
        {"keys": "orthonormal", "key_dim": 4, "value_dim": 2, "num_pairs": n, "trials": settings.trials}
        for n in settings.num_pairs
    ]


FEW = Swept(few)


def test_a_swept_table_holds_what_was_asked_for_and_no_more(tmp_path):
    options = Options(workers=1)
    FEW.table(Few((2, 4), trials=2), tmp_path, options)
    frame = FEW.table(Few((2,)), tmp_path, options).frame
    assert frame[["num_pairs", "trial"]].to_numpy().tolist() == [[2, 0]]


def test_an_analysis_that_could_measure_nothing_ends_badly(tmp_path):
    told = []
    study = Study("few", Few, FEW, told.append, {})
    assert not study.show(Job([{"num_pairs": [5], "workers": 1}], tmp_path, []))  # 5 orthonormal keys in R^4
    assert not told


def test_the_command_line_gives_one_line_for_a_mistake_and_runs_from_words(tmp_path):
    command = [sys.executable, "-m", "analyses.memory_growth", f"hydra.sweep.dir={tmp_path / 'out'}"]
    wrong = subprocess.run([*command, "correlation=2"], cwd=ROOT, capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr) == (1, "error: correlation must be a number between 0 and 1, got 2.0\n")
    assert not (tmp_path / "out").exists()
    tiny = ["experiment/memory_growth=wide_keys", "num_pairs=2,8", "trials=1", "gram_pairs=2", "figures=false"]
    right = subprocess.run([*command, *tiny], cwd=ROOT, capture_output=True, text=True)
    assert right.returncode == 0, right.stderr
    assert right.stdout.startswith("After 8 pairs S (256 x 64)")
