"""What cannot be predicted is refused, not approximated in silence."""

import numpy as np
import pytest

from capmem import LinearMemory
from capmem.ensembles import (
    ArrayKeys,
    ArrayValues,
    DuplicatedKeys,
    GaussianKeys,
    SphereKeys,
    SphereValues,
    TightFrameKeys,
)
from capmem.feature_maps import CosFormer, Exp, Identity, RandomReLU, ReLU, SiLU
from capmem.memory import SoftmaxMemory
from capmem.readouts import RMSNorm
from capmem.theory import TheoryUnavailable, predict
from capmem.write_rules import Delta

SIZES = {"key_dim": 16, "value_dim": 16, "num_pairs": 20}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "keys.npy"
    np.save(path, np.random.default_rng(0).standard_normal((100, 16)))
    return str(path)


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        (LinearMemory(CosFormer()), "depends on the place"),
        (LinearMemory(RandomReLU(32)), "random map"),
        (LinearMemory(SiLU(), feature_norm="sum"), "divided by their sum"),
        (LinearMemory(ReLU(), key_norm="sum"), "divided by their sum"),
    ],
    ids=str,
)
def test_keys_of_a_file(memory, told, file):
    with pytest.raises(TheoryUnavailable, match=told):
        predict(memory, ArrayKeys(file), **SIZES)


@pytest.mark.parametrize(
    ("memory", "keys"),
    [
        (LinearMemory(Identity(), write_rule=Delta()), SphereKeys()),
        (LinearMemory(Identity(), readout=RMSNorm()), SphereKeys()),
        (LinearMemory(Identity(), state_dtype="bfloat16"), SphereKeys()),
        (LinearMemory(Identity()), TightFrameKeys()),
        (LinearMemory(Identity()), DuplicatedKeys()),
        (SoftmaxMemory(), SphereKeys()),
    ],
    ids=str,
)
def test_rules_readouts_states_and_laws_without_a_formula(memory, keys):
    with pytest.raises(TheoryUnavailable):
        predict(memory, keys, **SIZES)


def test_values_that_share_a_mean_or_come_from_a_file(file):
    for values in (SphereValues(mean=0.5), ArrayValues(file)):
        with pytest.raises(TheoryUnavailable):
            predict(LinearMemory(Identity()), SphereKeys(), values=values, **SIZES)


def test_moments_that_no_sample_shows():
    assert predict(LinearMemory(Exp()), GaussianKeys(), **SIZES).scale_optimal_error < 1
    with pytest.raises(TheoryUnavailable, match="unseen"):
        predict(LinearMemory(Exp(), key_scale=2.0), GaussianKeys(), **SIZES)
