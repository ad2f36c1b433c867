"""The same slab on PyTorch: the numbers of NumPy to rounding, whatever map, rule or read-out."""

import numpy as np
import pytest

from capmem.backends import BACKENDS
from capmem.feature_maps import FEATURE_MAPS
from capmem.sweeps.plan import plan
from capmem.sweeps.points import experiment_from, point_key
from capmem.sweeps.slab import run_slab
from capmem.trial import METRICS, NeedsCare, run_trials
from capmem.write_rules import WRITE_RULES

EXACT = (
    "trial", "num_pairs", "num_queries", "num_scored", "codebook_size", "status", "feature_dim", "state_bytes",
    "warning", "nonpositive_denominators", "zero_denominators", "zero_keys", "zero_queries", "nonfinite_retrieved",
)  # fmt: skip


def point(**changes):
    plain = {
        "feature_map": "relu", "keys": {"name": "equicorrelated", "correlation": 0.3}, "key_dim": 8, "value_dim": 6,
        "num_pairs": (5, 64, 100), "trials": 3, "key_scale": "sqrt_dim",
    }  # fmt: skip
    return plain | changes


def on_torch(**changes):
    pytest.importorskip("torch")
    return point(backend="torch", **changes)


def records(config):
    return experiment_from(config).run()


def assert_same(found, expected, tolerance=2e-4):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert [one[name] for name in EXACT] == [other[name] for name in EXACT]
        for name in METRICS:
            allowed = max(tolerance, 1.01 / other["num_pairs"]) if name == "top1_accuracy" else tolerance
            a, b = (min(r[name], 1 / tolerance) for r in (one, other))  # 1 / 0 of what is read exactly
            assert a == pytest.approx(b, rel=tolerance, abs=allowed), name


@pytest.mark.parametrize("name", FEATURE_MAPS.names())
def test_every_map_gives_the_numbers_of_numpy(name):
    assert_same(records(on_torch(feature_map=name)), records(point(feature_map=name)))


@pytest.mark.parametrize("name", WRITE_RULES.names())
def test_every_rule_gives_the_numbers_of_numpy(name):
    rule = {"name": name} | ({"step_size": 0.1} if name in ("delta", "gated_delta") else {})
    changes = {"write_rule": rule, "feature_map": "elu_plus_one", "dtype": "float64"}
    assert_same(records(on_torch(**changes)), records(point(**changes)), 1e-8)


@pytest.mark.parametrize(
    "changes",
    [
        {"readout": "normalized"},
        {"readout": "normalized", "feature_map": "identity"},
        {"readout": "rms_norm"},
        {"key_center": "mean", "feature_center": "mean"},
        {"feature_map": "positive_random_features", "feature_center": "mean"},
        {"key_norm": "l2", "feature_norm": "sum"},
        {"memory": "softmax", "feature_map": None, "key_scale": 1.0},
        {"query_cosine": 0.5},
        {"keys": "duplicated"},
        {"keys": "tight_frame", "num_pairs": (5, 20)},
        {"codebook_size": 150},
        {"max_queries": 32},
        {"values": "rademacher"},
        {"state_dtype": "bfloat16"},
    ],
    ids=str,
)
def test_every_step_gives_the_numbers_of_numpy(changes):
    tolerance = 2e-3 if "state_dtype" in changes else 2e-4
    assert_same(records(on_torch(**changes)), records(point(**changes)), tolerance)


def test_rows_by_age_are_those_of_numpy():
    changes = {"write_rule": "decay", "age_bins": 4}
    (_, found), (_, expected) = (experiment_from(f(**changes)).run_with_ages() for f in (on_torch, point))
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert one["scale_optimal_error"] == pytest.approx(other["scale_optimal_error"], rel=1e-4)


def test_the_trials_of_a_slab_are_one_batch_of_tensors(monkeypatch):
    torch = pytest.importorskip("torch")
    shapes = []

    def spy(memory, state, *rest, **more):
        shapes.append(tuple(state.rule.S.shape))
        assert isinstance(state.rule.S, torch.Tensor)
        return run_trials(memory, state, *rest, **more)

    monkeypatch.setattr("capmem.passes.run_trials", spy)
    records(on_torch(trials=16, feature_map="positive_random_features"))
    assert shapes == [(16, 256, 6)]


def test_a_slab_on_torch_is_a_point_of_its_own_and_says_so():
    keys = {point_key(experiment_from(config)) for config in (point(), on_torch())}
    assert len(keys) == 2
    (slab,) = plan([on_torch(trials=1)])
    assert {(r["backend"], r["device"], r["status"]) for r in run_slab(slab).records} == {("torch", "cpu", "ok")}


def test_what_numpy_stores_does_not_name_a_backend():
    experiment = experiment_from(point(backend="numpy"))
    assert point_key(experiment) == point_key(experiment_from(point()))
    assert not {"backend", "device"} & set(experiment.columns())


def test_a_library_that_is_missing_is_said_in_one_line_before_anything_runs(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ValueError, match=r"capmem\[torch\]") as told:
        plan([point(backend="torch")])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_a_device_that_is_missing_is_said_in_one_line_before_anything_runs(device):
    with pytest.raises(ValueError, match=device) as told:
        plan([on_torch(device=device)])
    assert "\n" not in str(told.value)


def test_numpy_has_no_gpu():
    with pytest.raises(ValueError, match="device must be cpu"):
        experiment_from(point(device="cuda"))
    assert set(BACKENDS) == {"numpy", "torch"}


@pytest.mark.parametrize("name", ["relu", "dpfp", "positive_random_features", "random_fourier_features", "taylor"])
@pytest.mark.parametrize("law", ["sphere", "gaussian", "power_law"])
def test_a_batch_of_trials_has_the_bits_of_each_trial_alone(name, law):
    changes = {"feature_map": name, "keys": law, "trials": 5, "key_dim": 16, "num_pairs": (3, 40, 64, 90)}
    whole = records(point(**changes))
    for trial in (0, 3):
        for n in (3, 64, 90):
            (alone,) = experiment_from(point(**changes)).run([(trial, n)])
            (batched,) = [r for r in whole if (r["trial"], r["num_pairs"]) == (trial, n)]
            assert [alone[m] for m in METRICS] == [batched[m] for m in METRICS]


@pytest.mark.parametrize("name", ["relu", "dpfp", "positive_random_features", "random_relu"])
def test_a_run_that_counts_what_it_meets_has_the_same_bits(name, monkeypatch):
    fast = records(point(feature_map=name))
    monkeypatch.setattr("capmem.passes.run_trials", refuse_to_hurry)
    careful = records(point(feature_map=name))
    assert [[r[m] for m in METRICS] for r in fast] == [[r[m] for m in METRICS] for r in careful]


def refuse_to_hurry(*given):
    if not given[-1]:
        raise NeedsCare
    return run_trials(*given)


def test_a_count_is_that_of_its_own_trial_and_checkpoint():
    """Denominators of signed features: what a batch met is counted again, trial by trial."""
    found = records(point(feature_map="identity", readout="normalized", trials=4))
    counts = [r["nonpositive_denominators"] for r in found]
    assert len(set(counts)) > 4
    for r in found:
        (alone,) = experiment_from(point(feature_map="identity", readout="normalized", trials=4)).run(
            [(r["trial"], r["num_pairs"])]
        )
        assert alone["nonpositive_denominators"] == r["nonpositive_denominators"]
        np.testing.assert_array_equal([alone[m] for m in METRICS], [r[m] for m in METRICS])
