"""What every registered feature map, write rule, read-out and ensemble must do, as functions that raise."""

import itertools

import numpy as np

from capmem.feature_maps import Dpfp, EluPlusOne, Identity, ReLU
from capmem.write_rules import Decay, Delta, GatedDecay, GatedDelta, Hebbian, LeastSquares, Oja

FEATURE_MAPS = [Identity(), ReLU(), EluPlusOne(), Dpfp(1), Dpfp(2), Dpfp(3)]


def reference_dpfp(x, nu):
    """DPFP from its index formula: component (i, j) is r_j r_{(j - i) mod 2d}."""
    r = np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis=-1)
    two_d = r.shape[-1]
    return np.stack([r[..., j] * r[..., (j - i) % two_d] for i in range(1, nu + 1) for j in range(two_d)], axis=-1)


REFERENCE = {
    Identity: lambda phi, x: x,
    ReLU: lambda phi, x: np.maximum(x, 0),
    EluPlusOne: lambda phi, x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))),
    Dpfp: lambda phi, x: reference_dpfp(x, phi.nu),
}


def check_width(phi, rng):
    for d in (2, 5, 16):
        assert phi(rng.standard_normal((3, d))).shape[-1] == phi.width(d)


def check_rank(phi, rng, d=7):
    """The features of random keys span all of R^D."""
    width = phi.width(d)
    features = phi(rng.standard_normal((4 * width, d)))
    assert np.linalg.matrix_rank(features) == width


def check_sign(phi, rng):
    features = phi(rng.standard_normal((200, 9)))
    assert (features.min() < 0) == phi.signed


def check_kernel(phi, rng):
    x, y = rng.standard_normal((6, 9)), rng.standard_normal((5, 9))
    expected = np.einsum("if,jf->ij", REFERENCE[type(phi)](phi, x), REFERENCE[type(phi)](phi, y))
    np.testing.assert_allclose(phi.kernel(x, y), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(phi(x) @ phi(y).T, expected, rtol=1e-12, atol=1e-12)
    assert (expected.min() >= 0) or not phi.positive_kernel


def check_finite(phi, rng):
    for dtype in (np.float32, np.float64):
        for norm in (1e-3, 1.0, 1e3):
            x = rng.standard_normal((20, 16))
            x *= norm / np.linalg.norm(x, axis=1, keepdims=True)
            features = phi(x.astype(dtype))
            assert features.dtype == dtype
            assert np.isfinite(features).all()


def check_batches(phi, rng):
    x = rng.standard_normal((2, 3, 4, 6))
    whole, one = phi(x), phi(x[1, 2])
    np.testing.assert_array_equal(whole[1, 2], one)


MAP_CHECKS = [check_width, check_rank, check_sign, check_kernel, check_finite, check_batches]


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


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


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
    whole = ensemble.sample(np.random.default_rng(3), 30, dim)
    stream = ensemble.start(np.random.default_rng(3), dim)
    chunks = [stream.draw(n) for n in (1, 12, 17)]
    assert whole.shape == (30, dim)
    np.testing.assert_array_equal(np.concatenate(chunks), whole)
    np.testing.assert_array_equal(ensemble.sample(np.random.default_rng(3), 11, dim), whole[:11])
    assert not np.array_equal(ensemble.sample(np.random.default_rng(4), 30, dim), whole)
