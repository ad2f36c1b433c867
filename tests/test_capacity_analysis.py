"""The capacity analysis: what is told is what the table holds, the figures draw it, and the application runs."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from capmem import capacity, figures
from capmem._version import FORMAT, NUMERICS
from capmem.capacity import pareto
from capmem.capacity_report import findings, laws, needed_table, tell
from capmem.store import StoreError
from tests.conftest import ROOT

SMALL = ["feature_map=identity,relu", "write_rule=hebbian", "key_dim=8,16,32", "wanted=[8]", "trials=8", "workers=1"]


def row(name, rule, dim, pairs, size, **more):
    return {
        "memory": "linear", "feature_map": name, "write_rule": rule, "key_dim": dim, "value_dim": dim,
        "feature_dim": dim, "pairs": pairs, "low": 0.9 * pairs, "high": 1.1 * pairs, "bracketed": True, "bound": "",
        "criterion": "top-1 accuracy >= 0.9", "method": "simulation", "trials": 8, "narrow": True, "source": "",
        "theory_pairs": pairs if name == "identity" else np.nan, "state_bytes": size, "pairs_per_byte": pairs / size,
    } | more  # fmt: skip


@pytest.fixture
def table():
    rows = []
    for dim in (16, 32, 64):
        rows += [
            row("identity", "hebbian", dim, dim**2 / 16, 4 * dim**2),
            row("relu", "hebbian", dim, dim / 2, 4 * dim**2),
        ]
        rows += [row("identity", "delta", dim, dim, 4 * dim**2), row("dpfp", "hebbian", dim, 3 * dim, 8 * dim**2)]
    frame = pd.DataFrame(rows)
    return frame.assign(pareto=pareto(frame))


@pytest.fixture
def needed():
    answers = [
        ("identity", 64, 64, 16640.0),
        ("identity", 256, 128, 66048.0),
        ("relu", 64, 128, 66048.0),
        ("relu", 256, np.nan, np.nan),
    ]
    rows = [
        {"memory": "linear", "feature_map": name, "write_rule": "hebbian", "num_pairs": n, "key_dim": d, "value_dim": d,
         "feature_dim": d, "state_bytes": size, "bracketed": d == d, "shown": f"{d:.0f}" if d == d else "> 256",
         "criterion": "top-1 accuracy >= 0.9"}
        for name, n, d, size in answers
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_finding_names_the_most_and_the_fewest(table, needed):
    told = " ".join(findings(table, needed))
    assert "At d = 64, v = 64, identity, hebbian holds the most pairs, 256 (230-282)" in told
    assert "relu, hebbian the fewest, 32 (29-35)" in told
    assert "grows fastest along d for identity, hebbian: N* = 0.0625 d^2.00" in told
    assert "For 256 pairs the smallest state is that of identity, 66 kB at d = 128." in told


def test_another_table_gives_another_finding(table, needed):
    table.loc[(table["feature_map"] == "relu") & (table["key_dim"] == 64), ["pairs", "low", "high"]] = 999.0
    needed.loc[needed["num_pairs"] == 256, ["key_dim", "state_bytes"]] = 200.0, 5e6
    told = " ".join(findings(table.assign(pareto=pareto(table)), needed))
    assert "relu, hebbian holds the most pairs, 999" in told
    assert "5.0 MB at d = 200" in told and "256 (230" not in told


def test_bounds_enter_no_finding_and_are_told_as_such(table, needed):
    most = (table["feature_map"] == "identity") & (table["write_rule"] == "hebbian") & (table["key_dim"] == 64)
    table.loc[most, ["pairs", "low", "high", "bracketed", "bound"]] = [np.nan, 16384.0, np.nan, False, "at least"]
    text = tell(table.assign(pareto=pareto(table)), needed)
    assert "dpfp, hebbian holds the most pairs, 192" in text
    assert ">=16384" in text
    assert "Of 12 capacities, 1 are bounds, no numbers" in text


def test_the_pareto_line_is_what_no_smaller_state_reaches():
    frame = pd.DataFrame({"pairs": [5, 9, 9, 4, 20, np.nan], "state_bytes": [10, 20, 30, 20, 30, 5]})
    assert pareto(frame).tolist() == [True, True, False, False, True, False]
    frame["keys.correlation"] = [0.0, 0.5, 0.5, 0.9, 0.9, 0.0]  # another task, not another memory
    assert pareto(frame).tolist() == [True, True, False, True, True, False]


def test_each_memory_has_its_law(table):
    found = dict(laws(table))
    assert set(found) == {"identity, hebbian", "relu, hebbian", "identity, delta", "dpfp, hebbian"}
    assert found["identity, hebbian"].exponent == pytest.approx(2)
    assert found["dpfp, hebbian"].factor == pytest.approx(3)


def test_the_table_of_dimensions_shows_sizes_and_bounds(needed):
    lines = needed_table(needed).splitlines()
    assert lines[2].split() == ["feature_map", "N", "=", "64", "N", "=", "256"]
    assert lines[3].split() == ["identity", "64", "(16.6", "kB)", "128", "(66", "kB)"]
    assert lines[4].split()[-2:] == [">", "256"]


def test_curves_draw_estimates_solid_and_theory_dashed(table):
    grid = figures.capacity_curves(table)
    assert [ax.get_title() for ax in grid.axes.flat] == ["delta", "hebbian"]
    dashed = [line for line in grid.axes[0, 1].lines if line.is_dashed()]
    drawn = [line.get_ydata().tolist() for line in dashed if np.isfinite(line.get_ydata()).all()]
    assert drawn == [[16.0, 64.0, 256.0]]
    solid = [list(line.get_ydata()) for line in grid.axes[0, 1].lines if not line.is_dashed() and len(line.get_ydata())]
    assert [48.0, 96.0, 192.0] in solid
    assert any("d^{2.00}" in text.get_text() for text in grid.axes[0, 1].texts)
    assert len(grid.table) == len(table)


def test_a_bound_is_drawn_as_a_triangle_at_the_end_of_the_search(table):
    table.loc[0, ["pairs", "low", "high", "bracketed", "bound"]] = [np.nan, 512.0, np.nan, False, "at least"]
    grid = figures.capacity_curves(table)
    marks = [line for line in grid.axes[0, 1].lines if line.get_marker() == "^" and line.get_linestyle() == "None"]
    assert [512.0] in [list(mark.get_ydata()) for mark in marks]
    labels = [text.get_text() for text in grid.figure.legends[0].get_texts()]
    assert "at least so many" in labels and "fewer" not in labels


def test_maps_have_the_colours_that_they_have_in_other_figures(table):
    from capmem.figures import _palette

    grid = figures.capacity_curves(table)
    legend = {text.get_text(): line.get_color() for text, line in
              zip(grid.figure.legends[0].get_texts(), grid.figure.legends[0].get_lines(), strict=True)}  # fmt: skip
    names = ["relu", "identity", "dpfp"]
    assert [legend[name] for name in names] == [style["color"] for style in _palette.styles(names).values()]


def test_one_panel_can_be_drawn_into_given_axes(table):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    part = table[table["write_rule"] == "hebbian"]
    assert figures.capacity_curves(part, ax=ax) is ax
    with pytest.raises(ValueError, match="ax is one panel, but write_rule has 2 values: delta, hebbian"):
        figures.capacity_curves(table, ax=ax)


def test_two_capacities_in_one_place_are_refused(table):
    with pytest.raises(ValueError, match="several capacities share one place"):
        figures.capacity_curves(table, facet=None)


def test_capacity_per_byte_draws_the_pareto_line_in_every_panel(table):
    grid = figures.capacity_per_byte(table)
    best = table[table["pareto"]].sort_values("state_bytes")["pairs"].tolist()
    for ax in grid.axes.flat:
        assert best in [list(line.get_ydata()) for line in ax.lines]


def run(*overrides):
    command = [sys.executable, "-m", "analyses.capacity", *map(str, overrides)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_the_application_leaves_tables_figures_and_configuration(tmp_path):
    result = run(*SMALL, f"hydra.run.dir={tmp_path}")
    assert result.returncode == 0, result.stderr
    table, needed = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("capacity", "required_dim"))
    assert len(table) == 6 and len(needed) == 2
    exact = capacity.estimate(*memory(), 16, threshold=0.9).pairs
    at = table[(table["feature_map"] == "identity") & (table["key_dim"] == 16)].iloc[0]
    assert at["theory_pairs"] == pytest.approx(exact) and at["pairs"] == pytest.approx(exact, rel=0.25)
    largest = table[table["key_dim"] == 32].sort_values("pairs").iloc[-1]
    assert (
        f"At d = 32, v = 32, {largest['feature_map']} holds the most pairs, {largest['pairs']:.0f} (" in result.stdout
    )
    kinds = {".png", ".svg", ".pdf", ".csv"}
    for name in ("capacity_curves", "capacity_per_byte"):
        assert {p.suffix for p in (tmp_path / "figures").glob(f"{name}.*")} == kinds
    assert "wanted" in (tmp_path / "configuration.yaml").read_text()


def asked(*configs, **changes):
    """What a command line asks for: tiny, without a pool."""
    from capmem.sweeps.hydra_front import Job

    tiny = {"key_dim": 8, "trials": 2, "workers": 1, "figures": False, "retry_failed": False} | changes
    return Job([base_config() | tiny | config for config in configs or [{}]], None, [])


def test_the_same_command_in_the_same_folder_only_redraws(tmp_path, monkeypatch, capsys):
    from capmem.capacity_study import show

    job = asked({"feature_map": "identity"}, {"feature_map": "dpfp"})._replace(folder=tmp_path)
    assert show(job)
    first, told = capsys.readouterr().out, (tmp_path / "capacity.csv").read_bytes()
    monkeypatch.setattr("capmem.capacity_tables._measure", None)
    monkeypatch.setattr("capmem.capacity_tables._require", None)
    drawn = []
    monkeypatch.setattr("capmem.figures.save", lambda grid, folder, name: drawn.append(name) or [folder / name])
    again = [config | {"figures": True} for config in job.configs]
    assert show(job._replace(configs=again))
    assert capsys.readouterr().out.startswith(first.partition("\nIn ")[0])
    assert (tmp_path / "capacity.csv").read_bytes() == told
    assert drawn == ["capacity_curves", "capacity_per_byte"]
    with pytest.raises(TypeError):  # what forbids computing is awake
        show(job._replace(configs=[config | {"seed": 1} for config in job.configs]))


def test_stored_tables_are_those_that_were_computed(tmp_path):
    from capmem.capacity_points import asked_of, point_of
    from capmem.capacity_tables import capacities, stored, tables
    from capmem.sweeps.application import run_options

    configs = [dict(config) for config in asked({"feature_map": "identity"}, {"feature_map": "dpfp"}).configs]
    how = asked_of(configs, run_options(configs))
    points = [point_of(config, how) for config in configs]
    found = tables(points, tmp_path, 1)
    pd.testing.assert_frame_equal(found.capacities, capacities(points, 1))
    (again,) = stored(tmp_path)
    pd.testing.assert_frame_equal(again.needed, found.needed)
    (path,) = (tmp_path / "parts").glob("capacity-*.json")
    path.write_text(path.read_text().replace('"numerics": ', '"numerics": 9'))
    assert list(stored(tmp_path)) == []  # of another version
    version = f'"format": {FORMAT}, "numerics": {NUMERICS}'
    rows = '"capacities": [{"pairs": 1}], "needed": []'
    for text, reason in (
        ("{", "Expecting property name"),
        ("[]", "it is no object with format and numerics"),
        ("{}", "it is no object with format and numerics"),
        (f"{{{version}}}", "capacities is no list of rows"),
        (f'{{{version}, "capacities": [3], "needed": []}}', "capacities is no list of rows"),
        (f'{{{version}, "capacities": [], "needed": []}}', "capacities is empty"),
        (f"{{{version}, {rows}}}", "capacities lacks memory, key_dim"),
    ):
        path.write_text(text)
        for read in (lambda: tables(points, tmp_path, 1), lambda: list(stored(tmp_path))):
            with pytest.raises(StoreError, match=f"{path.name} is damaged, delete it to compute it again: {reason}"):
                read()


def test_every_column_that_a_stored_table_must_have_is_there(tmp_path):
    from capmem.capacity_tables import CAPACITY_COLUMNS, NEEDED_COLUMNS, tables

    found = tables(points_of({"feature_map": "identity"}), tmp_path, 1)
    assert set(CAPACITY_COLUMNS) <= set(found.capacities) and set(NEEDED_COLUMNS) <= set(found.needed)


def points_of(*configs, **changes):
    from capmem.capacity_points import asked_of, point_of
    from capmem.sweeps.application import run_options

    configs = [dict(config) for config in asked(*configs, **changes).configs]
    how = asked_of(configs, run_options(configs))
    return [point_of(config, how) for config in configs]


def test_memories_that_differ_in_the_write_rule_alone_are_lines_of_one_panel(table):
    from capmem.capacity_study import drawings

    one = table[table["feature_map"] == "identity"]
    drawn = dict(drawings(one))
    assert set(drawn) == {"capacity_curves", "capacity_per_byte"}
    for grid in drawn.values():
        assert grid.axes.size == 1
        labels = [text.get_text() for text in grid.figure.legends[0].get_texts()]
        assert labels[:2] == ["delta", "hebbian"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(512, "512 B"), (1, "1 B"), (999.4, "999 B"), (999.6, "1.0 kB"), (352_800, "353 kB"), (999_700, "1.0 MB"),
     (1_000_000, "1.0 MB"), (1_234_567, "1.23 MB"), (16_640, "16.6 kB"), (5e9, "5.0 GB"), (5e12, "5000 GB")],
)  # fmt: skip
def test_sizes_are_written_as_people_write_them(count, text):
    from capmem.capacity_report import _size

    assert _size(count) == text


def test_capacities_by_theory_tell_the_known_error_of_each_memory(table, needed):
    exact = table["feature_map"] == "identity"
    sources = np.where(exact, "q^(N-1) (T > 0) (exact)", "erf(x) (known error: up to 9% (N = 8))")
    text = tell(table.assign(method="theory", source=sources), needed)
    assert "identity, hebbian; identity, delta: exact." in text
    assert "relu, hebbian; dpfp, hebbian: up to 9% (N = 8)." in text
    assert "Known errors" not in tell(table, needed)


def test_an_interval_of_the_exponent_is_named_where_there_is_one(table, needed):
    heading = "95% interval of the exponent"
    assert heading in tell(table, needed)
    two = tell(table[table["key_dim"] < 64], needed)
    assert heading not in two and "two points: no interval" in two


@pytest.mark.parametrize(("given", "wanted"), [(1000, (1000,)), ([], ()), ([8, 9], (8, 9))])
def test_a_list_takes_one_value_too(given, wanted):
    (point,) = points_of({"wanted": given})
    assert point.asked.wanted == wanted


def test_one_memory_alone_is_not_ranked(table, needed):
    one = (table["feature_map"] == "identity") & (table["write_rule"] == "hebbian")
    told = " ".join(findings(table[one].drop(columns="write_rule"), needed[needed["feature_map"] == "identity"]))
    assert "identity holds 256 (230-282) pairs." in told and "For 256 pairs it needs d = 128, 66 kB." in told
    for word in ("most pairs", "fewest", "fastest", "slowest", "smallest", "largest", "Pareto"):
        assert word not in told


def memory():
    from capmem.ensembles import SphereKeys
    from capmem.feature_maps import Identity
    from capmem.memory import LinearMemory

    return LinearMemory(Identity()), SphereKeys()


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("criterion=error", "criterion 'error' does not exist"),
        ("wanted=[0]", "wanted must be integers of at least 1, got (0,)"),
        ("method=guess", "method 'guess' does not exist. Allowed: auto, theory, simulation"),
        ("max_dim=1", "max_dim must be an integer of at least 2, got 1"),
        ("precision=0", "precision must be a number above 0, got 0.0"),
        ("precision=0.1,0.2", "precision cannot be swept, got 0.1, 0.2"),
        ("codebook_size=4", "codebook_size must be at least the wanted pairs, 8, got 4"),
        ("key_dim=0", "key_dim must be an integer of at least 1, got 0"),
    ],
)
def test_bad_input_gives_one_line_before_anything_is_computed(override, told, tmp_path):
    from capmem.capacity_study import show
    from capmem.sweeps.hydra_front import Job

    config = base_config()
    key, _, value = override.partition("=")
    import yaml

    values = [yaml.safe_load(part) for part in ([value] if value.startswith("[") else value.split(","))]
    with pytest.raises(ValueError) as caught:
        show(Job([config | {key: v} for v in values], tmp_path / "out", []))
    assert str(caught.value).startswith(told) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def base_config():
    import yaml

    config = yaml.safe_load((ROOT / "conf" / "capacity.yaml").read_text())
    groups = {name: choice for entry in config.pop("defaults") if isinstance(entry, dict)
              for name, choice in entry.items() if "hydra" not in name}  # fmt: skip
    del config["hydra"]
    return config | groups | {"wanted": [8]}


@pytest.mark.slow
def test_the_application_refuses_bad_input_in_one_line(tmp_path):
    result = run("key_dim=8", "trials=0", f"hydra.run.dir={tmp_path / 'out'}")
    assert result.returncode == 1
    assert result.stderr == "error: trials must be an integer of at least 1, got 0\n"
    assert not (tmp_path / "out").exists()
