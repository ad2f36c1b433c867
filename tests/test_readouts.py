"""Read-outs against their formulas, and softmax memory against attention written out."""

import numpy as np
import pytest

from capmem import LinearMemory, evaluate
from capmem.feature_maps import Identity
from capmem.memory import SoftmaxMemory
from capmem.readouts import Linear, Normalized, RMSNorm


def test_normalized_with_epsilon_adds_it_to_the_denominator(rng):
    S, z, q = rng.standard_normal((4, 3)), rng.uniform(1, 2, 4), rng.uniform(0, 1, (5, 4))
    expected = (q @ S) / (q @ z + 0.5)[:, None]
    np.testing.assert_allclose(Normalized(0.5)(S, z, q).retrieved, expected, rtol=1e-12)


def test_rms_norm_gives_unit_mean_square(rng):
    S, z, q = rng.standard_normal((4, 3)), np.ones(4), rng.standard_normal((5, 4))
    retrieved = RMSNorm(0.0)(S, z, q).retrieved
    np.testing.assert_allclose((retrieved**2).mean(axis=1), 1, rtol=1e-12)
    plain = q @ S
    np.testing.assert_allclose(retrieved, plain / np.sqrt((plain**2).mean(axis=1, keepdims=True)), rtol=1e-12)


def test_rms_norm_adds_epsilon_to_the_mean_square(rng):
    S, z, q = rng.standard_normal((4, 3)), np.ones(4), rng.standard_normal((5, 4))
    for scale in (1e-3, 1.0, 30.0):
        plain = scale * q @ S
        expected = plain / np.sqrt((plain**2).mean(axis=1, keepdims=True) + 0.1)
        np.testing.assert_allclose(RMSNorm(0.1)(S, z, scale * q).retrieved, expected, rtol=1e-12)


def test_rms_norm_reads_nothing_as_nothing_and_large_numbers_without_overflow():
    S, z = np.eye(2, dtype=np.float32), np.ones(2, dtype=np.float32)
    q = np.array([[0.0, 0.0], [3e30, 4e30]], dtype=np.float32)
    retrieved = RMSNorm(0.0)(S, z, q).retrieved
    np.testing.assert_allclose(retrieved, [[0, 0], [0.6 * 2**0.5, 0.8 * 2**0.5]], rtol=1e-6)


def test_after_an_rms_norm_the_error_is_two_less_two_cosine(rng):
    keys, values = rng.standard_normal((30, 8)), rng.standard_normal((30, 6))
    values *= np.sqrt(6) / np.linalg.norm(values, axis=1, keepdims=True)
    record = evaluate(LinearMemory(Identity(), readout=RMSNorm(0.0)), keys, values)[0]
    assert record["relative_squared_error"] == pytest.approx(2 * (1 - record["cosine_similarity"]), rel=1e-10)


@pytest.mark.parametrize("readout", [Linear(), Normalized(), RMSNorm()], ids=str)
def test_top1_by_dot_does_not_see_a_positive_denominator_or_a_norm(readout, rng):
    keys, values = np.abs(rng.standard_normal((40, 6))), rng.standard_normal((40, 5))
    record = evaluate(LinearMemory(Identity(), readout=readout), keys, values)[0]
    assert record["top1_accuracy"] == evaluate(LinearMemory(Identity()), keys, values)[0]["top1_accuracy"]


@pytest.mark.parametrize("readout", [Normalized, RMSNorm])
def test_a_negative_epsilon_is_refused(readout):
    with pytest.raises(ValueError, match="epsilon must be a number of at least 0, got -1"):
        readout(-1)


@pytest.mark.parametrize("beta", [None, 0.3, 5.0])
def test_softmax_memory_is_attention(beta, rng):
    keys, values, queries = (rng.standard_normal((2, n, d)) for n, d in ((9, 4), (9, 3), (5, 4)))
    memory = SoftmaxMemory(beta)
    state = memory.init(4, 3, batch=(2,))
    for a, b in ((0, 4), (4, 9)):
        state = memory.write(state, keys[:, a:b], values[:, a:b])
    scores = np.einsum("bmd,bnd->bmn", queries, keys) * (0.5 if beta is None else beta)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(memory.read(state, queries), weights @ values, rtol=1e-10)
    assert state.num_pairs == 9


def test_softmax_memory_grows_and_says_so(rng):
    memory = SoftmaxMemory()
    state = memory.write(memory.init(4, 3), rng.standard_normal((9, 4)), rng.standard_normal((9, 3)))
    size = memory.state_size(4, 3, 9, dtype="float64")
    assert size.elements == state.keys.size + state.values.size
    assert size.bytes == state.keys.nbytes + state.values.nbytes
    with pytest.raises(ValueError, match="num_pairs must be given"):
        memory.state_size(4, 3)


def test_softmax_cannot_see_the_mean_key_and_linear_memory_can(rng):
    keys, values = rng.standard_normal((30, 8)), rng.standard_normal((30, 6))
    shift = 2 * rng.standard_normal(8)
    softmax = [evaluate(SoftmaxMemory(), keys + s, values, queries=keys)[0] for s in (0, shift)]
    linear = [evaluate(LinearMemory(Identity()), keys + s, values, queries=keys)[0] for s in (0, shift)]
    name = "scale_optimal_error"
    assert softmax[0][name] == pytest.approx(softmax[1][name], rel=1e-9)
    assert linear[1][name] > linear[0][name] + 0.05


def test_an_empty_softmax_memory_reads_zero():
    memory = SoftmaxMemory()
    assert (memory.read(memory.init(4, 3), np.ones((2, 4))) == 0).all()


def test_softmax_memory_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="beta must be a positive number"):
        SoftmaxMemory(0)
    with pytest.raises(ValueError, match="takes no mean"):
        SoftmaxMemory().init(4, 3, key_mean=np.ones(4))


def test_hopfield_steps_iterate_on_the_keys(rng):
    patterns = rng.standard_normal((6, 16))
    cue = patterns[:1] + 0.4 * rng.standard_normal((1, 16))
    xi = cue
    for _ in range(3):
        weights = np.exp(0.5 * xi @ patterns.T)
        xi = weights / weights.sum() @ patterns
    memory = SoftmaxMemory(0.5, steps=3)
    state = memory.write(memory.init(16, 16), patterns, patterns)
    np.testing.assert_allclose(memory.read(state, cue), xi, rtol=1e-10)


def test_one_hopfield_step_keeps_the_bound_of_ramsauer_et_al(rng):
    """|xi_new - x_i| <= 2 (N-1) exp(-beta (Delta_i - 2 max(|xi - x_i|, |x*_i - x_i|) M)) M, about x* = x here."""
    d, n = 32, 200
    patterns = rng.standard_normal((n, d))
    patterns *= np.sqrt(d) / np.linalg.norm(patterns, axis=1, keepdims=True)
    noise = rng.standard_normal((n, d))
    cues = patterns + 0.1 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    memory = SoftmaxMemory(1.0)
    read = memory.read(memory.write(memory.init(d, d), patterns, patterns), cues)
    error = np.linalg.norm(read - patterns, axis=1)
    gram = patterns @ patterns.T
    gap = np.diag(gram) - np.max(gram - 1e9 * np.eye(n), axis=1)
    far = np.maximum(np.linalg.norm(cues - patterns, axis=1), error)
    bound = 2 * (n - 1) * np.exp(-(gap - 2 * far * np.sqrt(d))) * np.sqrt(d)
    assert (error <= bound).all()
    assert np.median(error) < 1e-4
