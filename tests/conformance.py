"""What every registered feature map, write rule, read-out and ensemble must do, as functions that raise."""

import itertools
import math
import warnings
from dataclasses import replace

import array_api_strict
import numpy as np
import pytest

from capmem.feature_maps import (
    CosFormer,
    Dpfp,
    ElementwiseMap,
    EluPlusOne,
    Exp,
    Identity,
    OverflowWarning,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    ReLU,
    SiLU,
    SoftmaxFeatures,
    Softplus,
    SquaredReLU,
    Taylor,
    UnderflowWarning,
)
from capmem.write_rules import Decay, Delta, GatedDecay, GatedDelta, Hebbian, LeastSquares, Oja

FEATURE_MAPS = [
    Identity(),
    ReLU(),
    SquaredReLU(),
    EluPlusOne(),
    Exp(),
    Softplus(),
    SiLU(),
    Dpfp(1),
    Dpfp(2),
    Dpfp(3),
    Dpfp(16),
    PositiveRandomFeatures(),
    PositiveRandomFeatures(100, orthogonal=False),
    PositiveRandomFeatures(100, hyperbolic=True, seed=3),
    RandomFourierFeatures(),
    RandomFourierFeatures(40, seed=3),
    Taylor(),
    Taylor(compressed=False),
    Taylor(order=1),
    Polynomial(1),
    Polynomial(2),
    Polynomial(3),
    CosFormer(),
    CosFormer(max_length=300),
    SoftmaxFeatures(),
    RandomReLU(),
    RandomReLU(40, seed=3),
]


def reference_dpfp(x, nu):
    """DPFP from its index formula: component (i, j) is r_j r_{(j - i) mod 2d}."""
    r = np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis=-1)
    two_d = r.shape[-1]
    return np.stack([r[..., j] * r[..., (j - i) % two_d] for i in range(1, nu + 1) for j in range(two_d)], axis=-1)


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def by_features(features):
    """The kernel of a map, from an independent formula for its features."""
    return lambda phi, x, y: features(phi, x) @ features(phi, y).T


def taylor_kernel(phi, x, y):
    u = x @ y.T / math.sqrt(x.shape[1])
    return 1 + u + (u**2 / 2 if phi.order == 2 else 0)


def cosformer_kernel(phi, x, y):
    i, j = np.arange(1, len(x) + 1)[:, None], np.arange(1, len(y) + 1)
    return np.maximum(x, 0) @ np.maximum(y, 0).T * np.cos(np.pi * (i - j) / (2 * phi.max_length))


def arc_cosine_kernel(phi, x, y):
    """E max(w.x, 0) max(w.y, 0) by quadrature in the plane of x and y: the radius gives 2, the angle the rest."""
    angle = np.arccos(np.clip(unit(x) @ unit(y).T, -1, 1))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = (math.pi - angle[..., None]) / 2  # both are positive on an arc of length pi - angle
    arc = np.cos(half * nodes + angle[..., None] / 2) * np.cos(half * nodes - angle[..., None] / 2)
    sizes = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
    return sizes * (arc @ weights * half[..., 0]) / math.pi


# The kernel of each map by a formula of its own: what it is, or for a random map, what it approximates.
REFERENCE = {
    Identity: by_features(lambda phi, x: x),
    ReLU: by_features(lambda phi, x: np.maximum(x, 0)),
    SquaredReLU: by_features(lambda phi, x: np.maximum(x, 0) ** 2),
    EluPlusOne: by_features(lambda phi, x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))),
    Exp: by_features(lambda phi, x: np.exp(x)),
    Softplus: by_features(lambda phi, x: np.log1p(np.exp(x))),
    SiLU: by_features(lambda phi, x: x / (1 + np.exp(-x))),
    Dpfp: by_features(lambda phi, x: reference_dpfp(x, phi.nu)),
    PositiveRandomFeatures: lambda phi, x, y: np.exp(x @ y.T / math.sqrt(x.shape[1])),
    RandomFourierFeatures: lambda phi, x, y: np.exp(
        -np.sum((unit(x)[:, None] - unit(y)) ** 2, axis=-1) / 2,
    ),
    Taylor: taylor_kernel,
    Polynomial: lambda phi, x, y: (x @ y.T) ** phi.degree,
    CosFormer: cosformer_kernel,
    SoftmaxFeatures: by_features(lambda phi, x: np.concatenate([softmax(x), softmax(-x)], axis=-1)),
    RandomReLU: arc_cosine_kernel,
}


def is_random(phi):
    return hasattr(phi, "seed")


def expected_rank(phi, d):
    """The dimension that the features of random keys span; D unless a map is known to waste some of it."""
    if isinstance(phi, Dpfp):
        return 2 * d * min(phi.nu, d - 1)
    if isinstance(phi, SoftmaxFeatures):
        return 2 * d - 1
    if isinstance(phi, Taylor):
        return replace(phi, compressed=True).width(d)
    return phi.width(d)


def check_width(phi, rng):
    for d in (2, 5, 16):
        assert phi(rng.standard_normal((3, d))).shape[-1] == phi.width(d)


def check_rank(phi, rng):
    d = 7 if isinstance(phi, Polynomial) else 16
    features = phi(rng.standard_normal((phi.width(d) + 40, d)))
    assert np.linalg.matrix_rank(features) == expected_rank(phi, d)


def check_sign(phi, rng):
    features = phi(rng.standard_normal((200, 9)))
    assert (features.min() < 0) == phi.signed


def check_kernel(phi, rng):
    """The kernel is the map's own formula, and what the features give: to rounding, or on average over draws."""
    x, y = rng.standard_normal((6, 9)), rng.standard_normal((5, 9))
    if is_random(phi):
        x, y = unit(x), unit(y)
    expected = REFERENCE[type(phi)](phi, x, y)
    np.testing.assert_allclose(phi.kernel(x, y), expected, rtol=1e-12, atol=1e-12)
    if not is_random(phi):
        np.testing.assert_allclose(phi(x) @ phi(y).T, expected, rtol=1e-12, atol=1e-12)
        assert (expected.min() >= 0) or not phi.positive_kernel
        return
    drawn = np.stack([p(x) @ p(y).T for p in (replace(phi, seed=s) for s in range(300))])
    error = drawn.std(axis=0, ddof=1) / len(drawn) ** 0.5
    assert (np.abs(drawn.mean(axis=0) - expected) < 4 * error).all()
    assert (drawn.min() >= 0) or not phi.positive_kernel


def check_finite(phi, rng):
    """Whatever the size of keys: finite, or a warning that counts; stored, or a warning that counts."""
    for dtype, norm in itertools.product((np.float32, np.float64), (1e-3, 1.0, 1e3)):
        x = (norm * unit(rng.standard_normal((20, 16)))).astype(dtype)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            features = phi(x)
        told = {w.category: str(w.message) for w in caught}
        bad, lost = int((~np.isfinite(features)).sum()), int((~features.any(axis=-1)).sum())
        assert features.dtype == dtype
        assert bool(bad) == told.get(OverflowWarning, "").startswith(f"{bad} of {features.size} features")
        assert bool(lost) == told.get(UnderflowWarning, "").startswith(f"{lost} of 20 keys")
        assert set(told) <= {OverflowWarning, UnderflowWarning}


def check_no_floor(phi, rng):
    """Features of large keys that are never negative come close to zero: nothing is added to them."""
    features = phi(48 * unit(rng.standard_normal((30, 16))))
    assert phi.signed or features.min() < 1e-8 * features.max()


def check_precision(phi, rng):
    """Single precision costs some 1e-5: of each feature where none cancels, else of the key's largest."""
    x = rng.uniform(-20, 20, (40, 16)) / (4 if isinstance(phi, PositiveRandomFeatures) else 1)
    exact, rounded = phi(x.astype(np.float32).astype(np.float64)), phi(x.astype(np.float32))
    relative = isinstance(phi, ElementwiseMap) or (exact > 0).all()
    scale = np.abs(exact) if relative else np.abs(exact).max(axis=-1, keepdims=True)
    assert (np.abs(rounded - exact) <= 3e-5 * scale).all()


def check_batches(phi, rng):
    x = rng.standard_normal((2, 3, 4, 6))
    np.testing.assert_allclose(phi(x)[1, 2], phi(x[1, 2]), rtol=1e-12, atol=1e-14)
    assert phi.kernel(x, x[..., :3, :]).shape == (2, 3, 4, 3)


def check_input(phi, rng):
    """Integers and single vectors are refused, and the argument is left as it was."""
    x = rng.standard_normal((5, 6))
    x.setflags(write=False)
    phi(x)
    for wrong in (np.arange(12).reshape(3, 4), x[0]):
        try:
            phi(wrong)
        except ValueError as error:
            assert "keys must" in str(error)
        else:
            raise AssertionError("not refused")


def check_draws(phi, rng):
    """Two calls agree; a random map depends on its seed alone, and 0 is a seed like another."""
    x = rng.standard_normal((5, 6))
    np.testing.assert_array_equal(phi(x), phi(x))
    if is_random(phi):
        by_seed = [replace(phi, seed=s)(x) for s in (0, 1, 2, 0)]
        np.testing.assert_array_equal(by_seed[0], by_seed[3])
        assert all(not np.array_equal(a, b) for a, b in itertools.combinations(by_seed[:3], 2))


def check_library(phi, rng):
    """The same numbers from a strict array-API library, in its arrays and in the dtype given."""
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        x = rng.standard_normal((2, 5, 6)).astype(dtype)
        given = array_api_strict.asarray(x)
        for strict, plain in ((phi(given), phi(x)), (phi.kernel(given, given), phi.kernel(x, x))):
            assert strict.dtype == given.dtype
            np.testing.assert_allclose(np.asarray(strict), plain, rtol=tolerance, atol=tolerance)


MAP_CHECKS = [
    check_width,
    check_rank,
    check_sign,
    check_kernel,
    check_finite,
    check_no_floor,
    check_precision,
    check_batches,
    check_input,
    check_draws,
    check_library,
]


def by_loop(rule, keys, values, step=None, gates=None):
    """S and z of a rule by its recurrence, one pair after the other, in float64."""
    d, v = keys.shape[1], values.shape[1]
    S, z = np.zeros((d, v)), np.zeros(d)
    for i, (k, value) in enumerate(zip(keys, values, strict=True)):
        b = getattr(rule, "step_size", 1.0) if step is None else step[i]
        a = getattr(rule, "rate", 1.0) if gates is None else np.exp(gates[i])
        if isinstance(rule, GatedDecay) and gates is None:
            a = np.exp(rule.log_gates(k[None])[0])
        S, z = np.asarray(a)[..., None] * S if np.ndim(a) else a * S, a * z + k
        if isinstance(rule, Delta | GatedDelta):
            S = S + b * np.outer(k, value - S.T @ k)
        elif isinstance(rule, Oja):
            S = S + b * np.outer(k - S @ value, value)
        else:
            S = S + np.outer(k, value)
    if isinstance(rule, LeastSquares):
        S = np.linalg.solve(keys.T @ keys + rule.ridge * np.eye(d), keys.T @ values)
        if rule.ridge == 0:
            S = np.linalg.pinv(keys, rcond=1e-12) @ values
    return S, z


RULES = [
    Hebbian(),
    Delta(),
    Delta(0.4),
    Decay(0.9),
    Decay(1.0),
    GatedDecay(bias=1.0, temperature=4.0),
    GatedDelta(0.7, 0.95),
    Oja(0.3),
    LeastSquares(),
    LeastSquares(0.5),
]


def check_rule_is_its_recurrence(rule, rng, num_pairs):
    """Calls of any size give what the loop over single pairs gives, and change no argument."""
    keys, values = unit(rng.standard_normal((2, num_pairs, 8))), unit(rng.standard_normal((2, num_pairs, 5)))
    for cuts in ([0, num_pairs], [0, 1, 17, num_pairs], range(num_pairs + 1)):
        state = rule.init(8, 5, batch=(2,))
        for a, b in itertools.pairwise(cuts):
            before = state.S.copy(), state.z.copy()
            later = rule.write(state, keys[:, a:b], values[:, a:b])
            np.testing.assert_array_equal(state.S, before[0])
            np.testing.assert_array_equal(state.z, before[1])
            state = later
        for item in range(2):
            S, z = by_loop(rule, keys[item], values[item])
            np.testing.assert_allclose(rule.matrix(state)[item], S, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(state.z[item], z, rtol=1e-12, atol=1e-12)


def check_ensemble_draws_in_chunks(ensemble, dim):
    """All randomness is the generator's; a nested law has the same rows in chunks of any size."""
    count = min(30, ensemble.max_pairs(dim) or 30)
    whole = ensemble.sample(np.random.default_rng(3), count, dim)
    assert whole.shape == (count, dim)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(ensemble.sample(np.random.default_rng(3), count, dim), whole)
    assert not np.array_equal(ensemble.sample(np.random.default_rng(4), count, dim), whole)
    few = ensemble.sample(np.random.default_rng(3), count // 3, dim)
    assert np.array_equal(few, whole[: count // 3]) == ensemble.nested
    if ensemble.nested:
        stream = ensemble.start(np.random.default_rng(3), dim)
        chunks = [stream.draw(n) for n in (1, 0, count // 3, count - count // 3 - 1)]
        np.testing.assert_array_equal(np.concatenate(chunks), whole)


def check_ensemble_has_no_more_rows_than_it_says(ensemble, dim):
    limit = ensemble.max_pairs(dim)
    if limit is not None:
        with pytest.raises(ValueError, match=f"at most {limit} "):
            ensemble.sample(np.random.default_rng(0), limit + 1, dim)


def check_ensemble_forks(ensemble, dim):
    """A memory can be calibrated on other rows of the law, and taking them changes nothing."""
    count = min(30, ensemble.max_pairs(dim) or 30)
    stream, untouched = (ensemble.start(np.random.default_rng(3), dim) for _ in range(2))
    further = stream.fork(np.random.default_rng(9)).draw(count)
    rows = stream.draw(count)
    assert further.shape == (count, dim)
    assert not np.array_equal(further, rows)
    np.testing.assert_array_equal(rows, untouched.draw(count))


ENSEMBLE_CHECKS = [
    check_ensemble_draws_in_chunks,
    check_ensemble_has_no_more_rows_than_it_says,
    check_ensemble_forks,
]
