"""Any metric over any two axes: stored sweeps, axes that are left over, colour scales, contours, and the sentences."""

import numpy as np
import pandas as pd
import pytest

from capmem import capacity, figures
from capmem.studies import Options
from capmem.studies.heatmap import STUDY, Heatmap, draw, finding, planned, points
from capmem.sweeps.folder import run_records
from capmem.sweeps.hydra_front import Job
from tests.synthetic_table import table as synthetic

ERROR = "scale_optimal_error"
SMALL = {"key_dim": (8, 16), "num_pairs": (2, 8, 64), "feature_maps": ("identity", "relu"), "value_dim": 8, "trials": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sweep that is stored."""
    where = tmp_path_factory.mktemp("sweep")
    asked = Heatmap(**SMALL, correlations=(0.0, 0.9))
    STUDY.source.table(asked, where, Options(workers=1))
    return where


def of(folder, **asked):
    return STUDY.source.table(Heatmap(folder=str(folder), **asked), folder, Options()).frame


def words(grid):
    return [text.get_text() for text in grid.figure.legends[0].get_texts()] if grid.figure.legends else []


def test_a_stored_sweep_is_drawn_over_any_axes_without_computing(folder, monkeypatch):
    monkeypatch.setattr("capmem.sweeps.engine.run", None)
    grid = draw(of(folder, x="keys.correlation", y="key_dim", facet_row="num_pairs", metric="top1_accuracy"))
    assert grid.axes.shape == (3, 2)
    assert len(grid.table) == 2 * 2 * 2 * 3
    assert grid.axes[2, 0].get_xlabel() == "key correlation"


def test_an_axis_that_is_left_over_becomes_the_rows(folder):
    frame = of(folder, x="keys.correlation", y="num_pairs")
    assert frame["shown_facet_row"].unique().tolist() == ["key_dim"]
    assert draw(frame).axes.shape == (2, 2)


def test_two_axes_that_are_left_over_are_refused_before_anything_is_computed(tmp_path):
    job = Job([{"facet": None, "correlations": [0.0, 0.5]}], tmp_path / "out", [])
    with pytest.raises(ValueError, match="average over different feature_map, keys.correlation: make it x, y, facet"):
        STUDY.show(job)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metric": "accuracy"}, "metric 'accuracy' does not exist. Did you mean 'top1_accuracy'"),
        ({"x": "key_dimm"}, "x 'key_dimm' does not exist. Did you mean 'key_dim'"),
        ({"x": "status"}, "x 'status' does not exist"),
        ({"folder": "nowhere"}, "folder must be the folder of a sweep, got 'nowhere'"),
        ({"x": "num_pairs"}, "x, y, facet, facet_row must be different columns"),
        ({"correlations": [1.5]}, "correlation must be"),
        ({"scale": "cubic"}, "scale must be one of auto, linear, log"),
        ({"threshold": float("inf")}, "threshold must be"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_folder(change, told, tmp_path):
    with pytest.raises(ValueError, match=told) as error:
        STUDY.show(Job([change], tmp_path / "out", []))
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "names"),
    [({"key_dim": [64]}, "key_dim"), ({"feature_maps": ["relu"], "trials": 2}, "feature_maps, trials")],
)
def test_settings_of_a_sweep_beside_a_stored_one_are_refused(given, names, folder, tmp_path):
    with pytest.raises(ValueError, match=f"^{names} cannot be set beside folder=.*: that sweep is drawn whole$"):
        STUDY.show(Job([{"folder": str(folder), "metric": "top1_accuracy"} | given], tmp_path / "out", []))
    assert not (tmp_path / "out").exists()


def test_the_planned_table_has_the_columns_that_come_of_it(folder):
    asked = Heatmap(**SMALL)
    there = of(folder)
    assert set(planned(asked).columns) - {"keys.correlation"} <= set(there.columns)
    assert len(planned(asked)) == sum(len(p.num_pairs) for p in points(asked))


def test_the_sentences_follow_the_table(folder):
    first = of(folder, x="key_dim", y="num_pairs", facet_row="keys.correlation")
    held = first[first["keys.correlation"] == 0].drop(columns="keys.correlation").assign(shown_facet_row=None)
    told = finding(held)
    assert told.startswith("N* (scale-optimal error <= 0.5) from key_dim = 8 to 16: identity ")
    curve = held[(held["feature_map"] == "identity") & (held["key_dim"] == 8)]
    expected = capacity.from_table(curve, capacity.Criterion(ERROR, 0.5), ["key_dim"])["pairs"].iloc[0]
    assert f"identity {expected:.1f}".removesuffix(".0") in told
    made = held.copy()
    made.loc[(made["feature_map"] == "identity"), ERROR] = 0.00123
    told = finding(made)
    assert "identity >= 64 to >= 64" in told and "goes from 0.00123 (" in told
    made[f"theory_{ERROR}"] = made[ERROR] / 1.5
    assert "is 50.0% away in the median cell" in finding(made)
    made.loc[made["num_pairs"] == 8, "status"] = "failed"
    assert "4 cells hold no number." in finding(made)


def test_the_sentence_of_other_axes_tells_the_ends(folder):
    frame = of(folder, x="keys.correlation", y="key_dim", facet="feature_map", facet_row="num_pairs")
    assert finding(frame).startswith("The mean scale-optimal error goes from 0.")
    none = finding(of(folder, threshold=None, facet_row="keys.correlation"))
    assert "N*" not in none


def test_one_command_draws_several_metrics_from_one_sweep(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr("capmem.studies.frame.save", lambda grid, folder, stem: drawn.update({stem: grid}))
    configs = [{k: list(v) if isinstance(v, tuple) else v for k, v in SMALL.items()} | {"metric": m, "workers": 1}
               for m in (ERROR, "signal_to_noise")]  # fmt: skip
    assert STUDY.show(Job(configs, tmp_path, []))
    assert drawn.keys() == {f"heatmap_metric={ERROR}", "heatmap_metric=signal_to_noise"}
    assert [record.slabs for record in run_records(tmp_path)] == [4, 0]  # the second found everything


@pytest.fixture(scope="module")
def plain():
    return synthetic(correlations=(0.0,), trials=4)


def test_a_level_of_the_metric_is_a_line_over_two_other_numbers():
    frame = synthetic(maps=("identity",), num_pairs=(64,), trials=4, noise=0.0)
    grid = figures.heatmap(frame, x="keys.correlation", y="key_dim", facet=None)
    assert words(grid) == ["scale-optimal error = 0.5", "scale-optimal error = 0.5, closed form"]
    measured, predicted = (c for c in grid.axes[0, 0].collections if hasattr(c, "levels"))
    for contour in (measured, predicted):
        (path,) = contour.get_paths()
        x, y = path.vertices.T
        image = frame.groupby(["key_dim", "keys.correlation"])[ERROR].mean().unstack().to_numpy()
        j, i = np.minimum(x.astype(int), 2), np.minimum(y.astype(int), 2)
        u, w = x - j, y - i
        there = (image[i, j] * (1 - u) + image[i, j + 1] * u) * (1 - w) + (
            image[i + 1, j] * (1 - u) + image[i + 1, j + 1] * u
        ) * w
        np.testing.assert_allclose(there, 0.5, atol=1e-9)


def test_there_is_no_level_over_names_or_of_another_metric(plain):
    frame = plain[plain["num_pairs"] == 64]
    assert words(figures.heatmap(frame, x="key_dim", y="feature_map", facet=None)) == []
    assert words(figures.heatmap(frame, x="key_dim", y="feature_map", facet=None, contours=None)) == []


def test_an_exact_zero_on_a_logarithmic_scale_has_a_colour(plain):
    frame = plain.copy()
    one = (frame["num_pairs"] == 8) & (frame["key_dim"] == 64) & (frame["feature_map"] == "identity")
    frame.loc[one, "relative_squared_error"] = 0.0
    grid = figures.heatmap(frame, value="relative_squared_error")
    meshes = [ax.collections[0] for ax in grid.axes.flat]
    assert type(meshes[0].norm).__name__ == "LogNorm"
    for mesh in meshes:
        assert not np.ma.getmaskarray(mesh.norm(mesh.get_array())).any()
    assert grid.table.loc[grid.table["relative_squared_error"] == 0, "state"].tolist() == ["ok"]


def test_infinite_cells_are_told_apart_from_those_that_are_no_number(plain):
    for value, state in ((np.inf, "infinite"), (np.nan, "not finite")):
        frame = plain.copy()
        frame.loc[(frame["num_pairs"] == 8) & (frame["key_dim"] == 64), "signal_to_noise"] = value
        grid = figures.heatmap(frame, value="signal_to_noise")
        assert grid.table["state"].value_counts()[state] == 4
        assert state in words(grid)
        assert [len(ax.patches) for ax in grid.axes.flat] == [1] * 4


def test_one_finite_trial_makes_a_cell_finite(plain):
    frame = plain.copy()
    frame.loc[(frame["num_pairs"] == 8) & (frame["trial"] > 0), "signal_to_noise"] = np.inf
    assert set(figures.heatmap(frame, value="signal_to_noise").table["state"]) == {"ok"}


@pytest.mark.parametrize(
    ("scale", "value", "kind"),
    [
        ("auto", ERROR, "Normalize"),
        ("log", ERROR, "LogNorm"),
        ("auto", "relative_squared_error", "LogNorm"),
        ("linear", "relative_squared_error", "Normalize"),
    ],
)
def test_the_colour_scale_is_the_one_asked_for_and_shared(plain, scale, value, kind):
    grid = figures.heatmap(plain, value=value, scale=scale)
    meshes = [ax.collections[0] for ax in grid.axes.flat]
    assert {type(mesh.norm).__name__ for mesh in meshes} == {kind}
    assert len({mesh.get_clim() for mesh in meshes}) == 1


def test_a_logarithm_of_nothing_positive_is_refused(plain):
    with pytest.raises(ValueError, match="scale must not be log: no mean of relative_squared_error is above 0"):
        figures.heatmap(plain.assign(relative_squared_error=0.0), value="relative_squared_error", scale="log")


def test_one_value_for_all_cells_stands_in_the_middle_of_its_scale(plain):
    for scale in ("linear", "log"):
        grid = figures.heatmap(plain.assign(relative_squared_error=7.0), value="relative_squared_error", scale=scale)
        assert grid.axes[0, 0].collections[0].norm(7.0) == pytest.approx(0.5)


def test_a_table_of_failures_can_be_drawn_from_the_study(plain):
    shown = {"metric": ERROR, "x": "key_dim", "y": "num_pairs", "facet": "feature_map", "facet_row": None,
             "threshold": 0.5, "scale": "auto"}  # fmt: skip
    frame = plain.assign(**{f"shown_{k}": v for k, v in shown.items()})
    frame.loc[frame["feature_map"] == "relu", "status"] = "failed"
    grid = draw(frame)
    assert (grid.table["state"] == "failed").sum() == 4 * 8
    assert "32 cells hold no number." in finding(frame)
    assert isinstance(grid.table, pd.DataFrame)
