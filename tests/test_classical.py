"""Classical capacities against published numbers, and against simulation where a number could be right by chance."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.special import erfinv, lambertw, ndtr

from capmem import geometry
from capmem.theory import classical


def test_hopfield_limit_is_the_published_one():
    found = classical.hopfield_limit()
    assert found.load == pytest.approx(0.137906, abs=5e-7)
    assert found.overlap == pytest.approx(0.9674, abs=5e-5)
    assert found.error == pytest.approx(0.0163, abs=5e-5)


def test_the_hopfield_overlap_solves_the_saddle_point_equations():
    """m = erf(m / sqrt(2 alpha r)), r = 1 / (1 - C)^2: a solution at alpha_c, and none just above."""

    def gap(m, alpha):
        root = math.sqrt(2) * erfinv(m)  # m / sqrt(alpha r)
        C = math.sqrt(2 / math.pi) * math.exp(-root * root / 2) * root / m
        return m / root - math.sqrt(alpha) / (1 - C)

    found = classical.hopfield_limit()
    overlaps = np.linspace(0.9, 0.99, 2001)
    assert gap(found.overlap, found.load) == pytest.approx(0, abs=1e-7)
    assert max(gap(m, found.load * 1.001) for m in overlaps) < 0
    assert max(gap(m, found.load * 0.999) for m in overlaps) > 0


def test_constants_of_sparse_memories():
    assert classical.willshaw_capacity() == pytest.approx(0.693147, abs=1e-6)
    assert classical.sparse_hebbian_capacity() == pytest.approx(0.721348, abs=1e-6)


@pytest.mark.parametrize("margin", [0.0, 0.5, 2.0])
def test_gardner_capacity_is_its_integral(margin):
    integral, _ = integrate.quad(
        lambda t: (t + margin) ** 2 * math.exp(-t * t / 2) / math.sqrt(2 * math.pi), -margin, 40
    )
    assert classical.gardner_capacity(margin) == pytest.approx(1 / integral, rel=1e-9)


def test_gardner_capacity_without_margin_is_two():
    assert classical.gardner_capacity() == pytest.approx(2, rel=1e-15)


def test_mceliece_at_a_thousand_neurons():
    assert classical.mceliece_capacity(1000) == pytest.approx(72.4, abs=0.05)
    assert classical.mceliece_capacity(1000, every_pattern=True) == pytest.approx(36.2, abs=0.05)


def test_welch_bound_of_order_one_is_that_of_geometry():
    assert classical.welch_bound(100, 16) == geometry.welch_bound(100, 16) == pytest.approx(0.2302, abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_no_set_of_vectors_beats_the_welch_bounds(order, rng):
    bound = classical.welch_bound(200, 4, order)
    assert 0 < bound <= float(geometry.max_coherence(rng.standard_normal((200, 4))))


def test_the_first_welch_bound_is_met_by_the_diagonals_of_the_icosahedron():
    golden = (1 + 5**0.5) / 2
    lines = np.array(
        [[0, 1, golden], [0, 1, -golden], [1, golden, 0], [1, -golden, 0], [golden, 0, 1], [-golden, 0, 1]]
    )
    found = float(geometry.max_coherence(lines))
    assert classical.welch_bound(6, 3, 1) == pytest.approx(found, rel=1e-12)


def test_the_second_welch_bound_is_sharper_for_many_vectors():
    assert classical.welch_bound(6, 3, 2) == 0 < classical.welch_bound(6, 3, 1)
    assert classical.welch_bound(60, 3, 2) == pytest.approx(((60 / 6 - 1) / 59) ** 0.25, rel=1e-12)
    assert classical.welch_bound(60, 3, 2) > classical.welch_bound(60, 3, 1)


def test_a_softmax_update_stays_within_ramsauers_bound(rng):
    dim, count, beta = 32, 200, 1.0
    patterns = rng.standard_normal((count, dim))
    patterns *= math.sqrt(dim) / np.linalg.norm(patterns, axis=1, keepdims=True)
    inner = patterns @ patterns.T
    weights = np.exp(beta * (inner - inner.max(axis=1, keepdims=True)))
    updated = weights / weights.sum(axis=1, keepdims=True) @ patterns
    errors = np.linalg.norm(updated - patterns, axis=1)
    separations = dim - (inner - 2 * dim * np.eye(count)).max(axis=1)
    # The fixed point lies within the error of a few more updates, which is of the size of the first.
    bounds = [
        classical.ramsauer_error_bound(count, beta, gap, math.sqrt(dim), 2 * error)
        for gap, error in zip(separations, errors, strict=True)
    ]
    assert (errors <= bounds).all()
    assert np.median(errors) > 1e-3 * np.median(bounds)


def test_separation_is_where_the_update_reaches_its_fixed_point():
    need = classical.ramsauer_separation(200, 1.0, math.sqrt(32))
    assert need == pytest.approx(2 / 200 + math.log(2 * 199 * 200 * 32), rel=1e-12)


@pytest.mark.parametrize(("beta", "radius", "dim", "base"), [(1, 3, 20, 3.1546), (1, 1, 75, 1.3719)])
def test_exponential_capacity_has_the_published_base(beta, radius, dim, base):
    found = classical.ramsauer_capacity(dim, beta, radius, 0.001)
    assert found.base == pytest.approx(base, abs=5e-5)
    assert found.valid
    assert found.patterns == pytest.approx(math.sqrt(0.001) * found.base ** ((dim - 1) / 4), rel=1e-12)


def test_exponential_capacity_agrees_with_lambert_w_and_does_not_overflow():
    b = 2 * 9 / 5
    a = 2 / 19 * (1 + math.log(2 * 9 * 0.001 * 19))
    found = classical.ramsauer_capacity(20, 1, 3, 0.001)
    assert found.base == pytest.approx(b / lambertw(math.exp(a) * b).real, rel=1e-12)
    assert math.isfinite(classical.ramsauer_capacity(2, 1e4, 30, 0.001).base)


def test_exponential_capacity_says_where_the_theorem_does_not_apply():
    assert not classical.ramsauer_capacity(4, 1, 1, 0.001).valid


@pytest.mark.parametrize(
    ("alphabet", "most"),
    [(4, 0.298), (8, 0.337), (16, 0.362), (27, 0.376), (64, 0.394), (256, 0.413), (1024, 0.427), (4096, 0.437),
     (65536, 0.453), (2**20, 0.465)],
)  # fmt: skip
def test_superposition_holds_the_known_bits_a_neuron(alphabet, most):
    found = optimize.minimize_scalar(
        lambda s: -classical.superposition_bits(s, alphabet), bounds=(0.1, 8), method="bounded"
    )
    assert -found.fun == pytest.approx(most, abs=6e-4)


def test_superposition_of_bits_is_best_at_many_items():
    assert classical.superposition_bits(1e-2, 2) == pytest.approx(1 / (2 * math.pi * math.log(2)), rel=1e-3)
    assert classical.superposition_bits(1e-2, 2) > classical.superposition_bits(0.5, 2)


@pytest.mark.parametrize(
    ("alphabet", "signal", "bits"), [(27, 4.634, 0.2155), (256, 5.355, 0.2733), (1024, 5.738, 0.2982)]
)
def test_superposition_at_99_percent(alphabet, signal, bits):
    assert classical.superposition_accuracy(signal, alphabet) == pytest.approx(0.99, abs=2e-5)
    assert classical.superposition_bits(signal, alphabet) == pytest.approx(bits, abs=1e-4)


def test_superposition_accuracy_of_a_draw(rng):
    trials, alphabet, signal = 20_000, 8, 1.5
    scores = rng.standard_normal((trials, alphabet))
    scores[:, 0] += signal
    right = (scores.argmax(axis=1) == 0).mean()
    expected = classical.superposition_accuracy(signal, alphabet)
    assert right == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / trials))
    assert classical.superposition_accuracy(0, alphabet) == pytest.approx(1 / alphabet, rel=1e-12)


SIGN_BITS = {0.05: 0.0500, 0.1: 0.0991, 0.138: 0.1333, 0.2: 0.1804, 0.5: 0.3013, 1: 0.3689, 2: 0.4108, 10: 0.4489}
GAUSSIAN_BITS = {0.1: 0.173, 0.5: 0.396, 1: 0.5, 2: 0.585, 10: 0.688}


@pytest.mark.parametrize(("load", "bits"), SIGN_BITS.items())
def test_bits_a_parameter_of_sign_values(load, bits):
    assert classical.hebbian_bits(load) == pytest.approx(bits, abs=5.1e-5)


@pytest.mark.parametrize(("load", "bits"), GAUSSIAN_BITS.items())
def test_bits_a_parameter_of_gaussian_values(load, bits):
    assert classical.hebbian_bits(load, "gaussian") == pytest.approx(bits, abs=5.1e-4)


def test_bits_a_parameter_have_their_limits():
    assert classical.hebbian_bits(1e5) == pytest.approx(1 / (math.pi * math.log(2)), rel=1e-4)
    assert classical.hebbian_bits(1e5, "gaussian") == pytest.approx(1 / (2 * math.log(2)), rel=1e-4)


def test_sign_errors_of_a_hebbian_state_are_those_behind_the_bits(rng):
    d, v, load = 256, 256, 0.5
    keys = rng.standard_normal((int(load * d), d)) / math.sqrt(d)
    values = rng.choice([-1.0, 1.0], size=(len(keys), v))
    wrong = (np.sign(keys @ (keys.T @ values)) != values).mean()
    expected = float(ndtr(-1 / math.sqrt(load)))  # 0.0786
    # |k|^2 fluctuates by sqrt(2 / d) around 1, which adds O(1 / d).
    assert wrong == pytest.approx(expected, rel=0.03)


def test_the_rank_floor_is_reached_by_least_squares_and_never_beaten(rng):
    pairs, width = 24, 9
    features = rng.standard_normal((pairs, width))
    values = np.eye(pairs)
    best = features @ np.linalg.lstsq(features, values, rcond=None)[0]
    hebbian = features @ features.T @ values / width
    floor = classical.rank_floor(pairs, width)
    assert ((best - values) ** 2).sum() / pairs == pytest.approx(floor, rel=1e-12)
    assert ((hebbian - values) ** 2).sum() / pairs > floor
    assert classical.rank_floor(8, 9) == 0


def test_copying_is_bounded_by_the_states_there_are():
    assert classical.copy_error_bound(3, 2, 4) == pytest.approx(1 - 2**3 / 4**2)
    assert classical.copy_error_bound(4, 2, 4) == classical.copy_error_bound(9, 2, 4) == 0
    assert classical.copy_error_bound(0, 10_000, 2) == 1
    assert classical.copy_bits_needed(2, 4) == 3
    assert classical.copy_error_bound(classical.copy_bits_needed(7, 5), 7, 5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: classical.gardner_capacity(-1), "margin must be a number of at least 0, got -1"),
        (lambda: classical.mceliece_capacity(1), "num_neurons must be an integer of at least 2, got 1"),
        (lambda: classical.welch_bound(9, 3, 0), "order must be an integer of at least 1, got 0"),
        (lambda: classical.welch_bound(9, 0, 2), "num_vectors, dim must be at least 1, got (9, 0)"),
        (lambda: classical.ramsauer_error_bound(0, 1, 1, 1), "num_patterns must be an integer of at least 1, got 0"),
        (lambda: classical.ramsauer_error_bound(9, 1, 1, 1, -1), "distance must be a number of at least 0, got -1"),
        (lambda: classical.ramsauer_separation(1, 1, 1), "num_patterns must be an integer of at least 2, got 1"),
        (lambda: classical.ramsauer_separation(9, 0, 1), "beta must be a number above 0, got 0"),
        (lambda: classical.ramsauer_capacity(9, 1, 1, 1), "failure must be a probability above 0 and below 1, got 1"),
        (lambda: classical.ramsauer_capacity(9, 1, 0, 0.5), "radius must be a number above 0, got 0"),
        (lambda: classical.superposition_accuracy(1, 1), "alphabet must be an integer of at least 2, got 1"),
        (lambda: classical.superposition_bits(0, 4), "signal must be a number above 0, got 0"),
        (lambda: classical.hebbian_bits(0), "load must be a number above 0, got 0"),
        (lambda: classical.hebbian_bits(1, "x"), "values 'x' does not exist. Allowed: sign, gaussian"),
        (lambda: classical.rank_floor(0, 4), "num_pairs must be an integer of at least 1, got 0"),
        (lambda: classical.copy_error_bound(-1, 4, 4), "state_bits must be a number of at least 0, got -1"),
        (lambda: classical.copy_bits_needed(0, 4), "length must be an integer of at least 1, got 0"),
    ],
)  # fmt: skip
def test_bad_input_gives_one_clear_line(call, told):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == told
