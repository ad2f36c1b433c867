"""Known errors as texts with a number in them, and what predictions cost."""

import pickle
import statistics
import time

import numpy as np
import pytest

from capmem import Experiment
from capmem.ensembles import (
    AutoregressiveKeys,
    ClusteredKeys,
    DuplicatedKeys,
    EquicorrelatedKeys,
    GaussianKeys,
    GaussianValues,
    OneHotValues,
    PowerLawKeys,
    SphereKeys,
    SphereValues,
)
from capmem.feature_maps import Identity, ReLU, SquaredReLU
from capmem.memory import LinearMemory, SoftmaxMemory
from capmem.readouts import Normalized, RMSNorm
from capmem.theory import predict
from capmem.theory.coverage import coverage
from capmem.theory.known import NONE, Known, by_dim, by_size, together
from capmem.theory.moments import _law_moments
from capmem.write_rules import Decay, Delta

MEMORIES = [
    LinearMemory(Identity()), LinearMemory(ReLU()), LinearMemory(ReLU(), readout=Normalized()),
    LinearMemory(Identity(), readout=RMSNorm()), LinearMemory(Identity(), Delta(0.5), key_norm="l2"),
    LinearMemory(ReLU(), Decay(0.9)), SoftmaxMemory(),
]  # fmt: skip


def test_notes_add_up():
    both = together(Known("1% here", 0.01), NONE, Known("2% there", by_dim(0.03, 64, 0.02)))
    assert both == "1% here; 2% there"
    assert both.at(64, 8, 8) == pytest.approx(0.03) and both.at(16, 8, 8) == pytest.approx(0.04)
    assert together(NONE, NONE) is NONE and NONE.at(1, 1, 1) == 0


def test_a_bound_by_size_is_that_of_the_largest_size_reached():
    bound = by_size({32: 0.002, 16: 0.006})
    assert bound(64, 31, 8) == 0.006 and bound(32, 32, 8) == 0.002 and bound(8, 64, 8) == float("inf")


def test_a_number_survives_pickling():
    assert pickle.loads(pickle.dumps(Known("3%", 0.03))).at(1, 1, 1) == 0.03


@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
@pytest.mark.parametrize("keys", [SphereKeys(), GaussianKeys(), EquicorrelatedKeys(0.5)], ids=repr)
def test_every_source_is_three_things_of_which_the_last_has_a_number(memory, keys):
    try:
        sources = predict(memory, keys, 48, 32, 64).sources
    except ValueError:
        return
    for _, exact, known in sources.values():
        assert isinstance(known, Known) and known
        assert known.at(48, 32, 64) <= (0.01 if exact else 0.5)


def test_a_number_that_is_known_to_be_far_off_is_not_given():
    found = predict(LinearMemory(SquaredReLU()), PowerLawKeys(1.0), 16, 16, 8)
    assert "relative_squared_error" in found.sources and "cosine_similarity" not in found.sources
    assert predict(LinearMemory(SquaredReLU()), SphereKeys(), 16, 16, 8).cosine_similarity > 0


def milliseconds(memory, keys, values=None, cosine=1.0):
    """CPU time of one prediction for a number of pairs that was not asked before."""
    predict(memory, keys, 64, 64, 90, values, cosine)
    found = []
    for n in range(100, 115):
        start = time.process_time()
        predict(memory, keys, 64, 64, n, values, cosine)
        found.append(1e3 * (time.process_time() - start))
    return statistics.median(found)


@pytest.mark.parametrize("keys", [SphereKeys(), GaussianKeys(), EquicorrelatedKeys(0.5), DuplicatedKeys(0.3)], ids=repr)
@pytest.mark.parametrize("memory", MEMORIES[:4] + MEMORIES[-1:], ids=repr)
def test_a_prediction_is_cheap_once_the_law_is_known(memory, keys):
    """Measured: at most 5 ms with top-1 and 1 ms without; four times that is allowed here."""
    try:
        assert milliseconds(memory, keys, SphereValues()) < 40
        assert milliseconds(memory, keys, GaussianValues()) < 5
    except ValueError as reason:
        assert "no formula" in str(reason)


def test_a_map_of_correlated_keys_takes_tens_of_milliseconds_the_first_time():
    _law_moments(LinearMemory(ReLU()), EquicorrelatedKeys(0.5), 64, None)
    start = time.process_time()
    _law_moments(LinearMemory(ReLU()), EquicorrelatedKeys(0.41), 64, None)
    assert time.process_time() - start < 0.2


def test_the_table_of_what_is_covered_fits_a_page():
    lines = coverage().splitlines()
    assert len(lines) <= 40
    assert next(line for line in lines if line.startswith("| `identity` |")).count("exact") == 10
    assert any("its gates depend on the stored features" in line for line in lines)


@pytest.mark.parametrize("keys", [DuplicatedKeys(0.6), AutoregressiveKeys(0.9), ClusteredKeys(16, 0.9)], ids=repr)
def test_stated_errors_hold_where_keys_resemble_each_other_most(keys):
    """Of 1,500 trials, 4 standard errors beside the stated error; repeated keys are further off than one percent."""
    sizes = {"key_dim": 16, "value_dim": 16, "num_pairs": 8}
    metrics = ("scale_optimal_error", "cosine_similarity")
    experiment = Experiment(
        memory=LinearMemory(Identity()), keys=keys, values=SphereValues(), trials=1500, metrics=metrics, **sizes
    )
    predicted, rows = predict(experiment.memory, keys, **sizes), experiment.run()
    off = {}
    for name in metrics:
        found = np.array([row[name] for row in rows])
        expected, bound = getattr(predicted, name), predicted.sources[name].known_error.at(16, 16, 8)
        off[name] = (abs(found.mean() - expected) - 4 * found.std() / 1500**0.5) / expected
        assert off[name] <= bound
    assert isinstance(keys, DuplicatedKeys) == (max(off.values()) > 0.02)


def test_the_top1_of_drifting_keys_with_one_hot_values_is_not_given_where_it_is_far_off():
    given = {"key_dim": 16, "value_dim": 16, "num_pairs": 8, "values": OneHotValues(), "codebook_size": 16}
    near, far = (predict(LinearMemory(Identity()), AutoregressiveKeys(c), **given) for c in (0.5, 0.9))
    assert "top1_accuracy" in near.sources and "top1_accuracy" not in far.sources
