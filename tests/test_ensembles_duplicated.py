"""Keys that come again: the latest value is the target, and superseded pairs leave the score."""

import math

import numpy as np
import pytest

from capmem import Experiment, LinearMemory
from capmem.ensembles import DuplicatedKeys, Ensemble, OneHotValues, OrthonormalKeys, SphereKeys, SphereValues
from capmem.ensembles.base import Whole
from capmem.ensembles.duplicated import DuplicateStream
from capmem.feature_maps import Identity
from capmem.memory import SoftmaxMemory
from capmem.readouts import Normalized
from capmem.trial import CHUNK, Sampling, Sources, run_trials
from capmem.write_rules import Delta, Hebbian


def drawn(fraction, num_pairs, seed=0, dim=16):
    """The keys, and for each the place of its first occurrence."""
    keys = DuplicatedKeys(fraction).sample(np.random.default_rng(seed), num_pairs, dim)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return keys, first[inverse.ravel()]


def superseded(fraction, num_pairs, seed=0, dim=16):
    stream = DuplicatedKeys(fraction).start(np.random.default_rng(seed), dim)
    stream.draw(num_pairs)
    return stream.superseded(np.arange(num_pairs), num_pairs)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_the_expected_fraction_of_pairs_repeats_a_key(fraction):
    repeats = [np.mean(drawn(fraction, 400, seed)[1][1:] != np.arange(1, 400)) for seed in range(40)]
    error = np.std(repeats, ddof=1) / math.sqrt(40)
    assert abs(np.mean(repeats) - fraction) < 4 * error
    assert error < 0.01


def test_repeats_are_uniform_among_the_different_keys_so_far():
    """The last of 4 pairs, given 3 different keys before it, repeats each of them equally often."""
    counts = np.zeros(4)
    for seed in range(2000):
        _, origin = drawn(0.5, 4, seed, dim=2)
        if list(origin[:3]) == [0, 1, 2]:
            counts[origin[3]] += 1
    rest = counts[:3].sum() / 3
    np.testing.assert_allclose(counts[:3], rest, atol=4 * math.sqrt(rest))


@pytest.mark.parametrize(("fraction", "different"), [(0.0, 50), (1.0, 1)])
def test_the_limits_are_all_different_and_all_the_same(fraction, different):
    assert len(np.unique(drawn(fraction, 50)[1])) == different


def test_new_keys_are_the_same_for_every_fraction():
    """Common random numbers: what differs between two fractions is which pairs repeat."""
    (some, origin), (new, _) = drawn(0.4, 50), drawn(0.0, 50)
    first = some[origin == np.arange(50)]
    assert 10 < len(first) < 50
    np.testing.assert_array_equal(first, new[: len(first)])
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1, rtol=1e-12)


def test_a_pair_is_superseded_when_its_key_comes_again():
    keys, origin = drawn(0.5, 100)
    expected = [origin[i] in origin[i + 1 :] for i in range(100)]
    np.testing.assert_array_equal(superseded(0.5, 100), expected)
    assert 20 < sum(expected) < 80


def test_what_comes_later_does_not_supersede_yet():
    stream = DuplicatedKeys(0.5).start(np.random.default_rng(0), 16)
    stream.draw(100)
    np.testing.assert_array_equal(stream.superseded(np.arange(30), 30), superseded(0.5, 30))


def test_rows_drawn_at_once_are_superseded_as_those_of_their_stream():
    whole = Whole(DuplicatedKeys(0.5).start(np.random.default_rng(0), 16), 100)
    whole.draw(100)
    np.testing.assert_array_equal(whole.superseded(np.arange(100), 100), superseded(0.5, 100))


def experiment(keys, rule=None, **fields):
    fields = {"num_pairs": (20, 64, 100), "trials": 3, "dtype": "float64"} | fields
    return Experiment(LinearMemory(Identity(), rule or Hebbian()), keys, SphereValues(), 32, 32, **fields)


def test_pairs_that_are_scored_are_as_many_as_different_keys():
    for record in experiment(DuplicatedKeys(0.4)).run():
        keys = DuplicatedKeys(0.4).sample(np.random.default_rng([0, record["trial"], 0]), record["num_pairs"], 32)
        assert record["num_queries"] == record["num_pairs"]
        assert record["num_scored"] == len(np.unique(keys, axis=0)) < record["num_pairs"]


def test_other_laws_score_every_pair_that_is_read():
    records = experiment(SphereKeys(), max_queries=50).run()
    assert all(r["num_scored"] == r["num_queries"] for r in records)


def test_of_a_sample_of_queries_the_superseded_leave():
    records = experiment(DuplicatedKeys(0.5), max_queries=40).run()
    assert [r["num_queries"] for r in records] == 3 * [20, 40, 40]
    assert all(0 < r["num_scored"] < 40 for r in records)


def test_where_every_sampled_pair_is_superseded_there_is_no_number():
    record = experiment(DuplicatedKeys(1.0), num_pairs=100, max_queries=1, trials=1).run()[0]
    assert (record["num_queries"], record["num_scored"]) == (1, 0)
    assert math.isnan(record["scale_optimal_error"])


@pytest.mark.parametrize("n", [20, 64, 100])
def test_other_checkpoints_change_no_bit(n):
    together = [r["scale_optimal_error"] for r in experiment(DuplicatedKeys(0.4)).run() if r["num_pairs"] == n]
    alone = [r["scale_optimal_error"] for r in experiment(DuplicatedKeys(0.4), num_pairs=n).run()]
    assert together == alone


class RepeatedOrthonormalKeys(Ensemble):
    """Repeats of orthonormal keys: nothing but repeats disturbs a read."""

    def start(self, rng, dim):
        return DuplicateStream(OrthonormalKeys().start(rng, dim), 0.5, np.random.default_rng(rng.integers(2**31)))


def trial(memory, keys, num_pairs, value_dim, dim=128):
    """One trial through the same door as experiments, and how often each key that is scored was written."""
    stream = keys.start(np.random.default_rng(0), dim)
    sources = Sources(
        keys=stream,
        values=OneHotValues().start(np.random.default_rng(1), value_dim),
        cue=None,
        others=None,
    )
    state = memory.init(dim, value_dim, like=np.empty(0))
    names = ("relative_squared_error", "top1_accuracy")
    sampling = Sampling(CHUNK, None, (0,))
    ((record,),) = run_trials(memory, state, [sources], sampling, lambda rows: rows[0], [num_pairs], names)
    _, counts = np.unique(stream.origins, return_counts=True)
    return record, counts


def test_the_delta_rule_reads_the_latest_value_exactly():
    record, counts = trial(LinearMemory(Identity(), Delta()), RepeatedOrthonormalKeys(), 100, 100)
    assert counts.max() >= 4
    assert record["relative_squared_error"] < 1e-24
    assert record["top1_accuracy"] == 1


def test_the_sum_rule_adds_up_all_values_of_a_key():
    """Orthonormal values: n - 1 stale ones are read besides the latest."""
    record, counts = trial(LinearMemory(Identity()), RepeatedOrthonormalKeys(), 100, 100)
    assert record["relative_squared_error"] == pytest.approx(np.mean(counts - 1), rel=1e-10)
    assert record["top1_accuracy"] == pytest.approx(np.mean(1 / counts), rel=1e-10)  # ties count 1/n


@pytest.mark.parametrize(
    "memory",
    [LinearMemory(Identity(), readout=Normalized()), SoftmaxMemory(beta=1e3)],
    ids=["normalized", "softmax"],
)
def test_an_averaging_read_has_the_stale_floor(memory):
    """(n - 1)/n for a key written n times, however well keys are told apart (docs/mathematics/limits.md)."""
    record, counts = trial(memory, RepeatedOrthonormalKeys(), 100, 100)
    assert record["relative_squared_error"] == pytest.approx(np.mean((counts - 1) / counts), rel=1e-10)


@pytest.mark.slow
def test_the_sum_rule_has_the_stale_floor_of_schlag_and_the_delta_rule_has_none():
    """Keys and one-hot values drawn with replacement, S of each, S pairs: .1148 at S = 100 (docs/mathematics, 7.7)."""
    S, rng, losses, erased = 100, np.random.default_rng(0), [], []
    codes = np.eye(S)
    for _ in range(150):
        keys, labels = rng.integers(S, size=S), rng.integers(S, size=S)
        latest = {k: v for k, v in zip(keys, labels, strict=True)}
        present, targets = codes[list(latest)], codes[list(latest.values())]
        for memory, found in (
            (LinearMemory(Identity(), readout=Normalized()), losses),
            (LinearMemory(Identity(), Delta()), erased),
        ):
            state = memory.write(memory.init(S, S, like=codes), codes[keys], codes[labels])
            found.append(0.5 * np.sum((memory.read(state, present) - targets) ** 2, axis=1).mean())
    error = np.std(losses, ddof=1) / math.sqrt(len(losses))
    assert abs(np.mean(losses) - 0.1148) < 4 * error
    assert error < 0.0015
    assert max(erased) < 1e-24


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_a_fraction_out_of_range_is_refused(fraction):
    with pytest.raises(ValueError, match="fraction must be a number from 0 to 1"):
        DuplicatedKeys(fraction)
