"""Expected top-1 accuracy against a codebook, isotropic keys, the identity map, values of fixed norm."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, stdtr

from capmem.theory.base import Floats
from capmem.theory.quadrature import Rule, gamma_rule, normal_rule, sphere_rule

FORMULA = "E_{T,u,z} q_s^(N-1) q_u^(M-N): a reading beats N-1 stored competitors and M-N others"
GRID = 16385  # (N-1)-th powers are taken of what it interpolates


@lru_cache(maxsize=4096)
def top1_accuracy(
    key_dim: int, value_dim: int, num_pairs: int, codebook_size: int, unit: bool, gain: float = 1.0
) -> float:
    """Return the probability that the reading has its largest inner product with its own value.

    Parameters
    ----------
    key_dim, value_dim : int
        d, and v of at least 2.
    num_pairs, codebook_size : int
        N, and M of at least N.
    unit : bool
        Keys on the sphere; otherwise Gaussian.
    gain : float
        c, the cosine of the cue.

    Notes
    -----
    x = c + sqrt(T/v) z is the part of the reading along its own value, Y = sqrt(x^2 + T chi^2_{v-1} / v) its
    size and C = x/Y. With F_n the distribution of a coordinate of a unit vector in n dimensions and t that of a
    competitor's value along the reading, q_u = F_v(C) and q_s = E_t F_d((x - Y t) / (1 - C t)); for Gaussian
    keys F_d(a) becomes Phi(a |k|) and |k|^2 is averaged over. A normal integral with independent Gaussian
    scores is up to 30% low in its place.
    """
    norms, norm_weights = (np.ones(1), np.ones(1)) if unit else _norms(key_dim)
    table = sphere_table(key_dim) if unit else ndtr
    total = 0.0
    for norm, weight in zip(norms, norm_weights, strict=True):
        noise, noise_weights = _noise_rule(key_dim, num_pairs, norm, unit)

        def score(a: Floats, norm: float = norm) -> Floats:
            return np.asarray(table(a * norm))

        chances = win(noise, value_dim, num_pairs, codebook_size, gain, score)
        total += float(weight * (noise_weights @ chances))
    return min(total, 1.0)


def _norms(key_dim: int) -> Rule:
    half, weights = gamma_rule(key_dim / 2, 4)
    return np.sqrt(2 * half), weights


def _noise_rule(key_dim: int, num_pairs: int, norm: float, unit: bool) -> Rule:
    """Return nodes and weights of the noise T given |k_i|; see :func:`capmem.theory.cosine.crosstalk_rule`."""
    others = num_pairs - 1
    if unit:
        mean, shape = others / key_dim, others * (key_dim + 2) / (2 * max(key_dim - 1, 1))
    else:
        mean, shape = others / norm**2, others / 2
    nodes, weights = gamma_rule(shape, 4 if unit else 3)
    return nodes * mean / shape, weights


def win(
    noise: Floats,
    value_dim: int,
    num_pairs: int,
    codebook_size: int,
    gain: float,
    score: Callable[[Floats], Floats],
    sizes: tuple[int, int, int] = (40, 5, 40),
) -> Floats:
    """Return the chance to beat all competitors given T (Q,), with so many nodes of z, u and t."""
    z, z_weights = normal_rule(sizes[0])
    half, u_weights = gamma_rule((value_dim - 1) / 2, sizes[1])
    t, t_weights = sphere_rule(value_dim, sizes[2])
    x = gain + np.sqrt(noise / value_dim)[:, None, None] * z[:, None]
    across = noise[:, None, None] * 2 * half / value_dim
    size = np.sqrt(x * x + across)
    cosine = x / size
    stored = score((x[..., None] - size[..., None] * t) / (1 - cosine[..., None] * t)) @ t_weights
    chance = stored ** (num_pairs - 1) * sphere_table(value_dim)(cosine) ** (codebook_size - num_pairs)
    return np.asarray(np.einsum("qzu,z,u->q", chance, z_weights, u_weights))


@lru_cache(maxsize=64)
def sphere_table(dim: int) -> Callable[[Floats], Floats]:
    """Return F_dim, the distribution function of one coordinate of a unit vector, from a table.

    a sqrt((dim-1)/(1-a^2)) has Student's t law with dim - 1 degrees of freedom.
    """
    if dim == 1:
        return lambda a: np.where(a >= 1, 1.0, np.where(a >= -1, 0.5, 0.0))
    edge = min(1.0, 12 / dim**0.5)
    grid = np.linspace(-edge, edge, GRID)
    with np.errstate(divide="ignore"):
        values = stdtr(dim - 1, grid * np.sqrt((dim - 1) / (1 - grid**2)))
    return lambda a: np.interp(a, grid, values)
