"""Complexity: what is counted crosses where it is said to, what is measured is measured, and the sentence follows."""

import time

import numpy as np
import pandas as pd
import pytest

from capmem import figures
from capmem.attention import cost
from capmem.studies.complexity import Complexity, best_times, finding, measured_crossing, peak_bytes, rows

SMALL = Complexity(key_dim=8, value_dim=4, num_pairs=(4, 64), chunk_size=4, repetitions=1, dtype="float64")


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(rows(SMALL))


def power_laws(seconds):
    """A table of times that are exact powers of N."""
    counts = [16, 32, 64, 128]
    return pd.DataFrame(
        [{"num_pairs": n, "form": form, "seconds": of(n)} for n in counts for form, of in seconds.items()]
    )


def test_all_forms_compute_the_same(table):
    assert table["difference"].max() < 1e-13
    assert set(table["form"]) == {"softmax", "left", "right", "quadratic", "recurrent", "chunked"}


def test_the_masked_and_the_chunked_form_take_equal_flops_at_the_causal_crossing():
    row = next(iter(rows(Complexity(key_dim=8, value_dim=8, num_pairs=(4, 8), chunk_size=4, repetitions=1))))
    n = int(row["causal_crossing"])
    assert (row["crossing"], n) == (8, 12)
    quadratic, chunked = (cost(n, 8, 8, form=form, chunk_size=4).flops for form in ("quadratic", "chunked"))
    assert quadratic == chunked
    assert cost(8, 8, 8, form="left").flops == cost(8, 8, 8, form="right").flops


def test_times_that_are_powers_of_n_cross_where_the_powers_do():
    assert measured_crossing(power_laws({"a": lambda n: 2.0 * n**2, "b": lambda n: 90.0 * n}), "a", "b") == (
        pytest.approx(45, rel=1e-12)
    )


def test_a_crossing_outside_what_was_measured_is_told_as_such():
    ahead = power_laws({"a": lambda n: 2.0 * n, "b": lambda n: 1.0 * n})
    assert measured_crossing(ahead, "a", "b") == 0
    assert measured_crossing(ahead, "b", "a") == float("inf")


def test_of_several_crossings_the_last_one_counts():
    """Noise at one small N must not make the fast form ahead for good."""
    times = power_laws({"a": lambda n: float(n**2), "b": lambda n: 40.0 * n})
    times.loc[(times["num_pairs"] == 16) & (times["form"] == "a"), "seconds"] = 1e9
    assert measured_crossing(times, "a", "b") == pytest.approx(40)


def test_the_best_timing_counts():
    calls = []

    def settles():
        calls.append(1)
        time.sleep(0.02 if len(calls) <= 2 else 0)

    assert best_times({"settles": settles}, repetitions=4)["settles"] < 0.01


def test_peak_memory_is_what_lives_at_the_same_time():
    def one_after_the_other():
        for _ in range(3):
            np.ones(250_000)

    assert 2e6 <= peak_bytes(one_after_the_other) < 2.1e6
    assert 4e6 <= peak_bytes(lambda: [np.ones(250_000), np.ones(250_000)]) < 4.1e6


def test_the_left_order_holds_all_weights_and_the_right_one_does_not(table):
    last = table[table["num_pairs"] == 64].set_index("form")
    assert last.loc["left", "peak_bytes"] > 64 * 64 * 8 > last.loc["right", "peak_bytes"]


def test_the_sentence_follows_the_table(table):
    made = table.assign(seconds=1.0)
    assert "measured, it is not faster up to there" in finding(made)
    made.loc[made["form"].isin(["left", "quadratic"]), "seconds"] = 37.0
    told = finding(made)
    assert "measured, it is faster at every N" in told and told.count("37 times less time") == 2
    made.loc[made["form"] == "left", "flops"] = 9 * made.loc[made["form"] == "right", "flops"].to_numpy()
    assert "At N = 64 it takes 9 times fewer flops" in finding(made)
    assert "from N = 123 (d" in finding(made.assign(crossing=123.0))


def test_the_figure_draws_every_form_and_marks_where_flops_cross(table):
    grid = figures.complexity(table)
    lines = {(float(x[0]), float(x[1])) for line in grid.axes[0, 0].lines if len(x := line.get_xdata()) == 2}
    crossing = table["crossing"].iloc[0]
    assert (crossing, crossing) in lines
    drawn = [
        line
        for row in grid.axes[:, 0]
        for line in row.lines
        if len(line.get_xdata()) == 2 and line.get_marker() != "None"
    ]
    assert len(drawn) == 6


@pytest.mark.parametrize(("change", "told"), [({"num_pairs": (4,)}, "num_pairs"), ({"repetitions": 0}, "repetitions")])
def test_settings_out_of_range_are_refused(change, told):
    with pytest.raises(ValueError, match=f"^{told} must be"):
        Complexity(**change)
