"""What cannot be predicted is refused with a reason, not approximated in silence: every registered combination."""

import dataclasses
import math
import warnings

import numpy as np
import pytest

from capmem import LinearMemory
from capmem.ensembles import KEYS, VALUES, ArrayKeys, ArrayValues, GaussianKeys, SphereKeys
from capmem.feature_maps import FEATURE_MAPS, Exp, Identity, ReLU, SiLU
from capmem.memory import SoftmaxMemory
from capmem.readouts import READOUTS
from capmem.theory import Prediction, TheoryUnavailable, predict
from capmem.write_rules import WRITE_RULES

SIZES = {"key_dim": 16, "value_dim": 32, "num_pairs": 20}
OPTIONS = {"polynomial": {"degree": 2}, "positive_random_features": {"num_features": 32}}
METRICS = {f.name for f in dataclasses.fields(Prediction)} - {"sources"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "keys.npy"
    np.save(path, np.random.default_rng(0).standard_normal((100, 16)))
    return str(path)


def registered(registry, **more):
    """One of each, with small random maps and the file where a path is needed."""
    for name in registry.names():
        fields = {f.name for f in dataclasses.fields(registry[name])}
        given = {k: v for k, v in more.items() if k in fields} | OPTIONS.get(name, {})
        yield registry.build({"name": name, **given})


def check(memory, keys, **options):
    """Return the prediction, or None for a refusal; anything else fails."""
    try:
        found = predict(memory, keys, **(SIZES | options))
    except TheoryUnavailable as error:
        assert len(str(error)) > 15
        return None
    numbers = {name: getattr(found, name) for name in METRICS}
    known = {name for name, number in numbers.items() if not math.isnan(number)}
    assert known and set(found.sources) == known
    for source in found.sources.values():
        assert source.formula and source.known_error and isinstance(source.exact, bool)
        assert "measured)" not in source.known_error and source.known_error != "to be measured"
    assert not found.relative_squared_error < 0
    assert math.isnan(found.scale_optimal_error) or 0 <= found.scale_optimal_error <= 1
    assert math.isnan(found.top1_accuracy) or 0 <= found.top1_accuracy <= 1
    assert not abs(found.cosine_similarity) > 1
    assert not found.signal_to_noise < 0
    return found


@pytest.mark.parametrize("name", sorted(FEATURE_MAPS.names()))
def test_every_combination_has_a_prediction_or_a_reason(name, file):
    feature_map = next(m for m in registered(FEATURE_MAPS, num_features=32) if FEATURE_MAPS.describe(m)["name"] == name)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for keys in registered(KEYS, path=file):
            options = {"num_pairs": 10} if keys.max_pairs(16) == 16 else {}
            for rule in registered(WRITE_RULES):
                for readout in registered(READOUTS):
                    memory = LinearMemory(feature_map, write_rule=rule, readout=readout)
                    found[keys, rule, readout] = check(memory, keys, **options)
    covered = sum(value is not None for value in found.values())
    assert covered or name in ("softmax_features",)
    assert covered < len(found)


@pytest.mark.parametrize("values", ["sphere", "gaussian", "rademacher", "one_hot"])
@pytest.mark.parametrize("mean", [0.0, 0.5])
@pytest.mark.parametrize("cosine", [1.0, 0.6, -1.0])
def test_every_value_law_has_predictions_or_reasons(values, mean, cosine, file):
    law = VALUES.build({"name": values, "mean": mean})
    covered = 0
    for keys in registered(KEYS, path=file):
        options = {"num_pairs": 10, "values": law, "query_cosine": cosine, "codebook_size": 25}
        for readout in registered(READOUTS):
            for feature_map in (Identity(), ReLU()):
                covered += check(LinearMemory(feature_map, readout=readout), keys, **options) is not None
        covered += check(SoftmaxMemory(), keys, **options) is not None
    assert covered >= (2 if mean else 10)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 4, 3), (2, 1, 2), (2, 2, 1), (512, 3, 2), (16, 16, 10**7)])
def test_edges_of_the_sizes_break_nothing(sizes, file):
    options = dict(zip(("key_dim", "value_dim", "num_pairs"), sizes, strict=True))
    for keys in registered(KEYS, path=file):
        for readout in registered(READOUTS):
            for feature_map in (Identity(), ReLU()):
                check(LinearMemory(feature_map, readout=readout), keys, **options)
        check(SoftmaxMemory(), keys, **options)
        check(SoftmaxMemory(beta=30.0), keys, **options)


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        (LinearMemory(SiLU(), feature_norm="sum"), "divided by their sum"),
        (LinearMemory(ReLU(), key_norm="sum"), "divided by their sum"),
    ],
    ids=["feature_norm", "key_norm"],
)
def test_keys_of_a_file(memory, told, file):
    with pytest.raises(TheoryUnavailable, match=told):
        predict(memory, ArrayKeys(file), **SIZES)


def test_states_that_are_rounded_and_searches_of_several_steps():
    with pytest.raises(TheoryUnavailable, match="held in bfloat16"):
        predict(LinearMemory(Identity(), state_dtype="bfloat16"), SphereKeys(), **SIZES)
    with pytest.raises(TheoryUnavailable, match="more than one step"):
        predict(SoftmaxMemory(steps=2), SphereKeys(), **SIZES)


def test_values_of_a_file(file):
    with pytest.raises(TheoryUnavailable, match="values of a file"):
        predict(LinearMemory(Identity()), SphereKeys(), values=ArrayValues(file), key_dim=16, value_dim=16, num_pairs=5)


def test_more_pairs_than_there_are():
    for keys, values in (("orthonormal", "sphere"), ("sphere", "one_hot")):
        with pytest.raises(TheoryUnavailable, match="the law holds"):
            predict(LinearMemory(Identity()), KEYS.build(keys), 16, 16, 17, values=VALUES.build(values))


def test_moments_that_no_sample_shows():
    assert math.isfinite(predict(LinearMemory(Exp()), GaussianKeys(), **SIZES).relative_squared_error)
    with pytest.raises(TheoryUnavailable, match="unseen"):
        predict(LinearMemory(Exp(), key_scale=2.0), GaussianKeys(), **SIZES)


def test_a_mean_of_rare_trials_is_no_prediction():
    found = predict(LinearMemory(Identity()), SphereKeys(), 16, 32, 2)
    assert math.isnan(found.signal_to_noise) and "signal_to_noise" not in found.sources
    assert math.isfinite(found.scale_optimal_error)
