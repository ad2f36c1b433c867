"""The main figures look as they did: panels against small stored pictures, words and numbers against the table.

Panels alone are compared, on a canvas of a fixed size and blurred to 48 x 48 pixels, so that fonts and layout of
another matplotlib do not matter. After a change that is wanted: CAPMEM_BASELINE=write, run, look at tests/baseline.
"""

import os

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.legend import Legend
from matplotlib.text import Text
from PIL import Image

from capmem import figures
from capmem.capacity import from_table
from capmem.figures._palette import _KNOWN, styles
from capmem.figures._words import colours
from capmem.studies import memory_growth, write_rules
from capmem.worked_example import ThreePairs
from tests.conftest import ROOT
from tests.synthetic_table import table
from tests.test_figures import readable

BASELINE = ROOT / "tests" / "baseline"
SIDE, FINE = 48, 144  # pixels of a stored panel, and of a drawn one
LIKE = 0.03  # colours run from 0 to 1; matplotlib 3.9.4 and 3.11.2 differ by 0.000
ERROR, RAW = "scale_optimal_error", "relative_squared_error"


@pytest.fixture(scope="module")
def frame():
    return table(key_dims=(16, 64), correlations=(0.0, 0.6), trials=4)


@pytest.fixture(scope="module")
def growth():
    settings = memory_growth.MemoryGrowth(key_dim=16, value_dim=8, num_pairs=(1, 8, 64), gram_pairs=12, trials=3)
    return pd.DataFrame(memory_growth.rows(settings))


@pytest.fixture(scope="module")
def rules():
    settings = write_rules.WriteRules(
        key_dim=16, value_dim=16, num_pairs=(4, 16, 64), age_pairs=16, age_bins=4, fractions=(0.0, 0.5),
        distinct_keys=(8,), noise_pairs=(8, 16, 32), ridges=(0.0, 0.5), trials=3,
    )  # fmt: skip
    return pd.DataFrame(write_rules.rows(settings))


@pytest.fixture(scope="module")
def capacities(frame):
    return from_table(uncorrelated(frame), by=["feature_map", "key_dim"])


def uncorrelated(frame):
    return frame[frame["keys.correlation"] == 0.0]


DRAWN = {
    "heatmap": lambda get: figures.heatmap(uncorrelated(get("frame"))),
    "interference_curves": lambda get: figures.interference_curves(get("frame")),
    "capacity_curves": lambda get: figures.capacity_curves(get("capacities"), facet=None),
    "memory_growth": lambda get: figures.effective_rank(get("growth")),
    "gram": lambda get: figures.gram_heatmap(get("growth")),
    "write_rules_load": lambda get: figures.error_by_load(get("rules")),
    "worked_example": lambda get: figures.worked_example(ThreePairs()),
}


@pytest.fixture
def draw(request):
    return lambda name: DRAWN[name](request.getfixturevalue)


def panels(grid):
    """Return each panel of a figure, without what is around it, as (SIDE, SIDE, 3) from 0 to 1."""
    figure, axes = grid.figure, [ax for ax in grid.axes.flat if ax.axison]
    figure.set_layout_engine("none")
    figure.set_dpi(72)
    figure.set_size_inches(FINE * len(axes) / 72, FINE / 72)
    for ax in figure.axes:
        ax.set_visible(ax in axes)
    for words in figure.findobj(lambda artist: isinstance(artist, Text | Legend)):
        words.set_visible(False)  # fonts differ by version; words have tests of their own
    for place, ax in enumerate(axes):
        ax.set_aspect("auto")
        ax.set_position((place / len(axes), 0, 1 / len(axes), 1))
    figure.canvas.draw()
    drawn = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3])
    small = drawn.resize((SIDE * len(axes), SIDE), Image.Resampling.BOX)
    return np.split(np.asarray(small) / 255, len(axes), axis=1)


def distance(found, stored):
    """Return the mean difference of the worst fiftieth of the pixels, about a line's worth, in the worst panel."""
    apart = [np.sort(np.abs(a - b).max(axis=2), axis=None) for a, b in zip(found, stored, strict=True)]
    return max(float(pixels[-len(pixels) // 50 :].mean()) for pixels in apart)


def stored(name):
    picture = np.asarray(Image.open(BASELINE / f"{name}.png").convert("RGB")) / 255
    return np.split(picture, picture.shape[1] // SIDE, axis=1)


def write(name, found):
    picture = Image.fromarray((np.concatenate(found, axis=1) * 255).round().astype(np.uint8))
    picture.save(BASELINE / f"{name}.png", optimize=True)


@pytest.mark.parametrize("name", DRAWN)
def test_the_panels_look_as_they_did(name, draw):
    found = panels(draw(name))
    if os.environ.get("CAPMEM_BASELINE") == "write":
        write(name, found)
    assert distance(found, stored(name)) < LIKE


def missing_line(ax):
    max(ax.lines, key=lambda line: len(line.get_xdata())).remove()


def other_colour(ax):
    ax.lines[0].set_color("#AA3377")
    ax.lines[0].set_markerfacecolor("#AA3377")


def no_theory(ax):
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    for line in dashed:
        line.set(linestyle="none")


def other_scale(ax):
    ax.set_xscale("linear")


@pytest.mark.parametrize("spoil", [missing_line, other_colour, no_theory, other_scale])
@pytest.mark.parametrize(
    "name",
    [
        "memory_growth",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("interference_curves", "capacity_curves", "write_rules_load")
        ),
    ],
)
def test_the_comparison_notices_a_spoilt_line(name, spoil, draw):
    grid = draw(name)
    spoil(grid.axes.flat[-1])
    assert distance(panels(grid), stored(name)) > LIKE


@pytest.mark.parametrize("name", ["heatmap", "gram"])
def test_the_comparison_notices_another_colour_map(name, draw):
    grid = draw(name)
    mesh = next(artist for artist in (*grid.axes[0, 0].collections, *grid.axes[0, 0].images))
    mesh.set_cmap("plasma")
    assert distance(panels(grid), stored(name)) > LIKE


def test_the_comparison_notices_one_changed_cell(draw, frame):
    low = (frame["feature_map"] == "identity") & (frame["key_dim"] == 64) & (frame["num_pairs"] == 8)
    grid = figures.heatmap(uncorrelated(frame.assign(**{ERROR: frame[ERROR].mask(low, 1.0)})))
    assert distance(panels(grid), stored("heatmap")) > LIKE


@pytest.mark.parametrize("name", DRAWN)
def test_no_label_is_clipped_and_no_tick_labels_overlap(name, draw):
    figure = draw(name).figure
    hide_ticks_outside(figure)
    readable(figure)


def hide_ticks_outside(figure):
    """Hide labels that matplotlib keeps and does not draw: of ticks beyond the axis, and of axes that are off."""
    figure.draw_without_rendering()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                tick.label1.set_visible(tick.label1.get_visible() and ax.axison and low <= tick.get_loc() <= high)


@pytest.mark.parametrize("name", DRAWN)
def test_legends_lie_beside_the_panels_and_not_on_each_other(name, draw):
    figure = draw(name).figure
    figure.draw_without_rendering()
    boxes = [legend.get_window_extent() for legend in figure.legends]
    assert not any(box.overlaps(ax.get_window_extent()) for box in boxes for ax in figure.axes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


def test_curves_are_the_means_of_the_table(draw, frame):
    grid = draw("interference_curves")
    ok = frame[(frame["feature_map"] == "relu") & (frame["key_dim"] == 16) & (frame["keys.correlation"] == 0.6)]
    expected = [ok[ok["num_pairs"] == n][ERROR].mean() for n in sorted(set(ok["num_pairs"]))]
    drawn = [line.get_ydata() for line in grid.axes.flat[list(sorted(set(frame["feature_map"]))).index("relu")].lines]
    assert any(len(y) == len(expected) and np.allclose(y, expected) for y in drawn)


def test_the_lines_of_write_rules_are_the_means_of_their_rows(draw, rules):
    grid = draw("write_rules_load")
    load = rules[(rules["part"] == "load") & (rules["rule"] == "hebbian")]
    expected = [load[load["num_pairs"] == n][RAW].mean() for n in (4, 16, 64)]
    theory = [load[load["num_pairs"] == n][f"theory_{RAW}"].iloc[0] for n in (4, 16, 64)]
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in grid.axes[0, 0].lines]
    for numbers in (expected, theory):
        assert any(len(y) == 3 and np.allclose(y, numbers) for y in drawn)


def test_the_numbers_beside_a_figure_are_those_in_it(draw):
    grid = draw("capacity_curves")
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in grid.axes[0, 0].lines])
    known = grid.table["pairs"].dropna()
    assert np.isin(known.to_numpy().round(6), drawn.round(6)).all()


def test_a_map_has_one_colour_in_every_figure(draw):
    """In capacity curves, where maps are lines, and in any selection of them."""
    blue = to_rgb(colours(7, ordered=False)[_KNOWN["identity"][0]])
    grid = draw("capacity_curves")
    (legend,) = grid.figure.legends
    named = {t.get_text(): h for t, h in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    assert to_rgb(named["identity"].get_color()) == blue
    for selection in (["identity"], ["dpfp, nu=3", "identity"], ["something else", "identity"]):
        assert to_rgb(styles(selection)["identity"]["color"]) == blue


def seen_as(colour, deficiency):
    """Return a colour as one with this deficiency sees it: linear RGB by the matrices of Machado et al. 2009."""
    matrices = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    }
    return np.clip(np.array(matrices[deficiency]) @ np.array(to_rgb(colour)), 0, 1)


@pytest.mark.parametrize("deficiency", ["protan", "deutan", "tritan"])
def test_colours_of_lines_stay_apart_under_colour_blindness(deficiency):
    seen = [seen_as(colour, deficiency) for colour in colours(7, ordered=False)]
    apart = [np.abs(a - b).sum() for i, a in enumerate(seen) for b in seen[i + 1 :]]
    assert min(apart) > 0.15


def test_the_check_of_colours_knows_a_red_and_a_green_that_fall_together():
    red, green = (0.8, 0.2, 0.2), (0.3, 0.41, 0.19)
    assert np.abs(np.subtract(red, green)).sum() > 0.7
    assert np.abs(seen_as(red, "deutan") - seen_as(green, "deutan")).sum() < 0.05
