"""Key laws with a structure keep what they promise: exact Gram matrices, spectra, correlations."""

import math

import numpy as np
import pytest
from scipy.special import hyp2f1

from capmem import Experiment, LinearMemory
from capmem.ensembles import (
    AutoregressiveKeys,
    ClusteredKeys,
    OneHotValues,
    OrthonormalKeys,
    PowerLawKeys,
    RademacherKeys,
    SphereKeys,
    SphereValues,
    TightFrameKeys,
)
from capmem.ensembles.orthonormal import haar_rows
from capmem.feature_maps import Identity
from capmem.geometry import gram, mean_squared_coherence, welch_bound


def mean_and_error(numbers):
    return np.mean(numbers), np.std(numbers, ddof=1) / math.sqrt(len(numbers))


def assert_mean(numbers, expected, teeth):
    """The mean is the expected one within 4 standard errors, which are below `teeth`."""
    mean, error = mean_and_error(numbers)
    assert abs(mean - expected) < 4 * error
    assert error < teeth


def mean_square_of_unit_keys(c, d):
    """E cos^2 of two unit keys with expected cosine c before they are normed (docs/mathematics/key-laws.md)."""
    return 1 - (d - 1) / d * (1 - c * c) * hyp2f1(1, 1, d / 2 + 1, c * c)


def hebbian(keys, num_pairs, trials, metric="relative_squared_error", memory=None, values=None, **fields):
    """The metric of each trial of a Hebbian memory, by number of pairs."""
    values = SphereValues() if values is None else values
    fields = {"key_dim": 16, "value_dim": 64, "trials": trials, "num_pairs": num_pairs, "dtype": "float64"} | fields
    memory = LinearMemory(Identity()) if memory is None else memory
    records = Experiment(memory, keys, values, metrics=(metric,), **fields).run()
    return {n: [r[metric] for r in records if r["num_pairs"] == n] for n in {r["num_pairs"] for r in records}}


# --- orthonormal keys and tight frames


@pytest.mark.parametrize("dim", [1, 2, 7, 64])
def test_orthonormal_keys_are_orthonormal_to_rounding(dim):
    keys = OrthonormalKeys().sample(np.random.default_rng(0), dim, dim)
    np.testing.assert_allclose(keys @ keys.T, np.eye(dim), atol=1e-12)


def test_orthonormal_keys_are_uniform_in_sign():
    """LAPACK's own signs are not: its first row never points along its Gaussian vector's first coordinate."""
    rng = np.random.default_rng(0)
    fixed = [haar_rows(rng, 4, 4)[0, 0] for _ in range(2000)]
    unfixed = [np.linalg.qr(rng.standard_normal((4, 4)))[0][0, 0] for _ in range(2000)]
    assert_mean(fixed, 0, teeth=0.02)
    assert abs(np.mean(unfixed)) > 0.3


def test_orthonormal_keys_are_read_exactly_and_more_than_d_are_skipped():
    records = Experiment(
        LinearMemory(Identity()), OrthonormalKeys(), SphereValues(), 16, 8, num_pairs=(4, 16, 17), dtype="float64"
    ).run()
    assert all(r["relative_squared_error"] < 1e-28 for r in records if r["num_pairs"] <= 16)
    skipped = [r for r in records if r["num_pairs"] == 17]
    assert [(r["status"], r["reason"]) for r in skipped] == 8 * [
        ("skipped", "these keys or values hold 16 pairs at most")
    ]
    assert all("relative_squared_error" not in r for r in skipped)


def test_centring_orthonormal_keys_takes_nothing_away():
    """Their law has mean zero; a memory calibrated on d rows of one matrix would take out a direction."""
    memory = LinearMemory(Identity(), key_center="mean")
    errors = hebbian(OrthonormalKeys(), 16, 10, memory=memory)[16]
    assert max(errors) < 5 * 16 / 4096


@pytest.mark.parametrize(
    ("num_pairs", "dim"), [(5, 1), (7, 7), (8, 7), (9, 7), (64, 16), (65, 16), (101, 15), (200, 64)]
)
def test_tight_frames_are_tight_and_unit(num_pairs, dim):
    keys = TightFrameKeys().sample(np.random.default_rng(0), num_pairs, dim)
    np.testing.assert_allclose(keys.T @ keys, num_pairs / dim * np.eye(dim), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), 1, atol=1e-12)


def test_tight_frames_meet_the_welch_bound_and_random_keys_do_not():
    rng = np.random.default_rng(1)
    bound = (100 - 16) / (16 * 99)
    assert welch_bound(100, 16) == pytest.approx(math.sqrt(bound), rel=1e-12)
    assert mean_squared_coherence(TightFrameKeys().sample(rng, 100, 16)) == pytest.approx(bound, rel=1e-12)
    assert mean_squared_coherence(SphereKeys().sample(rng, 100, 16)) > 1.02 * bound


def test_fewer_frame_vectors_than_dimensions_are_orthonormal():
    keys = TightFrameKeys().sample(np.random.default_rng(0), 5, 9)
    np.testing.assert_allclose(keys @ keys.T, np.eye(5), atol=1e-12)


def test_frame_vectors_are_not_parallel_and_come_in_no_order():
    keys = TightFrameKeys().sample(np.random.default_rng(2), 200, 16)
    cosines = gram(keys)
    assert np.abs(cosines - np.eye(200)).max() < 0.95
    neighbours = np.diagonal(cosines, 1)
    assert abs(np.mean(neighbours)) < 4 * 0.25 / math.sqrt(199)


def test_tight_frames_meet_the_rank_floor():
    """e_opt = 1 - d/N exactly for orthonormal values; independent keys stay above it."""
    fields = {"values": OneHotValues(), "metric": "scale_optimal_error", "value_dim": 200}
    for n, errors in hebbian(TightFrameKeys(), (16, 17, 65, 200), 3, **fields).items():
        np.testing.assert_allclose(errors, 1 - 16 / n, atol=1e-10)
    assert min(hebbian(SphereKeys(), 200, 3, **fields)[200]) > 1 - 16 / 200 + 1e-4


def test_each_checkpoint_of_tight_frames_is_a_frame_of_its_own():
    memory = LinearMemory(Identity(), key_center="mean")
    fields = {"memory": memory, "metric": "scale_optimal_error", "query_cosine": 0.9}
    together = hebbian(TightFrameKeys(), (8, 40, 70, 100), 2, **fields)
    for n in together:
        assert hebbian(TightFrameKeys(), n, 2, **fields)[n] == together[n]


def test_a_tight_frame_written_in_pieces_is_the_whole_frame():
    """150 pairs are written as 64 + 64 + 22: had each piece been a frame, the error would not be the floor."""
    fields = {"values": OneHotValues(), "value_dim": 150, "metric": "scale_optimal_error"}
    assert hebbian(TightFrameKeys(), 150, 1, **fields)[150][0] == pytest.approx(1 - 16 / 150, abs=1e-10)


# --- signs


def test_rademacher_keys_have_two_levels_and_unit_norm():
    keys = RademacherKeys().sample(np.random.default_rng(0), 100, 16)
    assert set(np.unique(keys)) == {-0.25, 0.25}
    np.testing.assert_array_equal(np.linalg.norm(keys, axis=1), 1)


def test_rademacher_keys_have_the_moments_of_signs_not_of_the_sphere():
    d, rng = 8, np.random.default_rng(0)
    t = np.einsum("nd,nd->n", *(RademacherKeys().sample(rng, 200_000, d) for _ in range(2)))
    assert_mean(t, 0, teeth=0.001)
    assert_mean(t**2, 1 / d, teeth=0.001)
    mean, error = mean_and_error(t**4)
    assert abs(mean - (3 / d**2 - 2 / d**3)) < 4 * error
    assert abs(mean - 3 / (d * (d + 2))) > 8 * error


def test_rademacher_errors_are_those_of_the_sphere():
    assert_mean(hebbian(RademacherKeys(), 33, 200)[33], 32 / 16, teeth=0.02)


# --- sequences and clusters


@pytest.mark.parametrize("a", [0.9, 0.5, -0.6])
def test_autoregressive_keys_forget_geometrically_and_are_stationary(a):
    rng = np.random.default_rng(0)
    keys = np.stack([AutoregressiveKeys(a, unit_norm=False).sample(rng, 9, 16) for _ in range(3000)])
    for first, lag in ((0, 0), (0, 1), (5, 1), (0, 4), (3, 4), (8, 0)):
        inner = np.einsum("td,td->t", keys[:, first], keys[:, first + lag])
        assert_mean(inner, a**lag, teeth=0.01)


def test_autoregressive_keys_have_norm_one_and_the_cosine_of_neighbours_up_to_order_one_over_d():
    keys = AutoregressiveKeys(0.7).sample(np.random.default_rng(0), 20_000, 32)
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), 1, rtol=1e-12)
    assert abs(np.einsum("nd,nd->n", keys[1:], keys[:-1]).mean() - 0.7) < 1 / 32


@pytest.mark.parametrize("a", [0.5, 0.9])
def test_errors_of_autoregressive_keys_are_the_closed_forms(a):
    n, d, r = 60, 16, a * a
    total = 2 * r * (n * (1 - r) - 1 + r**n) / (n * (1 - r) ** 2)
    plain = (n + 1) / d + (1 + 1 / d) * total
    unit = sum(2 / n * (n - m) * mean_square_of_unit_keys(a**m, d) for m in range(1, n))
    assert abs(plain - unit) > 0.2
    assert_mean(hebbian(AutoregressiveKeys(a, unit_norm=False), n, 250)[n], plain, teeth=0.03 * plain)
    assert_mean(hebbian(AutoregressiveKeys(a), n, 250)[n], unit, teeth=0.03 * unit)


def test_uncorrelated_neighbours_are_the_sphere_law():
    keys = [law.sample(np.random.default_rng(0), 20, 8) for law in (AutoregressiveKeys(0.0), SphereKeys())]
    np.testing.assert_allclose(keys[0], keys[1], rtol=1e-12)


def test_another_stretch_of_a_sequence_is_independent_of_it():
    stream = AutoregressiveKeys(0.99).start(np.random.default_rng(0), 64)
    keys, further = stream.draw(3), stream.fork(np.random.default_rng(1)).draw(3)
    assert keys[0] @ keys[2] > 0.9
    assert abs(keys[2] @ further[0]) < 0.6


def clustered_draws(law, draws, dim):
    """Of each of many realisations: keys (4, d) and the cluster of each, read off keys without spread."""
    tight = ClusteredKeys(law.num_clusters, 1.0)
    for t in range(draws):
        keys = law.sample(np.random.default_rng(t), 4, dim)
        centres = tight.sample(np.random.default_rng(t), 4, dim)
        yield keys, centres @ centres.T > 1 - 1e-9


def test_clustered_keys_resemble_their_cluster_and_no_other():
    c, d, same, other = 0.6, 32, [], []
    pairs = np.triu_indices(4, 1)
    for keys, together in clustered_draws(ClusteredKeys(3, c), 1500, d):
        cosines = (keys @ keys.T)[pairs]
        same += list(cosines[together[pairs]])
        other += list(cosines[~together[pairs]])
    assert abs(np.mean(same) - c) < 1 / d + 4 * mean_and_error(same)[1]
    assert_mean(other, 0, teeth=0.01)
    assert len(same) / (len(same) + len(other)) == pytest.approx(1 / 3, abs=0.03)
    assert_mean(np.square(same), mean_square_of_unit_keys(c, d), teeth=0.01)


def test_errors_of_clustered_keys_are_a_mixture_of_within_and_between():
    n, d, clusters = 50, 16, 4
    expected = (n - 1) * (mean_square_of_unit_keys(0.5, d) / clusters + (1 - 1 / clusters) / d)
    assert_mean(hebbian(ClusteredKeys(clusters, 0.5), n, 250)[n], expected, teeth=0.02 * expected)


def test_a_fork_has_the_same_centres_and_clusters_of_its_own():
    stream = ClusteredKeys(2, 1.0).start(np.random.default_rng(0), 16)
    keys, further = stream.draw(60), stream.fork(np.random.default_rng(1)).draw(60)
    assert {tuple(k) for k in keys} == {tuple(k) for k in further}
    assert not np.array_equal(keys, further)


# --- spectrum


def test_power_law_keys_have_their_spectrum_and_expected_norm_one():
    law, d = PowerLawKeys(1.0), 64
    keys = law.sample(np.random.default_rng(0), 20_000, d)
    np.testing.assert_allclose(np.var(keys, axis=0), law.variances(d), rtol=4 * math.sqrt(2 / 20_000))
    assert law.variances(d).sum() == pytest.approx(1, rel=1e-12)
    assert_mean(np.einsum("nd,nd->n", keys, keys), 1, teeth=0.01)


@pytest.mark.parametrize(("exponent", "effective"), [(1.0, 13.81), (0.0, 64.0)])
def test_power_law_keys_have_the_participation_ratio_of_their_spectrum(exponent, effective):
    variances = PowerLawKeys(exponent).variances(64)
    assert 1 / (variances @ variances) == pytest.approx(effective, abs=0.005)


def test_errors_of_power_law_keys_are_those_of_their_participation_ratio():
    expected = 65 / 13.811
    assert_mean(hebbian(PowerLawKeys(1.0), 64, 300, key_dim=64)[64], expected, teeth=0.02 * expected)


@pytest.mark.parametrize(
    ("law", "fields", "told"),
    [
        (AutoregressiveKeys, {"correlation": -1.1}, "correlation must be a number from -1 to 1, got -1.1"),
        (AutoregressiveKeys, {"correlation": math.nan}, "correlation must be a number from -1 to 1"),
        (ClusteredKeys, {"num_clusters": 0}, "num_clusters must be an integer of at least 1, got 0"),
        (ClusteredKeys, {"correlation": 1.5}, "correlation must be a number from 0 to 1, got 1.5"),
        (PowerLawKeys, {"exponent": -1.0}, "exponent must be a finite number of at least 0, got -1.0"),
        (PowerLawKeys, {"exponent": math.inf}, "exponent must be a finite number of at least 0, got inf"),
    ],
)
def test_a_field_out_of_range_is_refused(law, fields, told):
    with pytest.raises(ValueError, match=told):
        law(**fields)
