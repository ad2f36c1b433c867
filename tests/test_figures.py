"""Figures: they show the numbers of the table, say what is missing, and can be read."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from capmem import figures, results
from capmem.capacity import Criterion, from_table
from tests.synthetic_table import MAPS, table

ERROR = "scale_optimal_error"


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def plain(frame):
    """The part of the table without correlation: maps, key dimensions and pairs."""
    return frame[frame["keys.correlation"] == 0.0]


def labels(grid):
    return [text.get_text() for legend in grid.figure.legends for text in legend.get_texts()]


def hatches(grid):
    return {patch.get_hatch() for ax in grid.axes.flat for patch in ax.patches}


def caption(grid):
    return " ".join(grid.figure.get_supxlabel().replace("\u00a0", " ").split())


def visible_texts(figure):
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


def spoil(frame, rows, **values):
    return frame.assign(**{k: frame[k].mask(rows, v) for k, v in values.items()})


@pytest.fixture(scope="module")
def aged():
    """A table by age: two maps, three N, four bins; the error is the age over N, and more for relu."""
    rows = [
        {"feature_map": phi, "key_dim": 16, "num_pairs": n, "trial": trial, "status": "ok", "age_bin": b,
         "age_low": b * n // 4, "age_high": (b + 1) * n // 4 - 1, ERROR: b / 4 + (phi == "relu") / 10 + trial / 100}
        for phi in ("identity", "relu") for n in (16, 64, 256) for b in range(4) for trial in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_age_curves_have_a_line_for_each_number_of_pairs_and_a_panel_for_each_map(aged):
    grid = figures.age_curves(aged)
    assert [ax.get_title() for ax in grid.axes.flat] == ["identity", "relu"]
    lines = [line for line in grid.axes[0, 1].lines if len(line.get_xdata())]
    assert [list(line.get_xdata())[0] for line in lines] == [2.5, 8.5, 32.5]  # newest bin: ages 0 to N/4 - 1, from 1
    for line in lines:
        np.testing.assert_allclose(line.get_ydata(), [0.105, 0.355, 0.605, 0.855])
    assert labels(grid) == ["stored pairs $N$:", "16", "64", "256"]
    assert grid.axes[0, 0].get_xscale() == "log" and grid.axes[0, 0].get_xlabel() == "age (1: the newest pair)"
    with pytest.raises(ValueError, match="average over different feature_map"):
        figures.age_curves(aged.assign(key_dim=aged["num_pairs"]), facet="key_dim", facet_row="num_pairs", line=None)


def test_heatmap_cells_are_the_means_over_trials(plain):
    grid = figures.heatmap(plain)
    by = ["feature_map", "key_dim", "num_pairs"]
    expected = results.aggregate(plain, by).set_index(by)[ERROR]
    pd.testing.assert_series_equal(grid.table.set_index(by)[ERROR].sort_index(), expected.sort_index())
    image = grid.axes[0, 2].collections[0].get_array()
    assert grid.axes[0, 2].get_title() == "identity"
    np.testing.assert_allclose(image[3], expected.loc["identity", :, 64].sort_index())


def test_a_changed_number_changes_the_table_of_the_figure(plain):
    changed = plain.copy()
    changed.loc[changed.index[0], ERROR] += 0.01
    before, after = figures.heatmap(plain).table, figures.heatmap(changed).table
    assert (before[ERROR] != after[ERROR]).sum() == 1


def test_a_complete_table_needs_no_hatch(plain):
    grid = figures.heatmap(plain)
    assert hatches(grid) == set()
    assert not {"not run", "skipped", "failed", "not finite"} & set(labels(grid))
    assert "left out" not in caption(grid)


@pytest.mark.parametrize(
    ("state", "values"),
    [
        ("failed", {"status": "failed"}),
        ("skipped", {"status": "skipped"}),
        ("not finite", {ERROR: np.inf}),
        ("not finite", {ERROR: np.nan}),
        ("not run", None),
    ],
)
def test_a_cell_without_a_number_is_hatched_and_explained(plain, state, values):
    rows = (plain["feature_map"] == "relu") & (plain["key_dim"] == 32) & (plain["num_pairs"] == 64)
    grid = figures.heatmap(plain[~rows] if values is None else spoil(plain, rows, **values))
    assert [len(ax.patches) for ax in grid.axes.flat] == [0, 0, 0, 1]
    assert grid.axes[0, 3].patches[0].get_xy() == (1 - 0.5, 3 - 0.5)
    assert set(labels(grid)) & {"not run", "skipped", "failed", "not finite"} == {state}
    assert grid.table["state"].value_counts()[state] == 1
    assert state == "not run" or f"8 {state}" in caption(grid)


def test_every_kind_of_missing_cell_has_a_hatch_of_its_own(plain):
    grids = [
        figures.heatmap(spoil(plain, plain["num_pairs"] == 8, **values))
        for values in ({"status": "failed"}, {"status": "skipped"}, {ERROR: np.nan})
    ]
    grids.append(figures.heatmap(plain[(plain["num_pairs"] != 8) | (plain["key_dim"] > 16)]))
    assert len(set.union(*map(hatches, grids))) == 4


def test_a_table_where_everything_failed_is_drawn_all_hatched(plain):
    grid = figures.heatmap(plain.assign(status="failed"))
    assert sum(len(ax.patches) for ax in grid.axes.flat) == len(grid.table) == 4 * 4 * 8


def test_all_panels_share_one_colour_scale(plain):
    grid = figures.heatmap(plain)
    assert {ax.collections[0].get_clim() for ax in grid.axes.flat} == {(0.0, 1.0)}
    wide = figures.heatmap(plain, value="relative_squared_error")
    limits = {ax.collections[0].get_clim() for ax in wide.axes.flat}
    assert len(limits) == 1 and limits != {(0.0, 1.0)}
    assert type(wide.axes[0, 0].collections[0].norm).__name__ == "LogNorm"


def test_the_capacity_line_runs_where_the_estimates_are(plain):
    grid = figures.heatmap(plain, contours=Criterion(threshold=0.4))
    found = from_table(plain, Criterion(threshold=0.4), ["feature_map", "key_dim"])
    found = found[found["feature_map"] == "identity"]
    solid, dashed = (line for line in grid.axes[0, 2].lines if len(line.get_xdata()) == 4)
    np.testing.assert_allclose(solid.get_ydata(), np.log2(found["pairs"] / 8))
    np.testing.assert_allclose(dashed.get_ydata(), np.log2(found["theory_pairs"] / 8))
    assert solid.get_linestyle() == "-" and dashed.get_linestyle() == "--"
    assert "$N^*$: scale-optimal error ≤ 0.4" in labels(grid)


def test_the_capacity_line_follows_when_pairs_run_across(plain):
    upright, turned = figures.heatmap(plain), figures.heatmap(plain, x="num_pairs", y="key_dim")
    np.testing.assert_array_equal(upright.axes[0, 0].lines[0].get_ydata(), turned.axes[0, 0].lines[0].get_xdata())


def test_a_capacity_below_the_grid_is_marked_and_explained(plain):
    grid = figures.heatmap(plain[plain["feature_map"] == "elu_plus_one"])
    assert "$N^*$ below the grid" in labels(grid)
    fine = figures.heatmap(plain[plain["feature_map"] == "identity"])
    assert "$N^*$ below the grid" not in labels(fine)


def test_no_capacity_line_without_a_criterion(plain):
    grid = figures.heatmap(plain, contours=None)
    assert not any(ax.lines for ax in grid.axes.flat) and not labels(grid)


def test_curves_are_means_with_markers_and_predictions_dashed_without(frame):
    grid = figures.interference_curves(frame, facet_row="key_dim")
    panel = grid.axes[2, MAPS.index("identity") + 2]  # titles are sorted by name
    assert grid.axes[0, 2].get_title() == "identity"
    measured, predicted = panel.lines[0], panel.lines[1]
    one = (frame["feature_map"] == "identity") & (frame["key_dim"] == 64) & (frame["keys.correlation"] == 0.0)
    means = frame[one].groupby("num_pairs")
    np.testing.assert_allclose(measured.get_ydata(), means[ERROR].mean())
    np.testing.assert_allclose(predicted.get_ydata(), means["theory_scale_optimal_error"].first())
    assert (measured.get_linestyle(), predicted.get_linestyle()) == ("-", "--")
    assert measured.get_marker() != "None" and predicted.get_marker() == "None"
    assert measured.get_color() == predicted.get_color()


def test_every_line_has_its_own_marker_and_shade(frame):
    grid = figures.interference_curves(frame[frame["key_dim"] == 64])
    measured = [line for line in grid.axes[0, 0].lines if line.get_linestyle() == "-"]
    assert len({line.get_marker() for line in measured}) == len({line.get_color() for line in measured}) == 4


def test_the_band_is_the_bootstrap_interval_and_missing_for_one_trial(frame):
    part = frame[(frame["key_dim"] == 64) & (frame["feature_map"] == "relu")]
    grid = figures.interference_curves(part)
    band = grid.axes[0, 0].collections[0].get_paths()[0].vertices[:, 1]
    first = grid.table[grid.table["keys.correlation"] == 0.0]
    assert {first[f"{ERROR}_low"].iloc[2], first[f"{ERROR}_high"].iloc[2]} <= set(band)
    assert "Points: mean of 8 trials; band: 95% bootstrap interval of the mean; dashed: closed form" in caption(grid)
    single = figures.interference_curves(part[part["trial"] == 0])
    assert caption(single).startswith("Points: one trial; dashed")


def test_no_dashes_are_promised_where_there_is_no_prediction(frame):
    grid = figures.interference_curves(frame[frame["feature_map"] == "dpfp"])
    assert "closed form" not in labels(grid) and "dashed" not in caption(grid)


def test_a_failed_checkpoint_breaks_its_line(frame):
    part = frame[(frame["key_dim"] == 64) & (frame["feature_map"] == "relu")]
    grid = figures.interference_curves(spoil(part, part["num_pairs"] == 64, status="failed"))
    assert np.isnan(grid.axes[0, 0].lines[0].get_ydata()).tolist() == [False] * 3 + [True] + [False] * 4
    assert "32 failed" in caption(grid)


def test_keys_without_a_correlation_are_a_line_named_by_their_law(frame):
    part = frame[(frame["feature_map"] == "identity") & (frame["key_dim"] == 64)]
    other = part[part["keys.correlation"] == 0.0].assign(**{"keys": "gaussian", "keys.correlation": np.nan})
    grid = figures.interference_curves(pd.concat([part, other]))
    assert {"key correlation:", "0", "0.3", "0.6", "0.9", "gaussian"} <= set(labels(grid))


def test_a_table_without_any_correlation_is_one_line(plain):
    part = plain[plain["key_dim"] == 64].assign(**{"keys": "gaussian", "keys.correlation": np.nan})
    grid = figures.interference_curves(part)
    assert {"gaussian", "measured"} <= set(labels(grid))
    assert len(grid.axes[0, 0].lines) == 2


def test_the_caption_names_what_is_held_fixed_and_no_axis(plain):
    words = caption(figures.heatmap(plain[plain["feature_map"] == "relu"]))
    for fact in ("write rule hebbian", "key correlation 0", "value dimension 64", "keys times $"):
        assert fact in words
    assert "key dimension" not in words and "relu" not in words


def test_the_caption_does_not_call_fixed_what_varies_along_an_axis(plain):
    square = plain[plain["feature_map"] == "relu"].assign(value_dim=lambda rows: rows["key_dim"])
    assert "value dimension" not in caption(figures.heatmap(square))


def test_the_default_criterion_draws_no_line_over_another_metric(plain):
    assert not labels(figures.heatmap(plain, value="relative_squared_error"))


def test_a_sign_never_ends_a_line_of_a_caption(plain):
    grid = figures.heatmap(plain[plain["feature_map"] == "relu"])
    figures._grid.add_caption(grid.figure, ["For N = 8."])
    assert grid.figure.get_supxlabel() == "For N\u00a0=\u00a08."


def test_fields_of_a_map_make_panels_of_their_own(plain):
    dpfp = plain[plain["feature_map"] == "dpfp"]
    both = pd.concat([plain, dpfp.assign(**{"feature_map.nu": 2.0})])
    titles = [ax.get_title() for ax in figures.heatmap(both).axes.flat]
    assert titles[:2] == ["dpfp, nu=1", "dpfp, nu=2"]


def test_a_choice_that_is_left_over_makes_rows_with_its_fields(plain):
    one = plain[plain["feature_map"] == "relu"]
    steps = [one.assign(**{"write_rule": "delta", "write_rule.step_size": step}) for step in (0.5, 1.0)]
    assert figures.heatmap(pd.concat([one, *steps])).axes.shape == (3, 1)


def test_one_more_setting_becomes_the_rows_and_two_are_refused(frame):
    grid = figures.heatmap(frame)
    assert grid.axes.shape == (4, 4)
    two = pd.concat([frame, frame.assign(key_norm="none")])
    with pytest.raises(ValueError, match="key_norm, keys.correlation"):
        figures.heatmap(two)


def test_wrong_columns_and_empty_tables_are_refused(plain):
    with pytest.raises(ValueError, match="no column 'error_rate'.*scale_optimal_error"):
        figures.heatmap(plain, value="error_rate")
    with pytest.raises(ValueError, match="no rows"):
        figures.interference_curves(plain[:0])
    with pytest.raises(ValueError, match="one role"):
        figures.heatmap(plain, x="num_pairs")
    with pytest.raises(ValueError, match="finite numbers, got write_rule"):
        figures.interference_curves(plain, x="write_rule", line="num_pairs")


def test_given_axes_are_drawn_on_and_returned(plain):
    left, right = Figure(layout="constrained").subplots(1, 2)
    part = plain[plain["feature_map"] == "identity"]
    assert figures.heatmap(part, ax=left) is left
    assert figures.interference_curves(part[part["key_dim"] == 64], ax=right) is right
    assert right.get_legend() is not None
    with pytest.raises(ValueError, match="feature_map has 4 values"):
        figures.heatmap(plain, ax=left)


@pytest.mark.parametrize("shape", ["one cell", "one column", "numeric facet", "many maps"])
def test_small_and_odd_tables_can_be_drawn(plain, shape):
    one = plain[(plain["feature_map"] == "identity") & (plain["key_dim"] == 64)]
    parts = {
        "one cell": (one[one["num_pairs"] == 64], {}),
        "one column": (one, {}),
        "numeric facet": (plain[plain["feature_map"] == "relu"], {"facet": "value_dim"}),
        "many maps": (pd.concat([one.assign(feature_map=f"map_{i}") for i in range(6)]), {}),
    }
    part, options = parts[shape]
    grid = figures.heatmap(part, **options)
    assert len(grid.figure.axes) == grid.axes.size + 1  # the colour bar
    assert grid._repr_png_().startswith(b"\x89PNG")


def readable(figure):
    """Check that no text is smaller than 8 points or leaves the page, and that no tick labels overlap."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox.padded(2)
    for text in visible_texts(figure):
        assert text.get_fontsize() >= 8, text.get_text()
        box = text.get_window_extent(renderer)
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text.get_text()
    for ax in figure.axes:
        boxes = [t.get_window_extent(renderer) for t in ax.get_xticklabels() if t.get_text()]
        assert all(a.x1 < b.x0 for a, b in zip(boxes, boxes[1:], strict=False))


def test_figures_are_readable(frame, plain):
    mixed = spoil(plain, plain["num_pairs"] == 512, status="failed")
    mixed = spoil(mixed, mixed["num_pairs"] == 1024, status="skipped")
    for grid in (
        figures.heatmap(mixed[mixed["num_pairs"] != 64]),
        figures.heatmap(plain, x="num_pairs", y="key_dim"),
        figures.heatmap(plain.assign(feature_map="positive_random_features_" + plain["feature_map"])),
        figures.interference_curves(frame),
        figures.interference_curves(frame[frame["key_dim"] == 64], value="signal_to_noise"),
    ):
        readable(grid.figure)


def test_the_readability_check_notices_a_clipped_label(plain):
    grid = figures.heatmap(plain)
    grid.figure.text(0.9, 0.5, "far too long a text for this place")
    with pytest.raises(AssertionError, match="far too long"):
        readable(grid.figure)


def test_save_writes_three_formats_and_the_numbers(plain, tmp_path):
    grid = figures.heatmap(plain[plain["feature_map"] == "identity"])
    paths = figures.save(grid, tmp_path / "new", "errors")
    assert [p.name for p in paths] == ["errors.png", "errors.svg", "errors.pdf", "errors.csv"]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == sorted(p.name for p in paths)
    stored = pd.read_csv(paths[3])
    np.testing.assert_allclose(stored[ERROR], grid.table[ERROR])
    assert {"feature_map", "key_dim", "num_pairs", "capacity_pairs", "state"} <= set(stored.columns)


@pytest.mark.slow
def test_the_same_table_gives_the_same_files(plain, tmp_path):
    part = plain[plain["feature_map"] == "identity"]
    first, second = (figures.save(figures.heatmap(part), tmp_path / n, "f") for n in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_a_failed_save_leaves_the_old_file_and_no_rest(plain, tmp_path, monkeypatch):
    grid = figures.heatmap(plain[plain["feature_map"] == "identity"])
    figures.save(grid, tmp_path, "f")
    before = (tmp_path / "f.csv").read_bytes()
    monkeypatch.setattr(pd.DataFrame, "to_csv", lambda self, path, **_: path.write_text("half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        figures.save(grid, tmp_path, "f")
    assert (tmp_path / "f.csv").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4


def test_a_name_with_a_folder_in_it_is_refused(plain, tmp_path):
    with pytest.raises(ValueError, match="plain file name"):
        figures.save(figures.heatmap(plain[:8]), tmp_path, "../f")


def test_drawing_needs_neither_pyplot_nor_a_display(tmp_path):
    code = (
        "import sys; from capmem import figures; from tests.synthetic_table import table;"
        "f = table(maps=('relu',), correlations=(0.0,), trials=2);"
        f"figures.save(figures.heatmap(f), {str(tmp_path)!r}, 'h');"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
