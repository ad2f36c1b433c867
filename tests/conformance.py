"""What every registered feature map, write rule, read-out and ensemble must do, as functions that raise."""

import numpy as np

from capmem.feature_maps import Dpfp, EluPlusOne, Identity, ReLU

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


def check_rule_is_its_quadratic_form(rule, rng):
    """Reading S with features is K V, whatever the sizes of the writes."""
    features, values = rng.standard_normal((2, 50, 8)), rng.standard_normal((2, 50, 5))
    state = rule.init(8, 5, batch=(2,))
    cuts = [0, 1, 17, 50]
    for a, b in zip(cuts, cuts[1:], strict=False):
        before = state.S.copy()
        later = rule.write(state, features[:, a:b], values[:, a:b])
        np.testing.assert_array_equal(state.S, before)
        state = later
    kernel = np.einsum("bif,bjf->bij", features, features)
    np.testing.assert_allclose(features @ rule.matrix(state), kernel @ values, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(state.z, features.sum(axis=1), rtol=1e-12, atol=1e-12)


def check_ensemble_draws_in_chunks(ensemble, dim):
    whole = ensemble.sample(np.random.default_rng(3), 30, dim)
    stream = ensemble.start(np.random.default_rng(3), dim)
    chunks = [stream.draw(n) for n in (1, 12, 17)]
    assert whole.shape == (30, dim)
    np.testing.assert_array_equal(np.concatenate(chunks), whole)
    np.testing.assert_array_equal(ensemble.sample(np.random.default_rng(3), 11, dim), whole[:11])
    assert not np.array_equal(ensemble.sample(np.random.default_rng(4), 30, dim), whole)
