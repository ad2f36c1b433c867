"""Grids of the command line: crossed, zipped and joined axes, log-spaced values."""

import itertools

import pytest

from capmem import store
from capmem.sweeps.command_line import grids_of, zips_of
from capmem.sweeps.grid import Grid
from capmem.sweeps.spacing import expanded
from tests.test_app import TINY, done, sweep


def compose(choices):
    keys = {"name": choices.get("keys", "equicorrelated")}
    if keys["name"] == "equicorrelated":
        keys["correlation"] = 0.0
    return {"keys": keys, "feature_map": {"name": choices.get("feature_map", "relu")}, "key_dim": 4, "key_scale": 1.0}


def points(axes, zipped=()):
    groups = frozenset(axes) & {"keys", "feature_map"}
    return list(Grid(axes, groups, compose, zipped).points())


def short(point):
    return (point["feature_map"]["name"], point["key_dim"], point["key_scale"], point["keys"].get("correlation"))


def test_axes_are_crossed():
    found = points({"key_dim": [1, 2], "feature_map": ["relu", "exp"], "keys.correlation": [0.0, 0.5]})
    assert {short(p) for p in found} == {
        (m, d, 1.0, c) for m, d, c in itertools.product(("relu", "exp"), (1, 2), (0.0, 0.5))
    }
    assert len(found) == 8


def test_zipped_axes_run_side_by_side_and_are_crossed_with_the_rest():
    found = points(
        {"key_dim": [1, 2, 2], "key_scale": [5, 6, 7], "keys.correlation": [0.1, 0.2]}, [("key_dim", "key_scale")]
    )
    assert {short(p)[1:] for p in found} == {(d, s, c) for (d, s) in ((1, 5), (2, 6), (2, 7)) for c in (0.1, 0.2)}


def test_a_group_may_be_zipped_with_a_number():
    found = points({"feature_map": ["relu", "exp"], "key_scale": [2, 3]}, [("feature_map", "key_scale")])
    assert [short(p) for p in found] == [("relu", 4, 2, 0.0), ("exp", 4, 3, 0.0)]


def test_a_zipped_axis_that_a_choice_does_not_have_leaves_the_other_one():
    axes = {"keys": ["sphere", "equicorrelated"], "keys.correlation": [0.1, 0.2], "key_dim": [8, 9]}
    found = points(axes, [("keys.correlation", "key_dim")])
    assert sorted((p["keys"]["name"], p["key_dim"]) for p in found) == [
        ("equicorrelated", 8),
        ("equicorrelated", 9),
        ("sphere", 8),
        ("sphere", 9),
    ]


def test_points_do_not_share_what_they_set():
    first, second = points({"keys.correlation": [0.1, 0.2]})
    assert (first["keys"]["correlation"], second["keys"]["correlation"]) == (0.1, 0.2)


@pytest.mark.parametrize(
    ("axes", "zipped", "told"),
    [
        ({"key_dim": [1, 2], "key_scale": [1]}, [("key_dim", "key_scale")], "key_dim has 2, key_scale has 1"),
        ({"key_dim": [1, 2]}, [("key_dim", "key_scale")], "key_scale is given no values"),
        ({"key_dim": [1]}, [("key_dim",)], "two or more axes"),
        ({"key_dim": [1], "key_scale": [1]}, [("key_dim", "key_scale"), ("key_scale", "key_dim")], "in one zip only"),
    ],
)
def test_a_zip_that_cannot_be_is_refused(axes, zipped, told):
    with pytest.raises(ValueError, match=told):
        points(axes, zipped)


@pytest.mark.parametrize(
    ("values", "zips"),
    [
        ([["a", "b"]], [["a", "b"]]),
        ([[["a", "b"], ["c", "d"]]], [["a", "b"], ["c", "d"]]),
        ([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "d"]]),
    ],
)
def test_one_zip_or_several(values, zips):
    assert zips_of(values) == zips


def test_a_union_holds_what_stands_before_the_first_plus_in_all_grids():
    words = ["-m", "trials=3", "key_dim=1", "+", "key_dim=2", "workers=1", "+", "key_dim=3", "hydra.sweep.dir=x"]
    first, second, third = grids_of(words)
    assert first == ["-m", "trials=3", "key_dim=1", "workers=1", "hydra.sweep.dir=x"]
    assert (second, third) == (["key_dim=2"], ["key_dim=3"])


@pytest.mark.parametrize("words", [["key_dim=1", "+"], ["+", "+", "key_dim=1"], ["a=1", "+", "workers=2"]])
def test_a_plus_with_no_grid_behind_it_is_refused(words):
    with pytest.raises(ValueError, match="must stand between grids"):
        grids_of(words)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("geomspace(8,64,4)", "8,16,32,64"),
        ("geomspace(1, 3, 9)", "1,2,3"),
        ("geomspace(10000,10000000,4)", "10000,100000,1000000,10000000"),
        ("geomspace(0.001,1,4)", "0.001,0.01,0.1,1"),
        ("geomspace(0.3,0.003,3)", "0.3,0.03,0.003"),
        ("[4,geomspace(8,32,3)]", "[4,8,16,32]"),
        ("a_geomspace(8,64,4)", "a_geomspace(8,64,4)"),
    ],
)
def test_log_spaced_values_read_as_typed(text, values):
    assert expanded(text) == values


@pytest.mark.parametrize(
    "call",
    [
        "geomspace(8,64)",
        "geomspace(0,1,3)",
        "geomspace(1,2,1)",
        "geomspace(1,2,3,4)",
        "geomspace(a,b,c)",
        "geomspace(1,inf,3)",
    ],
)
def test_log_spacing_that_cannot_be_is_refused(call):
    with pytest.raises(ValueError, match="start, stop, count"):
        expanded(call)


def test_the_command_line_zips_joins_and_spaces(tmp_path):
    grid = ["zip=[key_dim,value_dim]", "key_dim=4,8", "value_dim=3,5", "num_pairs=geomspace(2,8,3)"]
    done(*grid, "+", "key_dim=16,32", "feature_map=dpfp", *TINY, f"hydra.sweep.dir={tmp_path}")
    frame = store.read(tmp_path)
    found = set(zip(frame["feature_map"], frame["key_dim"], frame["value_dim"], strict=True))
    assert found == {("identity", 4, 3), ("identity", 8, 5), ("dpfp", 16, 3), ("dpfp", 32, 5)}
    assert set(frame["num_pairs"]) == {2, 4, 8}


def test_a_union_needs_our_own_sweeper(tmp_path):
    stock = ["hydra/launcher=basic", "hydra/sweeper=basic", f"hydra.sweep.dir={tmp_path / 'new'}"]
    refused = sweep("key_dim=4", "+", "key_dim=8", *stock)
    assert refused.returncode == 1 and "knows no union of grids" in refused.stderr
    assert not (tmp_path / "new").exists()
