"""Keys that share a common key u: draws of u, and averages over a coordinate given u."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from capmem.theory.base import Floats, TheoryUnavailable
from capmem.theory.laws import KeyLaw, mean_norms
from capmem.theory.quadrature import normal_split

COORDINATES = 32768  # in all draws of u together: about as many draws as that makes
MOST = 2048  # draws
LEAST_DIM = 16  # below it, an expansion in 1/d is worse than no prediction
NORMS = 8  # of u
GRID = 257  # places at which averages over a coordinate are found; a cubic polynomial through four is within 1e-5


@lru_cache(maxsize=8)
def common_keys(key_dim: int, fixed_mean: bool) -> tuple[tuple[float, Floats], ...]:
    """Return draws of u: for each norm, the chance of one draw and draws (r, d) of that norm.

    Norms are Gauss nodes of chi_d / sqrt(d), directions are seeded, as many as the norm has weight, and -u stands
    beside each u.
    """
    pairs = int(np.clip(COORDINATES // key_dim, 64, MOST)) // 2
    norms, weights = mean_norms(KeyLaw(correlation=0.5, fixed_mean=fixed_mean), key_dim, NORMS)
    rng = np.random.default_rng(0)
    found = []
    for norm, weight in zip(norms, weights, strict=True):
        u = rng.standard_normal((max(round(pairs * weight), 1), key_dim))
        u *= norm / np.linalg.norm(u, axis=1, keepdims=True)
        u = np.concatenate([u, -u])
        u.setflags(write=False)
        found.append((weight / len(u), u))
    return tuple(found)


def blocks(law: KeyLaw, key_dim: int) -> Iterator[tuple[float, Floats]]:
    """Yield the draws of u of one norm (r, d), and the chance of each of them.

    Raises
    ------
    TheoryUnavailable
        Where a coordinate has no spread given u, or unit keys have too few dimensions.
    """
    require_dims(law, key_dim)
    if key_dim == 1 or law.correlation == 1:
        raise TheoryUnavailable("no formula for such a map of keys at d = 1 or correlation 1")
    yield from common_keys(key_dim, law.fixed_mean)


def require_dims(law: KeyLaw, key_dim: int) -> None:
    """Raise TheoryUnavailable for unit keys about a common key in few dimensions."""
    if law.unit and key_dim < LEAST_DIM:
        raise TheoryUnavailable(f"no formula for such a map of correlated unit keys below d = {LEAST_DIM}")


def per_coordinate(law: KeyLaw, u: Floats, averages: Callable[[Floats, Floats], Floats]) -> Floats:
    """Return averages over the coordinates of sqrt(c) u + sqrt(1-c) g, given u.

    Parameters
    ----------
    law : KeyLaw
        c.
    u : array (r, d)
        Draws of the common key.
    averages : callable
        averages(nodes (G, K), weights (G, K)) -> (G, F), at G values of one coordinate of u.

    Returns
    -------
    array (r, d, F)
    """
    edge = float(np.abs(u).max()) * (1 + 1e-9)
    grid = np.linspace(-edge, edge, GRID)
    spread = ((1 - law.correlation) / u.shape[-1]) ** 0.5
    found = averages(*normal_split(law.correlation**0.5 * grid, spread, size=24, reach=9.0))
    place = (u + edge) / (grid[1] - grid[0])
    below = np.clip(place.astype(int), 1, GRID - 3)
    t = place - below
    cubic = (-t * (t - 1) * (t - 2) / 6, (t * t - 1) * (t - 2) / 2, -t * (t + 1) * (t - 2) / 2, t * (t * t - 1) / 6)
    total = np.zeros((*u.shape, found.shape[-1]))
    for step, share in enumerate(cubic, start=-1):
        total += share[..., None] * found[below + step]
    return total
