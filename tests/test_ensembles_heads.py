"""Keys and values of heads as an axis of a sweep: the head's own rows, known by their content."""

import numpy as np
import pytest

from capmem import heads
from capmem.ensembles import KEYS, VALUES, ArrayKeys, ArrayValues, HeadKeys, HeadValues
from capmem.experiment import Experiment
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.sweeps.points import experiment_from, point_key
from tests.conftest import ROOT

SAMPLE = "samples/minilm"
HEAD = {"name": "heads", "path": SAMPLE, "layer": 3, "head": 5}
POINT = {"keys": HEAD, "values": HEAD, "num_pairs": [4, 64], "trials": 2, "key_norm": "l2"}


def test_rows_are_those_of_the_head():
    layer = heads.load(SAMPLE).layer(3)
    place = layer.key_heads.index(5)
    np.testing.assert_array_equal(HeadKeys(SAMPLE, layer=3, head=5).rows(), layer.keys[place])
    np.testing.assert_array_equal(HeadValues(SAMPLE, layer=3, head=5).rows(), layer.values[place])
    assert not np.array_equal(HeadKeys(SAMPLE, layer=3, head=9).rows(), layer.keys[place])


def test_a_sweep_over_a_head_gives_what_its_array_gives(tmp_path):
    """Numbers and predictions, to the bit; and the same rows under another name are told apart by nothing else."""
    layer = heads.load(SAMPLE).layer(3)
    place = layer.key_heads.index(5)
    np.savez(tmp_path / "pairs.npz", k=layer.keys[place], v=layer.values[place])
    arrays = {"kind": "array", "path": str(tmp_path / "pairs.npz")}
    other = experiment_from(POINT | {"keys": arrays | {"name": "k"}, "values": arrays | {"name": "v"}})
    mine = experiment_from(POINT)
    left_out = ("elapsed_s", "keys", "values")
    for ours, theirs in zip(mine.run(), other.run(), strict=True):
        shared = [k for k in ours if k in theirs and not k.startswith(left_out) and k != "elapsed_s"]
        assert {k: repr(ours[k]) for k in shared} == {k: repr(theirs[k]) for k in shared}
        assert any(k.startswith("theory_") for k in shared)
    assert mine.keys.sha256() == other.keys.sha256()


def test_the_theory_of_files_holds_for_heads():
    """(N - 1) mean cos^2 with random values, within 4 standard errors of 64 trials; centred keys are told apart."""
    spheres = {"values": {"name": "sphere"}, "value_dim": 32, "trials": 64, "num_pairs": [16]}
    rows = experiment_from(POINT | spheres).run()
    measured = np.array([row["relative_squared_error"] for row in rows])
    error = 4 * measured.std(ddof=1) / len(measured) ** 0.5
    assert rows[0]["theory_relative_squared_error"] == pytest.approx(measured.mean(), abs=error)
    other = experiment_from(POINT | spheres | {"key_center": "mean", "trials": 1}).run()
    assert abs(other[0]["theory_relative_squared_error"] - measured.mean()) > error


def test_values_stay_with_their_keys():
    """Row i of the values is stored under row i of the keys, in whatever order: least squares reads them back."""
    experiment = experiment_from(POINT | {"num_pairs": [16], "write_rule": "least_squares", "dtype": "float64"})
    assert all(record["relative_squared_error"] < 1e-6 for record in experiment.run())
    crossed = experiment_from(POINT | {"num_pairs": [256], "write_rule": "least_squares"}).run()
    assert all(record["relative_squared_error"] > 0.01 for record in crossed)  # more than d pairs are not exact


def test_the_point_is_known_by_its_content_not_its_place(tmp_path):
    import shutil

    shutil.copytree(SAMPLE, tmp_path / "copy")
    moved = {name: POINT[name] | {"path": str(tmp_path / "copy")} for name in ("keys", "values")}
    assert point_key(experiment_from(POINT)) == point_key(experiment_from(POINT | moved))
    other = POINT | {"keys": POINT["keys"] | {"head": 9}}
    assert point_key(experiment_from(POINT)) != point_key(experiment_from(other))


def test_special_tokens_can_be_left_out(tmp_path):
    held = heads.load(SAMPLE)
    arrays = {part: np.stack([getattr(held.layer(1), part)[0]])[None] for part in ("keys", "queries", "values")}
    special = [i in (0, 255) for i in range(256)]
    made = heads.from_arrays(**arrays, layout="bhtd", special=special, confirm=False)
    made.save(tmp_path / "one.npz")
    assert len(HeadKeys(str(tmp_path / "one.npz"), special=False).rows()) == 254
    assert len(HeadKeys(str(tmp_path / "one.npz")).rows()) == 256
    with pytest.raises(ValueError, match="special must be given"):
        HeadKeys(SAMPLE, layer=1, special=False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": "nowhere"}, "'nowhere'"),
        ({"path": SAMPLE, "layer": 2}, "layer 2 does not exist.*Allowed: 1, 3"),
        ({"path": SAMPLE, "layer": 1, "head": 1}, "head .* 1 does not exist.*Allowed: 0, 5, 9"),
        ({}, "keys.path must be given"),
        ({"path": SAMPLE, "name": "x"}, "keys.*does not exist"),
    ],
)
def test_bad_input_is_one_clear_line(given, told):
    with pytest.raises(ValueError, match=told) as caught:
        KEYS.build({"kind" if "name" in given else "name": "heads", **given})
    assert "\n" not in str(caught.value)


def test_it_is_described_as_it_is_built():
    keys = HeadKeys(SAMPLE, layer=3, head=9, order="given")
    assert KEYS.build(KEYS.describe(keys)) == keys
    assert KEYS.describe(keys)["name"] == "heads"
    values = HeadValues(SAMPLE, layer=3, head=9)
    assert VALUES.build(VALUES.describe(values)) == values
    assert isinstance(keys, ArrayKeys)


def test_keys_and_values_of_unequal_length_are_refused(tmp_path):
    np.save(tmp_path / "short.npy", np.ones((3, 32)))
    short = ArrayValues(str(tmp_path / "short.npy"))
    with pytest.raises(ValueError, match="arrays of equally many rows"):
        Experiment(LinearMemory(Identity()), HeadKeys(SAMPLE, layer=1), short, 32, 32)


def test_the_choice_of_values_follows_the_keys_and_stands_alone_with_a_path():
    """Without keys=heads there is no interpolation that fails, but one line for what must be given."""
    from omegaconf import OmegaConf

    chosen = OmegaConf.load(ROOT / "conf" / "values" / "heads.yaml")

    def values(keys):
        config = OmegaConf.to_container(OmegaConf.create({"keys": keys, "values": chosen}), resolve=True)
        return VALUES.build(config["values"])

    assert values(HEAD) == HeadValues(SAMPLE, layer=3, head=5)
    with pytest.raises(ValueError, match="^values.path must be given"):
        values({"name": "sphere"})
    chosen.path, chosen.layer = SAMPLE, 3
    assert values({"name": "sphere"}) == HeadValues(SAMPLE, layer=3, head=0)
