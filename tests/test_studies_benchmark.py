"""The benchmark times what it says: the loop is the sweep written plainly, and ratios are those of its rows."""

import dataclasses

import numpy as np
import pytest

from capmem.schema import construct
from capmem.studies import Options
from capmem.studies._plain_loop import MAPS, Measured, plain_loop
from capmem.studies._timings import largest_differences, time_slabs
from capmem.studies.benchmark import LOOP, PRODUCTS, SLABS, STUDY, SWEEP, Benchmark, finding, overrides, points

TINY = Benchmark(
    key_dims=(8,), num_pairs=(4, 70), correlations=(0.5,), value_dim=8, trials=3, loop_trials=2, processes=(1,),
    torch_devices=(), feature_maps=tuple(MAPS),
)  # fmt: skip


def loop(settings, dtype="float64"):
    names = ("key_dims", "feature_maps", "correlations", "num_pairs", "value_dim", "seed")
    axes = {name: getattr(settings, name) for name in names}
    return dict(plain_loop(dtype=dtype, trials=settings.loop_trials, **axes))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    one = dataclasses.replace(TINY, feature_maps=("relu",))
    return STUDY.source.table(one, tmp_path_factory.mktemp("benchmark"), Options()).frame


def test_the_plain_loop_gives_the_numbers_of_the_slabs_row_by_row():
    expected = loop(TINY)
    _, found = time_slabs(points(TINY), 1, TINY.loop_trials)
    assert found.keys() == expected.keys()
    assert len(found) == len(MAPS) * 2 * 2
    differences = largest_differences(found, expected)
    assert max(differences[:3]) < 1e-4
    assert differences.top1_accuracy <= 1 / 4


@pytest.mark.parametrize("name", Measured._fields[:3])
def test_numbers_that_differ_are_refused(name):
    expected = loop(dataclasses.replace(TINY, feature_maps=("relu",)))
    wrong = {cell: row._replace(**{name: getattr(row, name) * 1.01}) for cell, row in expected.items()}
    with pytest.raises(RuntimeError, match=name):
        largest_differences(wrong, expected)


def test_another_map_is_noticed():
    expected = loop(dataclasses.replace(TINY, feature_maps=("relu",)))
    other = loop(dataclasses.replace(TINY, feature_maps=("elu_plus_one",)))
    wrong = {cell._replace(feature_map="relu"): row for cell, row in other.items()}
    with pytest.raises(RuntimeError, match="differs"):
        largest_differences(wrong, expected)


def test_every_part_is_timed_and_all_rows_are_counted(table):
    rows = dict(zip(table["timed"], table["rows"], strict=True))
    assert rows[LOOP] == 2 * 2
    assert rows[PRODUCTS] == rows[SLABS] == rows[SWEEP] == 2 * 3
    assert (table[["seconds", "ms_per_row", "rows_per_s"]] > 0).all(axis=None)
    np.testing.assert_allclose(table["ms_per_row"] * table["rows_per_s"], 1e3)


def test_the_finding_is_the_ratio_of_its_rows(table):
    assert finding(table).count("\n") == 2 + len(table)
    each = dict(zip(table["timed"], table["ms_per_row"], strict=True))
    slower = table.copy()
    slower.loc[table["timed"] == SLABS, "ms_per_row"] = 7 * each[PRODUCTS]
    slower.loc[table["timed"] == SWEEP, "ms_per_row"] = each[LOOP] / 3
    assert "with all its N and trials) take 7.00 times" in finding(slower)
    assert "plain NumPy loop: 3.00 with 1 workers" in finding(slower)


def test_the_sweep_that_is_timed_is_that_of_the_slabs():
    asked = dict(argument.split("=", 1) for argument in overrides(TINY))
    (one,) = points(dataclasses.replace(TINY, feature_maps=("dpfp",)))
    assert asked["key_dim"] == "8" and asked["keys.correlation"] == "0.5"
    assert asked["num_pairs"] == str(list(one["num_pairs"])).replace(" ", "")
    assert [asked[k] for k in ("value_dim", "trials", "seed", "key_scale")] == ["8", "3", "0", "sqrt_dim"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"loop_trials": 65}, "loop_trials must be at most trials"),
        ({"feature_maps": ("rleu",)}, "Did you mean 'relu'"),
        ({"num_pairs": (8192,)}, "num_pairs must be at most 4096"),
        ({"processes": ()}, "processes must be"),
    ],
    ids=str,
)
def test_settings_out_of_range_give_one_line(changes, told):
    with pytest.raises(ValueError, match=told) as error:
        construct(Benchmark, changes)
    assert "\n" not in str(error.value)
