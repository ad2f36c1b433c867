"""Kernel moments of random features less their mean over the keys, independent isotropic keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats, Moments, TheoryUnavailable
from capmem.theory.kernels import RandomKernel, exponential_mean
from capmem.theory.quadrature import gamma_rule, sphere_split
from capmem.theory.zonal import ZonalKeys

LENGTHS = 16


class _Direction(NamedTuple):
    """What one direction w gives at nodes of |w| (S,): F = E phi_w (p, S), and two moments of phi_w - F."""

    lengths: Floats
    weights: Floats
    mean: Floats
    square: float  # E |Cov phi_w|_F^2
    fourth: float  # E |phi_w - F|^4


def centred_moments(kernel: RandomKernel, keys: ZonalKeys, key_dim: int, cosine: float) -> Moments:
    """Return the moments of (phi(x) - E phi) . (phi(y) - E phi), the means being those of the map drawn.

    Notes
    -----
    E kappa^2 = sum_rs E tr(C_rs C_rs^T) / m^2 with C_rs = Cov(phi_r, phi_s) over the keys. For independent r, s
    that is E (k - h(x) - h(y) + E h)^2 with k the mean kernel and h(x) = E_y k(x, y).
    """
    if cosine != 1:
        raise TheoryUnavailable("no formula for noisy cues of centred random features")
    mean = keys.pairs(kernel.mean)
    shift = keys.given_key(mean)
    level = keys.of_key(shift)
    one = _one_direction(kernel, keys, key_dim)
    own = kernel.mean(keys.norms, keys.norms, np.ones(1)) - 2 * shift + level
    fourth = [one.fourth, 0.0, keys.of_key(own**2)]
    square = [one.square, 0.0, keys.of_pair((mean - shift[:, None, None] - shift[:, None] + level) ** 2)]
    if kernel.pair is not None:
        fourth[1], square[1] = _orthogonal(keys, key_dim, one)
    shares = np.array(kernel.shares())
    return Moments(keys.of_key(own), float(shares @ fourth), 0.0, float(shares @ square))


def _one_direction(kernel: RandomKernel, keys: ZonalKeys, key_dim: int) -> _Direction:
    half, weights = gamma_rule(key_dim / 2, LENGTHS)
    lengths = np.sqrt(2 * half)
    t, t_weights = sphere_split(key_dim)
    radius = keys.norms[:, None]
    phi = kernel.features(lengths[:, None, None] * radius * t, radius)
    mean = np.einsum("psrt,r,t->ps", phi, keys.weights, t_weights)
    phi = phi - mean[:, :, None, None]
    covariance = np.einsum("psrt,qsrt,r,t->spq", phi, phi, keys.weights, t_weights)
    fourth = np.einsum("srt,r,t->s", np.sum(phi**2, axis=0) ** 2, keys.weights, t_weights)
    square = np.sum(covariance**2, axis=(1, 2))
    return _Direction(lengths, weights, mean, float(weights @ square), float(weights @ fourth))


def _orthogonal(keys: ZonalKeys, key_dim: int, one: _Direction) -> tuple[float, float]:
    """Return what two orthogonal directions give for M2 and m2, exp features.

    With F(w) = E f_w: E f_w^i f_w'^j = E e^(-(i+j) x^2/2) 0F1(; d/2; (i^2 |w|^2 + j^2 |w'|^2) x^2 / 4). The
    hyperbolic map has two features a direction, of half the size each, and comes to the same.
    """
    mean = np.sum(one.mean, axis=0) / len(one.mean) ** 0.5
    chances = np.outer(one.weights, one.weights)
    powers = [np.ones_like(mean), mean, mean**2]

    def joint(i: int, j: int) -> Floats:
        lengths = (i * one.lengths[:, None]) ** 2 + (j * one.lengths) ** 2
        x = keys.norms**2
        values = np.exp(-(i + j) * x / 2) * exponential_mean(key_dim, lengths[..., None] * x)
        return np.asarray(values @ keys.weights)

    covariance = joint(1, 1) - np.outer(mean, mean)
    signs = (1, -2, 1)
    fourth = sum(
        signs[i] * signs[j] * joint(i, j) * np.outer(powers[2 - i], powers[2 - j]) for i in range(3) for j in range(3)
    )
    return float(np.sum(chances * fourth)), float(np.sum(chances * covariance**2))
