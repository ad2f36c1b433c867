"""Each law keeps its promise: norms, cosines, rows of a file."""

import math

import numpy as np
import pytest
from scipy.special import hyp2f1

from capmem.cues import noisy_cues
from capmem.ensembles import (
    ArrayKeys,
    ArrayValues,
    EquicorrelatedKeys,
    GaussianKeys,
    GaussianValues,
    SphereKeys,
    SphereValues,
)


def mean_and_error(values):
    return np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))


def pair_moment(ensemble, power, dim, draws=4000):
    """The mean of (k . k')^power over independent realisations, with its standard error."""
    rng = np.random.default_rng(5)
    keys = np.stack([ensemble.sample(rng, 2, dim) for _ in range(draws)])
    return mean_and_error(np.einsum("td,td->t", keys[:, 0], keys[:, 1]) ** power)


@pytest.mark.parametrize("law", [GaussianKeys(), GaussianValues()], ids=str)
def test_gaussian_coordinates_have_unit_variance(law):
    rows = law.sample(np.random.default_rng(0), 4000, 16)
    mean, error = mean_and_error(rows.ravel() ** 2)
    assert abs(mean - 1) < 4 * error
    assert abs(rows.mean()) < 4 / math.sqrt(rows.size)


def test_sphere_rows_have_exact_norms():
    keys = SphereKeys().sample(np.random.default_rng(0), 50, 9)
    values = SphereValues().sample(np.random.default_rng(0), 50, 9)
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(values, axis=1), 3, rtol=1e-12)


def test_sphere_keys_have_the_second_and_fourth_moments_of_the_sphere():
    d = 16
    for power, expected in ((2, 1 / d), (4, 3 / (d * (d + 2)))):
        mean, error = pair_moment(SphereKeys(), power, d)
        assert abs(mean - expected) < 4 * error


@pytest.mark.parametrize("c", [0.0, 0.3, 0.6, 0.9])
def test_equicorrelated_keys_have_the_exact_mean_squared_cosine(c):
    d = 16
    exact = 1 - (d - 1) / d * (1 - c * c) * hyp2f1(1, 1, d / 2 + 1, c * c)
    mean, error = pair_moment(EquicorrelatedKeys(c), 2, d)
    assert abs(mean - exact) < 4 * error
    other, _ = pair_moment(EquicorrelatedKeys(min(c + 0.1, 1.0)), 2, d)
    assert abs(other - exact) > 4 * error or c == 0.0


@pytest.mark.parametrize("fixed", [False, True])
def test_equicorrelated_keys_without_unit_norm_have_expected_inner_product_c(fixed):
    mean, error = pair_moment(EquicorrelatedKeys(0.4, unit_norm=False, fixed_mean=fixed), 1, 16)
    assert abs(mean - 0.4) < 4 * error


def test_equicorrelated_expected_cosine_is_c_up_to_order_one_over_d():
    for d in (16, 64):
        mean, error = pair_moment(EquicorrelatedKeys(0.6), 1, d)
        assert abs(mean - 0.6) < 1 / d + 4 * error


def test_fixed_mean_has_unit_length():
    keys = EquicorrelatedKeys(1.0, unit_norm=False, fixed_mean=True).sample(np.random.default_rng(1), 3, 8)
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), 1, rtol=1e-12)
    loose = EquicorrelatedKeys(1.0, unit_norm=False).sample(np.random.default_rng(1), 3, 8)
    assert abs(np.linalg.norm(loose[0]) - 1) > 1e-3


def test_a_fork_draws_other_keys_about_the_same_common_key():
    stream = EquicorrelatedKeys(0.9).start(np.random.default_rng(2), 64)
    further = stream.fork(np.random.default_rng(9)).draw(500)
    keys = stream.draw(500)
    assert not np.array_equal(keys, further)
    direction = keys.mean(axis=0) / np.linalg.norm(keys.mean(axis=0))
    assert further.mean(axis=0) @ direction > 0.9


@pytest.mark.parametrize("c", [-0.1, 1.1, math.nan])
def test_a_correlation_out_of_range_is_refused(c):
    with pytest.raises(ValueError, match="correlation must be a number from 0 to 1"):
        EquicorrelatedKeys(c)


def test_array_keys_and_values_share_their_random_order(pairs_file):
    file = np.load(pairs_file)
    keys = ArrayKeys(str(pairs_file), "k").start(np.random.default_rng(7), 12).draw(40)
    values = ArrayValues(str(pairs_file), "v").start(np.random.default_rng(7), 10).draw(40)
    row = {tuple(k): tuple(v) for k, v in zip(file["k"], file["v"], strict=True)}
    assert all(row[tuple(k)] == tuple(v) for k, v in zip(keys, values, strict=True))
    assert not np.array_equal(keys, file["k"])


def test_array_keys_in_given_order_are_the_file(pairs_file):
    keys = ArrayKeys(str(pairs_file), "k", order="given").sample(np.random.default_rng(7), 40, 12)
    np.testing.assert_array_equal(keys, np.load(pairs_file)["k"])


def test_codewords_that_were_not_stored_come_from_the_rest_of_the_file(pairs_file):
    stream = ArrayValues(str(pairs_file), "v").start(np.random.default_rng(7), 10)
    stored, others = stream.draw(15), stream.others(np.random.default_rng(0), 15, 25)
    together = np.concatenate([stored, others])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(np.load(pairs_file)["v"], axis=0))


def test_the_digest_is_that_of_the_numbers_not_of_the_file(tmp_path, pairs_file):
    rows = np.load(pairs_file)["k"]
    np.save(tmp_path / "a.npy", rows)
    np.savez_compressed(tmp_path / "b.npz", other=rows)
    np.save(tmp_path / "c.npy", rows + 1e-9)
    same = {ArrayKeys(str(tmp_path / f)).sha256() for f in ("a.npy", "b.npz")}
    assert same == {ArrayKeys(str(pairs_file), "k").sha256()}
    assert ArrayKeys(str(tmp_path / "c.npy")).sha256() not in same
    np.save(tmp_path / "d.npy", rows.reshape(rows.shape[1], rows.shape[0]))  # the same bytes, other rows
    assert ArrayKeys(str(tmp_path / "d.npy")).sha256() not in same


def broken(tmp_path, kind):
    path = tmp_path / f"{kind}.npy"
    arrays = {
        "nan": np.array([[1.0, 2.0], [np.nan, 0.0]]),
        "one_axis": np.ones(5),
        "three_axes": np.ones((2, 3, 4)),
        "empty": np.ones((0, 3)),
        "complex": np.ones((3, 3)) * 1j,
        "text": np.array([["a", "b"]]),
    }
    if kind in arrays:
        np.save(path, arrays[kind])
    elif kind == "pickled":
        np.save(path, np.array([[object()]]), allow_pickle=True)
    elif kind == "garbage":
        path.write_bytes(b"not an array")
    elif kind == "truncated":
        np.save(path, np.ones((100, 100)))
        path.write_bytes(path.read_bytes()[:500])
    elif kind == "lying_header":
        np.save(path, np.ones((2, 2)))
        path.write_bytes(path.read_bytes().replace(b"(2, 2), }      ", b"(99999999999,2)")[:200])
    return str(path)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("nan", "nan or inf in 1 rows, the first is 1"),
        ("one_axis", r"\(N, dim\) with rows, got shape \(5,\)"),
        ("three_axes", r"got shape \(2, 3, 4\)"),
        ("empty", r"got shape \(0, 3\)"),
        ("complex", "real numbers, got dtype complex128"),
        ("text", "real numbers"),
        ("pickled", "not an .npy or .npz file"),
        ("garbage", "not an .npy or .npz file"),
        ("truncated", "not an .npy or .npz file"),
        ("lying_header", "not an .npy or .npz file"),
        ("missing", "cannot be read: No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_reason(tmp_path, kind, told):
    with pytest.raises(ValueError, match=told):
        ArrayKeys(broken(tmp_path, kind))


def test_the_name_in_the_file_is_asked_for_and_checked(pairs_file):
    with pytest.raises(ValueError, match="name must be given, .* holds 2 arrays: k, v"):
        ArrayKeys(str(pairs_file))
    with pytest.raises(ValueError, match="'kk' does not exist. Did you mean 'k'"):
        ArrayKeys(str(pairs_file), "kk")


def test_noisy_cues_have_the_cosine_and_the_norm_of_their_keys(rng):
    keys = rng.standard_normal((50, 8))
    cues = noisy_cues(np.random.default_rng(1), keys, 0.6)
    np.testing.assert_allclose(np.linalg.norm(cues, axis=1), np.linalg.norm(keys, axis=1), rtol=1e-12)
    cosine = np.einsum("nd,nd->n", cues, keys) / np.einsum("nd,nd->n", keys, keys)
    np.testing.assert_allclose(cosine, 0.6, rtol=1e-12)
    np.testing.assert_array_equal(noisy_cues(np.random.default_rng(1), keys[:7], 0.6), cues[:7])


def test_more_rows_than_a_file_holds_are_refused(pairs_file):
    with pytest.raises(ValueError, match="at most 40 for these keys, got 41"):
        ArrayKeys(str(pairs_file), "k").sample(np.random.default_rng(0), 41, 12)
