"""Top-1 without all scores: the same answer as with them, near ties and odd numbers included."""

from itertools import product

import numpy as np
import pytest

from capmem import top1
from capmem.comparison import Comparison
from capmem.metrics import top1_accuracy


def by_all_scores(retrieved, codebook, targets):
    """The definition, in float64: the share 1/k of the k best."""
    scores = retrieved.astype(float) @ np.swapaxes(codebook.astype(float), -1, -2)
    best = scores == scores.max(axis=-1, keepdims=True)
    return (best[..., np.arange(len(targets)), targets] / best.sum(axis=-1)).mean(axis=-1)


def noisy(rng, noise, shape, dtype="float32"):
    """Queries that are codewords (..., C, v) of norm 1 with noise, and the codewords."""
    codebook = rng.standard_normal(shape)
    codebook /= np.linalg.norm(codebook, axis=-1, keepdims=True)
    return (codebook + noise * rng.standard_normal(shape)).astype(dtype), codebook.astype(dtype)


@pytest.mark.parametrize("noise", [0.0, 0.2, 1.0, 50.0])
@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 700])
def test_it_is_the_share_of_best_scores(rng, noise, count):
    retrieved, codebook = noisy(rng, noise, (3, count, 12), "float64")
    expected = by_all_scores(retrieved, codebook, np.arange(count))
    np.testing.assert_array_equal(top1_accuracy(retrieved, codebook), expected)


def test_targets_may_stand_anywhere_and_repeat(rng):
    retrieved, codebook = noisy(rng, 0.3, (600, 9), "float64")
    targets = rng.integers(0, 600, 250)
    expected = by_all_scores(retrieved[targets], codebook, targets)
    assert top1_accuracy(retrieved[targets], codebook, targets) == expected
    assert top1_accuracy(retrieved[targets], codebook, targets[::-1].copy()) != expected


@pytest.mark.parametrize("where", [3, 120, 200, 799])
def test_an_equal_codeword_takes_its_share_wherever_it_stands(rng, where):
    retrieved, codebook = noisy(rng, 0.0, (800, 16))
    codebook[where] = codebook[0]
    won = top1.shares(np, retrieved, codebook, np.arange(800))
    assert won[0] == 0.5 and won[1] == 1


def test_a_codeword_that_is_better_by_one_bit_wins(rng):
    codebook = np.zeros((400, 4), np.float32)
    codebook[:, 1] = rng.uniform(-1, 0.5, 400)
    codebook[0] = [1, 0, 0, 0]
    codebook[300] = [np.nextafter(np.float32(1), np.float32(2)), 0, 0, 0]
    retrieved = np.array([[1, 0, 0, 0]], np.float32)
    assert top1_accuracy(retrieved, codebook) == 0
    assert top1_accuracy(retrieved, codebook, targets=np.array([300])) == 1


@pytest.mark.parametrize("kind", ["integers", "one_hot"])
def test_exact_ties_are_shared(rng, kind):
    book = rng.integers(-1, 2, (500, 5)) if kind == "integers" else np.eye(5)[rng.integers(0, 5, 500)]
    book = book.astype("float32")
    retrieved = rng.integers(-3, 4, (500, 5)).astype("float32")
    assert top1_accuracy(retrieved, book) == pytest.approx(by_all_scores(retrieved, book, np.arange(500)), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e-19, 1.0, 1e18, 1e37])
def test_no_scale_of_what_is_retrieved_changes_it(rng, scale):
    retrieved, codebook = noisy(rng, 0.2, (300, 10))
    plain = top1_accuracy(retrieved, codebook)
    assert 0.3 < plain < 0.9
    assert top1_accuracy(retrieved * np.float32(scale), codebook) == plain


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("row", [5, 290])
def test_what_is_not_finite_counts_as_wrong(rng, bad, row):
    retrieved, codebook = noisy(rng, 0.0, (300, 10))
    retrieved[row, 3] = bad
    assert top1_accuracy(retrieved, codebook) == pytest.approx(299 / 300)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_codeword_that_is_not_a_number_beats_nobody(rng):
    retrieved, codebook = noisy(rng, 0.0, (300, 10))
    codebook[250] = np.nan
    assert top1_accuracy(retrieved, codebook) == pytest.approx(299 / 300)


def test_nothing_retrieved_is_chance(rng):
    codebook = rng.standard_normal((300, 10))
    assert top1_accuracy(np.zeros((300, 10)), codebook) == pytest.approx(1 / 300)


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_neither_batches_nor_blocks_change_a_bit(rng, noise, monkeypatch):
    retrieved, codebook = noisy(rng, noise, (5, 400, 8))
    whole = top1.shares(np, retrieved, codebook, np.arange(400))
    alone = [top1.shares(np, r, c, np.arange(400)) for r, c in zip(retrieved, codebook, strict=True)]
    np.testing.assert_array_equal(whole, np.stack(alone))
    for first, scores in product((7, 64, 1000), (50, 2**12)):
        monkeypatch.setattr(top1, "FIRST", first)
        monkeypatch.setattr(top1, "SCORES", scores)
        np.testing.assert_array_equal(top1.shares(np, retrieved, codebook, np.arange(400)), whole)


def test_the_margin_covers_the_rounding_of_scores(rng):
    """Negative control: none does not."""
    retrieved, codebook = noisy(rng, 30.0, (1, 500, 64))
    own, margin = top1._own_scores(np, retrieved, codebook, np.arange(500), None)
    exact = np.einsum("nv,nv->n", retrieved[0].astype(float), codebook[0].astype(float))
    off = np.abs(own[0] - exact)
    assert (off < margin[0] / 2).all()
    assert (off > 0).any()


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_what_is_known_changes_nothing(rng, noise):
    retrieved, codebook = noisy(rng, noise, (3, 300, 8))
    given = np, retrieved, codebook, np.arange(300)
    known = top1.shares(*given, known=Comparison(retrieved, codebook))
    np.testing.assert_array_equal(known, top1.shares(*given))


def test_exact_ties_of_integers_are_shared_and_of_equal_codewords_wherever_they_stand(rng):
    minus_two = top1_accuracy(np.array([[1.0, 3.0]], "f4"), np.array([[-2.0, 0.0], [1.0, -1.0]], "f4"))
    assert minus_two == 0.5
    for count, dim in ((2, 5), (15, 54), (33, 7), (300, 10)):
        for _ in range(40):
            book = rng.standard_normal((count, dim)).astype("f4")
            book[-1] = book[0]
            assert top1_accuracy(book[:1] * np.float32(30), book) in (0, 0.5)
            whole = rng.integers(-3, 4, (2, count, dim)).astype("f4")
            np.testing.assert_allclose(top1_accuracy(*whole), by_all_scores(*whole, np.arange(count)), rtol=1e-5)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_targets_of_any_integer_type(rng, kind):
    retrieved, codebook = noisy(rng, 0.1, (300, 8), "float64")
    targets = np.arange(100, dtype=kind)
    assert top1_accuracy(retrieved[:100], codebook, targets) == top1_accuracy(retrieved[:100], codebook, np.arange(100))


def test_a_batch_of_one_is_read_against_many_and_many_against_one(rng):
    retrieved, codebook = noisy(rng, 0.2, (3, 200, 8), "float64")
    shared = top1_accuracy(retrieved, codebook[:1])
    np.testing.assert_array_equal(shared, [top1_accuracy(each, codebook[0]) for each in retrieved])
    alone = top1_accuracy(retrieved[:1], codebook)
    np.testing.assert_array_equal(alone, [top1_accuracy(retrieved[0], each) for each in codebook])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("count", [2, 300])
def test_a_codeword_that_is_infinite_counts_as_wrong_for_its_own_query(rng, count):
    retrieved, codebook = noisy(rng, 0.0, (count, 10))
    codebook[0, 0] = np.inf
    assert top1_accuracy(retrieved, codebook) == pytest.approx(1 - 1 / count)


def test_codewords_near_the_end_of_the_range_do_not_tie(rng):
    retrieved, codebook = noisy(rng, 0.2, (300, 10))
    plain = top1_accuracy(retrieved, codebook)
    assert top1_accuracy(retrieved * np.float32(2e18), codebook * np.float32(2e38)) == plain
