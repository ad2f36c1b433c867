"""Draws that experiments share are those that each would make alone, to the last bit."""

import numpy as np
import pytest

from capmem import normals
from capmem.batch_size import ALWAYS_CAREFUL, GROWING, MOST_TOGETHER, BatchSize
from capmem.ensembles import KEYS, VALUES, EquicorrelatedKeys, SphereValues
from capmem.feature_maps import FEATURE_MAPS
from capmem.normals import SharedNormals, SharedRows

SEED = (0, 7, 1)


def alone(count):
    return np.random.default_rng(SEED).standard_normal(count)


@pytest.fixture(autouse=True)
def forget():
    normals._sequence.cache_clear()
    normals._first_rows.cache_clear()


@pytest.mark.parametrize("sizes", [[5, (3, 4), 1], [(100, 2)], [1, 1, 1]], ids=str)
def test_shared_normals_are_those_of_the_generator_in_any_pieces(sizes):
    for _ in range(2):  # drawn, then found
        shared = SharedNormals(SEED)
        drawn = np.concatenate([shared.standard_normal(size).ravel() for size in sizes])
        np.testing.assert_array_equal(drawn, alone(drawn.size))


def test_numbers_beyond_those_that_are_kept_go_on_as_the_generator_does(monkeypatch):
    monkeypatch.setattr(normals, "LONGEST", 10)
    for sizes in ([4, 9, 5], [30], [10, 3], [12, 12]):
        shared = SharedNormals(SEED)
        drawn = np.concatenate([shared.standard_normal(size) for size in sizes])
        np.testing.assert_array_equal(drawn, alone(drawn.size))
    assert normals._sequence(SEED)._numbers.size == 10


def test_a_second_reader_draws_nothing(monkeypatch):
    SharedNormals(SEED).standard_normal(20)
    monkeypatch.setattr(normals._sequence(SEED), "_rng", None)
    np.testing.assert_array_equal(SharedNormals(SEED).standard_normal((5, 4)).ravel(), alone(20))


def test_another_seed_has_other_numbers():
    assert not np.array_equal(SharedNormals((0, 7, 0)).standard_normal(4), alone(4))


def test_what_is_shared_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        SharedNormals(SEED).standard_normal(4)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        SharedRows(SphereValues(), 3, SEED).draw(4)[0] = 1


@pytest.mark.parametrize("most", [0, normals.MOST_ROWS])
def test_shared_rows_are_those_of_the_law_in_any_pieces(most, monkeypatch):
    monkeypatch.setattr(normals, "MOST_ROWS", most)
    shared, plain = SharedRows(SphereValues(), 3, SEED), SphereValues().start(np.random.default_rng(SEED), 3)
    for rows in (4, 2, 5):
        np.testing.assert_array_equal(shared.draw(rows), plain.draw(rows))
    others = [s.others(np.random.default_rng(1), 11, 6) for s in (shared, plain)]
    np.testing.assert_array_equal(*others)


def laws():
    found = [registry[name] for registry in (KEYS, VALUES) for name in registry.names()]
    return [law for law in found if law.only_normals]


@pytest.mark.parametrize("law", laws(), ids=lambda law: law.__name__)
def test_laws_that_say_so_draw_nothing_but_normals_and_give_the_same_rows(law):
    shared, plain = (law().start(source, 6) for source in (SharedNormals(SEED), np.random.default_rng(SEED)))
    np.testing.assert_array_equal(shared.draw(9), plain.draw(9))
    np.testing.assert_array_equal(shared.draw(70), plain.draw(70))


def test_equicorrelated_keys_are_among_them():
    assert EquicorrelatedKeys in laws()
    assert len(laws()) >= 7


def row_wise():
    return [name for name in FEATURE_MAPS.names() if FEATURE_MAPS[name].row_wise]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", row_wise())
def test_the_features_of_a_key_do_not_depend_on_how_many_follow(name, dtype):
    """What makes it right to compute features once for all checkpoints, however writes are cut."""
    phi, keys = FEATURE_MAPS[name](), np.random.default_rng(3).standard_normal((200, 24)).astype(dtype)
    places = np.arange(200)
    whole = phi(keys, places)
    for chosen in (slice(0, 1), slice(0, 7), slice(0, 65), slice(64, 100), slice(128, 129)):
        np.testing.assert_array_equal(phi(keys[chosen], places[chosen]), whole[chosen])


def test_random_maps_are_among_them():
    assert {"positive_random_features", "random_fourier_features", "random_relu", "relu", "dpfp"} <= set(row_wise())


def test_batches_shrink_where_trials_need_care_and_grow_again():
    size = BatchSize()
    assert size.next(1000) == MOST_TOGETHER
    size.failed(MOST_TOGETHER)
    assert size.next(1000) == MOST_TOGETHER // 2
    for _ in range(GROWING):
        size.went_well()
    assert size.next(1000) == MOST_TOGETHER
    for _ in range(ALWAYS_CAREFUL):
        assert not size.careful
        size.failed(1)
    assert size.careful
    assert size.next(1000) == 1
