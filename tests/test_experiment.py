"""Experiments reproduce known values, and their numbers depend on nothing but their configuration."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from capmem import Experiment, LinearMemory, evaluate
from capmem.ensembles import (
    ArrayKeys,
    ArrayValues,
    EquicorrelatedKeys,
    GaussianKeys,
    GaussianValues,
    SphereKeys,
    SphereValues,
)
from capmem.feature_maps import FEATURE_MAPS, Dpfp, ElementwiseMap, EluPlusOne, Identity, ReLU
from capmem.trial import METRICS, boundaries
from capmem.write_rules import Delta

IDENTITY = LinearMemory(Identity())


SPHERE = SphereKeys()


def experiment(memory=IDENTITY, keys=SPHERE, **fields):
    fields = {"values": SphereValues(), "key_dim": 16, "value_dim": 16, "num_pairs": (8, 100), "trials": 2} | fields
    return Experiment(memory, keys, **fields)


def numbers(records, *names):
    names = names or tuple(METRICS)
    return {(r["trial"], r["num_pairs"]): tuple(r[n] for n in names) for r in records}


def mean_and_error(records, metric, num_pairs):
    values = [r[metric] for r in records if r["num_pairs"] == num_pairs]
    return np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))


@pytest.fixture(scope="module")
def reference():
    """d = v = 64, unit sphere keys, sphere values, identity, Hebbian."""
    run = experiment(key_dim=64, value_dim=64, num_pairs=(16, 64, 128, 256), trials=60)
    return run.run()


@pytest.mark.parametrize("n", [16, 64, 256])
def test_errors_of_sphere_keys_are_the_closed_forms(reference, n):
    for metric, expected in (
        ("relative_squared_error", (n - 1) / 64),
        ("scale_optimal_error", (n - 1) / (n - 1 + 64)),
    ):
        mean, error = mean_and_error(reference, metric, n)
        assert abs(mean - expected) < 4 * error
        assert error < 0.02 * expected  # the check has teeth


@pytest.mark.parametrize(("n", "cosine"), [(16, 0.9021), (64, 0.7125), (256, 0.4484)])
def test_cosine_of_sphere_keys_is_the_reference(reference, n, cosine):
    mean, error = mean_and_error(reference, "cosine_similarity", n)
    assert abs(mean - cosine) < 4 * error + 0.001  # the reference's own standard error is up to .0004


@pytest.mark.parametrize(("n", "top1"), [(64, 0.9999), (128, 0.9809), (256, 0.7592)])
def test_top1_of_sphere_keys_is_the_reference(reference, n, top1):
    mean, error = mean_and_error(reference, "top1_accuracy", n)
    assert abs(mean - top1) < 4 * math.hypot(error, 0.002)


def test_equicorrelated_keys_ruin_the_memory_and_centring_cures_it():
    keys = EquicorrelatedKeys(0.5)
    shared = {"key_dim": 64, "value_dim": 64, "num_pairs": 128, "trials": 40}
    as_they_are = experiment(keys=keys, **shared).run()
    centred = experiment(LinearMemory(Identity(), key_center="mean"), keys, **shared).run()
    for records, expected in ((as_they_are, 0.970), (centred, 0.669)):
        mean, error = mean_and_error(records, "scale_optimal_error", 128)
        assert abs(mean - expected) < 4 * error + 0.001


def test_predictions_stand_beside_every_measurement(reference):
    for record in reference:
        n = record["num_pairs"]
        assert record["theory_scale_optimal_error"] == pytest.approx((n - 1) / (n - 1 + 64), rel=0.1 / n)


def test_gaussian_values_are_read_with_the_same_error():
    records = experiment(values=GaussianValues(), key_dim=64, value_dim=64, num_pairs=64, trials=60).run()
    mean, error = mean_and_error(records, "scale_optimal_error", 64)
    assert abs(mean - 63 / 127) < 4 * error


@pytest.mark.parametrize("c", [0.8, 0.3])
def test_noisy_cues_follow_their_closed_form(c):
    records = experiment(key_dim=32, num_pairs=20, trials=80, query_cosine=c).run()
    mean, error = mean_and_error(records, "scale_optimal_error", 20)
    assert abs(mean - (1 - c * c / (c * c + 19 / 32))) < 4 * error


def test_the_same_experiment_gives_the_same_bits():
    memory = LinearMemory(Dpfp(2))
    assert numbers(experiment(memory).run()) == numbers(experiment(memory).run())


def test_seed_zero_is_a_seed_and_another_seed_gives_other_numbers():
    first, second = (numbers(experiment(seed=s).run()) for s in (0, 1))
    assert numbers(experiment(seed=0).run()) == first
    assert all(first[unit] != second[unit] for unit in first)


def test_trials_differ():
    values = set(numbers(experiment(trials=6, num_pairs=50).run()).values())
    assert len(values) == 6


@pytest.mark.parametrize(
    "memory", [IDENTITY, LinearMemory(EluPlusOne(), feature_center="mean")], ids=["plain", "centred"]
)
@pytest.mark.parametrize("keys", [GaussianKeys(), EquicorrelatedKeys(0.3)], ids=["gaussian", "equicorrelated"])
def test_other_checkpoints_and_trials_change_no_bit(memory, keys):
    checkpoints = (1, 7, 64, 65, 100, 128, 200)
    whole = numbers(experiment(memory, keys, num_pairs=checkpoints, trials=3).run())
    for n in checkpoints:
        alone = numbers(experiment(memory, keys, num_pairs=n, trials=1).run())
        assert alone[0, n] == whole[0, n]


def test_units_can_be_computed_alone():
    whole = numbers(experiment(trials=3).run())
    some = numbers(experiment(trials=3).run([(2, 100), (0, 8)]))
    assert some == {unit: whole[unit] for unit in [(0, 8), (2, 100)]}


def test_maps_and_correlations_share_their_draws():
    """Common random numbers: the sphere law and an uncorrelated equicorrelated one differ in u only."""
    keys = [e.start(np.random.default_rng([0, 0, 0]), 8).draw(5) for e in (GaussianKeys(), SphereKeys())]
    np.testing.assert_allclose(keys[0] / np.linalg.norm(keys[0], axis=1, keepdims=True), keys[1], rtol=1e-12)


def test_a_sample_of_queries_estimates_the_whole():
    whole = experiment(num_pairs=3000, trials=6, key_dim=64).run()
    sampled = experiment(num_pairs=3000, trials=6, key_dim=64, max_queries=300).run()
    assert [r["num_queries"] for r in sampled] == [300] * 6
    assert [r["codebook_size"] for r in sampled] == [3000] * 6
    assert mean_and_error(sampled, "relative_squared_error", 3000)[0] == pytest.approx(
        mean_and_error(whole, "relative_squared_error", 3000)[0], rel=0.05
    )


def test_above_4096_pairs_top1_competes_against_4096_codewords():
    records = experiment(num_pairs=5000, trials=1, max_queries=1000).run()
    assert (records[0]["num_queries"], records[0]["codebook_size"]) == (1000, 4096)
    exact = experiment(num_pairs=5000, trials=1, key_dim=512, value_dim=512, max_queries=200).run()
    assert exact[0]["top1_accuracy"] > 0.99  # queries find their own codeword in the sample


def test_codewords_that_were_not_stored_make_top1_harder():
    few = experiment(num_pairs=60, trials=10).run()
    many = experiment(num_pairs=60, trials=10, codebook_size=3000).run()
    assert {r["codebook_size"] for r in many} == {3000}
    assert mean_and_error(many, "top1_accuracy", 60)[0] < mean_and_error(few, "top1_accuracy", 60)[0] - 0.1
    assert numbers(many, "scale_optimal_error") == numbers(few, "scale_optimal_error")


def test_state_advances_along_fixed_boundaries():
    assert list(boundaries(300)) == [(0, 64), (64, 128), (128, 256), (256, 512)]
    assert list(boundaries(12288))[-2:] == [(4096, 8192), (8192, 12288)]


def test_float64_and_float32_agree_to_rounding():
    single, double = (numbers(experiment(dtype=t).run(), "scale_optimal_error") for t in ("float32", "float64"))
    for unit in single:
        assert single[unit][0] == pytest.approx(double[unit][0], rel=1e-5)
        assert single[unit] != double[unit]


def test_checkpoints_beyond_the_file_are_skipped_with_the_reason(pairs_file):
    keys = ArrayKeys(str(pairs_file), "k")
    records = experiment(keys=keys, key_dim=12, num_pairs=(8, 64), trials=1).run()
    assert [(r["num_pairs"], r["status"]) for r in records] == [(8, "ok"), (64, "skipped")]
    assert "40 pairs at most" in records[1]["reason"]
    assert "scale_optimal_error" not in records[1]


def test_evaluate_is_the_sweep_over_the_same_file(pairs_file):
    file = np.load(pairs_file)
    memory = LinearMemory(ReLU(), key_center="mean")
    swept = experiment(
        memory,
        ArrayKeys(str(pairs_file), "k"),
        values=ArrayValues(str(pairs_file), "v"),
        key_dim=12,
        value_dim=10,
        num_pairs=(10, 40),
        trials=3,
        dtype="float64",
    ).run()
    records = evaluate(memory, file["k"], file["v"], num_pairs=(10, 40), trials=3)
    expected, got = numbers(swept), numbers(records)
    assert expected.keys() == got.keys()
    for unit, values in got.items():
        assert values == pytest.approx(expected[unit], rel=1e-9)


def test_evaluate_with_queries_asks_with_them(rng):
    keys, values = np.eye(6), rng.standard_normal((6, 3))
    wrong = evaluate(IDENTITY, keys, values, queries=np.roll(keys, 1, axis=0))
    right = evaluate(IDENTITY, keys, values)
    assert right[0]["scale_optimal_error"] < 1e-20
    assert wrong[0]["scale_optimal_error"] > 0.1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"num_pairs": ()}, "num_pairs must be one or more integers"),
        ({"num_pairs": (0, 4)}, "num_pairs must be one or more integers of at least 1"),
        ({"num_pairs": (2.5,)}, "num_pairs must be a list, each entry an integer"),
        ({"key_dim": 0}, "key_dim must be an integer of at least 1, got 0"),
        ({"value_dim": 2.0}, "value_dim must be an integer, got 2.0"),
        ({"trials": 0}, "trials must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"query_cosine": 1.5}, "query_cosine must be a number from -1 to 1"),
        ({"dtype": "float16"}, "dtype must be one of float32, float64"),
        ({"metrics": ("accuracy",)}, "metric 'accuracy' does not exist. Did you mean 'top1_accuracy'"),
        ({"codebook_size": 50}, "codebook_size must be at least num_pairs = 100, got 50"),
        ({"max_queries": 0}, "max_queries must be an integer of at least 1"),
        ({"key_dim": 1, "query_cosine": 0.5}, "key_dim must be at least 2 for noisy cues"),
    ],
)
def test_a_value_out_of_range_is_refused(fields, told):
    with pytest.raises(ValueError, match=told):
        experiment(**fields)


def test_dimensions_must_be_those_of_the_file(pairs_file):
    with pytest.raises(ValueError, match="key_dim must be 12, as in the file, or null, got 16"):
        experiment(keys=ArrayKeys(str(pairs_file), "k"))


@pytest.mark.parametrize("shape", [(5,), (5, 3, 2), (4, 3)])
def test_evaluate_refuses_arrays_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="values must"):
        evaluate(IDENTITY, np.ones((5, 3)), np.ones(shape))


def test_overflow_is_counted_not_hidden():
    memory = LinearMemory(Dpfp(1), key_scale=1e15)
    records = experiment(memory, num_pairs=4, trials=1).run()
    assert records[0]["nonfinite_retrieved"] == 4
    assert records[0]["scale_optimal_error"] == math.inf


@dataclass(frozen=True)
class RandomScale(ElementwiseMap):
    """A random map: one factor from its seed."""

    seed: int = 0

    def function(self, x, xp):
        return x * np.random.default_rng(self.seed).standard_normal()


@pytest.mark.parametrize("redraw", [True, False])
def test_a_random_map_is_redrawn_for_each_trial(redraw):
    FEATURE_MAPS.register("random_scale")(RandomScale)
    records = experiment(LinearMemory(RandomScale()), trials=4, num_pairs=8, redraw_map=redraw).run()
    again = experiment(LinearMemory(RandomScale()), trials=4, num_pairs=8, redraw_map=redraw).run()
    del FEATURE_MAPS._classes["random_scale"]
    plain = experiment(trials=4, num_pairs=8).run()
    assert numbers(records) == numbers(again)
    assert numbers(records, "scale_optimal_error").keys() == numbers(plain, "scale_optimal_error").keys()
    factors = {
        round(r["relative_squared_error"] / p["relative_squared_error"], 4) for r, p in zip(records, plain, strict=True)
    }
    assert len(factors) == 4
    states = {r["feature_map.seed"] for r in records}
    assert states == {0}  # the table says what was configured; the trial's own seed follows from it


def test_no_column_of_a_unit_depends_on_what_else_was_asked_for():
    """Warnings too: a delta rule that diverges warns at every checkpoint, in the same words as alone."""
    memory = LinearMemory(Identity(), write_rule=Delta())
    whole = experiment(memory, GaussianKeys(), num_pairs=(8, 70, 100), trials=2).run()
    for record in whole:
        (alone,) = experiment(memory, GaussianKeys(), num_pairs=(8, 70, 100), trials=2).run(
            [(record["trial"], record["num_pairs"])]
        )
        differ = {name for name in record if name != "elapsed_s" and repr(alone[name]) != repr(record[name])}
        assert differ == set()
        assert record["warning"].startswith("StabilityWarning: ")
