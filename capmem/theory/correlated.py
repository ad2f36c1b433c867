"""Keys that share a common key u: draws of u, and the law of a coordinate given u."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv

from capmem.theory.base import Floats, TheoryUnavailable
from capmem.theory.laws import KeyLaw
from capmem.theory.quadrature import normal_split

COORDINATES = 32768  # in all draws of u together: as many draws as that makes
LEAST_DIM = 16  # below it, an expansion in 1/d is worse than no prediction
BLOCK = 4096  # coordinates handled at a time, so that a block fits the cache of a core


@lru_cache(maxsize=8)
def common_keys(key_dim: int, fixed_mean: bool) -> Floats:
    """Return draws of u (R, d), all of equal weight.

    Norms are the midpoint quantiles of chi_d / sqrt(d), directions are seeded, and -u stands beside each u.
    """
    pairs = int(np.clip(COORDINATES // key_dim, 64, 2048)) // 2
    u = np.random.default_rng(0).standard_normal((pairs, key_dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    if not fixed_mean:
        levels = (np.arange(pairs) + 0.5) / pairs
        u *= np.sqrt(2 * gammaincinv(key_dim / 2, levels) / key_dim)[:, None]
    u = np.stack([u, -u], axis=1).reshape(-1, key_dim)
    u.setflags(write=False)
    return u


def blocks(law: KeyLaw, key_dim: int) -> Iterator[Floats]:
    """Yield the draws of u, some at a time.

    Raises
    ------
    TheoryUnavailable
        Where a coordinate has no spread given u, or unit keys have too few dimensions.
    """
    require_dims(law, key_dim)
    if key_dim == 1 or law.correlation == 1:
        raise TheoryUnavailable("no formula for such a map of keys at d = 1 or correlation 1")
    u = common_keys(key_dim, law.fixed_mean)
    yield from np.array_split(u, -(-u.size // BLOCK))


def require_dims(law: KeyLaw, key_dim: int) -> None:
    """Raise TheoryUnavailable for unit keys about a common key in few dimensions."""
    if law.unit and key_dim < LEAST_DIM:
        raise TheoryUnavailable(f"no formula for such a map of correlated unit keys below d = {LEAST_DIM}")


def coordinate_law(law: KeyLaw, u: Floats) -> tuple[Floats, Floats, float]:
    """Return nodes (r, d, K) and weights of the coordinates of sqrt(c) u + sqrt(1-c) g, and their spread."""
    spread = ((1 - law.correlation) / u.shape[-1]) ** 0.5
    x, weights = normal_split(law.correlation**0.5 * u, spread, size=24, reach=9.0)
    return x, weights, spread
