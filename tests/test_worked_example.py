"""The notes' example: what is told is what is computed, and closed form and measurement agree to rounding."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from capmem import figures
from capmem.worked_example import REPEATED, ThreePairs, tell
from tests.conftest import ROOT


def reading(example, memory, query, pairs=3):
    (found,) = [r for r in example.readings() if (r["memory"], r["query"], r["pairs"]) == (memory, query, pairs)]
    return found


@pytest.mark.parametrize("c", [0.0, 0.3, 0.6, 0.95])
def test_closed_form_and_measurement_agree_to_rounding(c):
    for r in ThreePairs(c).readings():
        for j in (1, 2, 3):
            assert r[f"v{j}"] == pytest.approx(r[f"closed_v{j}"], abs=1e-12)


def test_two_orthogonal_keys_are_read_exactly_and_the_third_mixes_in():
    example = ThreePairs(0.6)
    for query, shares in (("k1", (1, 0)), ("k2", (0, 1))):
        r = reading(example, "hebbian", query, pairs=2)
        assert (r["v1"], r["v2"], r["error"]) == (*shares, 0)
    after = reading(example, "hebbian", "k1")
    assert (after["v1"], after["v2"]) == (1, 0)
    assert after["v3"] == pytest.approx(0.6, abs=1e-15)
    assert (after["signal"], after["crosstalk"]) == (1, pytest.approx(0.6))
    assert reading(example, "hebbian", "k2")["error"] == 0


def test_the_keys_are_what_they_are_said_to_be():
    gram = ThreePairs(0.3).keys @ ThreePairs(0.3).keys.T
    np.testing.assert_allclose(gram, [[1, 0, 0.3], [0, 1, 0], [0.3, 0, 1]], atol=1e-15)


def test_the_cures_cure():
    example = ThreePairs(0.6)
    hebbian = reading(example, "hebbian", "k1")["error"]
    for name in (REPEATED, "least squares", "squared kernel", example.softmax):
        assert reading(example, name, "k1")["error"] < hebbian / 2
    assert reading(example, "delta rule", "k3")["error"] < 1e-28
    assert reading(example, "delta rule", "k1")["error"] > hebbian


@pytest.mark.parametrize(("c", "told"), [(0.6, "v1 + 0.6 v3"), (0.25, "v1 + 0.25 v3"), (0.0, "v1:")])
def test_the_text_tells_the_numbers(c, told):
    assert f"Reading k1 now gives {told}" in tell(ThreePairs(c))


def test_the_figure_holds_every_reading():
    grid = figures.worked_example(ThreePairs(0.6))
    assert len(grid.table) == 2 + 3 * len(ThreePairs().memories())
    widths = [bar.get_width() for bar in grid.axes[0, 1].patches]
    assert any(w == pytest.approx(0.6) for w in widths)
    assert not any(
        w == pytest.approx(0.6)
        for w in [b.get_width() for b in figures.worked_example(ThreePairs(0.3)).axes[0, 1].patches]
    )


@pytest.mark.parametrize(("field", "value"), [("cosine", 1.0), ("cosine", -0.1), ("beta", 0.0)])
def test_a_number_out_of_range_is_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be"):
        dataclasses.replace(ThreePairs(), **{field: value})


def run(*overrides):
    command = [sys.executable, "-m", "analyses.worked_example", *map(str, overrides)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_the_application_prints_and_draws_it(tmp_path):
    result = run("cosine=0.5", f"hydra.run.dir={tmp_path}")
    assert result.returncode == 0, result.stderr
    assert "v1 + 0.5 v3" in result.stdout
    assert {p.suffix for p in tmp_path.iterdir()} == {".png", ".svg", ".pdf", ".csv", ".yaml"}
    assert run("cosine=0.5", f"hydra.run.dir={tmp_path}").returncode == 0  # its own folder again


def test_the_application_refuses_a_cosine_out_of_range(tmp_path):
    result = run("cosine=1.5", f"hydra.run.dir={tmp_path / 'out'}")
    assert result.returncode == 1
    assert result.stderr == "error: cosine must be a number of at least 0, below 1, got 1.5\n"
    assert not (tmp_path / "out").exists()
