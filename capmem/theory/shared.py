"""Kernel moments of elementwise maps on keys that share a common key, by averaging over that key."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats, TrialMoments
from capmem.theory.correlated import blocks, per_coordinate
from capmem.theory.known import Known, by_dim
from capmem.theory.laws import KeyLaw
from capmem.theory.quadrature import normal_rule

FORMULA = (
    "given u, coordinates are independent up to the norm: m2 = sum_ab E(f_a f_b|u)^2, averaged over seeded draws of u"
)
KNOWN_ERROR = Known(
    "measured at c = .3, .6, .9, d >= 16: moments within 1.3% (M2 at d = 16: 2.3% high, 4.4% centred)",
    by_dim(0.044, 32, 0.013),
)

NORM_NODES = 3

Function = Callable[[Floats], Floats]


class Coordinates(NamedTuple):
    """Functions of one coordinate given u, and how they move with the norm of the key.

    Attributes
    ----------
    mean : array (r, d, W)
        E h(k_a), at nodes of what the other coordinates add to |x|^2.
    slope : array (r, d)
        Its derivative in |x|^2 / E|x|^2.
    pull : array (r, d)
        Covariance of h(k_a) with its own part of |x|^2 / E|x|^2.
    """

    mean: Floats
    slope: Floats
    pull: Floats


def shared_moments(f: Function, law: KeyLaw, key_dim: int, centred: bool) -> TrialMoments:
    """Return moments given u, for draws of u.

    Notes
    -----
    Keys that are not normed have independent coordinates given u, and only the average over u is sampled. For
    unit keys k = x/|x| the norm couples coordinates at order 1/d: E f_a f_b = E_W f_a f_b + slope_a pull_b +
    pull_a slope_b, W being what the other coordinates add to |x|^2.
    """
    found = [(chance, _block(f, law, u, centred)) for chance, u in blocks(law, key_dim)]
    weights = np.concatenate([np.full(columns.shape[1], chance) for chance, columns in found])
    return TrialMoments(weights, np.concatenate([columns for _, columns in found], axis=1), False, FORMULA, KNOWN_ERROR)


def _block(f: Function, law: KeyLaw, u: Floats, centred: bool) -> Floats:
    """Return m1, M2, mu, m2 (4, r) for draws u (r, d) of one norm."""
    nodes = NORM_NODES if law.unit else 1
    node_weights = normal_rule(nodes)[1]
    size = nodes + 2
    found = per_coordinate(law, u, lambda x, weights: _averages(f, law, u, centred, x, weights))
    first, second = (_coordinates(found[..., i : i + size]) for i in (0, size))
    square = second.mean @ node_weights
    return np.stack(
        [
            square.sum(axis=1),
            found[..., -1].sum(axis=1) + _sum_off_diagonal(second, node_weights),
            ((first.mean @ node_weights) ** 2).sum(axis=1),
            (square**2).sum(axis=1) + _square_off_diagonal(first, node_weights),
        ]
    )


def _coordinates(columns: Floats) -> Coordinates:
    return Coordinates(columns[..., :-2], columns[..., -2], columns[..., -1])


def _averages(f: Function, law: KeyLaw, u: Floats, centred: bool, x: Floats, weights: Floats) -> Floats:
    """Return :class:`Coordinates` of f and of f^2 side by side, then E f^4, at nodes x (G, K) of a coordinate."""
    z, node_weights = normal_rule(NORM_NODES if law.unit else 1)
    own, width, keys = _normed(law, u, x, weights, z)
    y = f(law.scale * keys)
    if centred:
        y = y - np.einsum("gwk,gk,w->g", y, weights, node_weights)[:, None, None]
    columns = []
    for h in (y, y**2):
        mean = np.einsum("gwk,gk->gw", h, weights)
        slope = np.divide(mean @ (node_weights * z), width, out=np.zeros_like(width), where=width > 0)
        pull = np.einsum("gwk,gk,w->g", h, weights * own, node_weights)
        columns += [mean, slope[:, None], pull[:, None]]
    return np.concatenate([*columns, np.einsum("gwk,gk,w->g", y**4, weights, node_weights)[:, None]], axis=1)


def _normed(law: KeyLaw, u: Floats, x: Floats, weights: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a coordinate's own part of |x|^2 / E|x|^2 (G, K), the width of the rest (G,), and the keys (G, W, K).

    The rest is taken as a gamma variable (Wilson, Hilferty 1931), at the nodes z (W,).
    """
    if not law.unit:
        return np.zeros_like(x), np.zeros(len(x)), x[:, None]
    c, d = law.correlation, u.shape[-1]
    common = c * float(u[0] @ u[0])
    total, spread = common + 1 - c, (1 - c) / d
    square = x * x / total
    own = square - np.sum(weights * square, axis=-1, keepdims=True)
    whole = (2 * d * spread**2 + 4 * spread * common) / total**2
    rest = whole - np.sum(weights * own**2, axis=-1)
    factor = (1 - rest[:, None] / 9 + np.sqrt(rest)[:, None] / 3 * z) ** 3
    norm = np.maximum(factor[..., None] + own[:, None], 0.02)
    return own, np.sqrt(rest), x[:, None] / np.sqrt(norm * total)


def _sum_off_diagonal(h: Coordinates, node_weights: Floats) -> Floats:
    """Return sum over a != b of E h_a h_b (r,)."""
    plain = (h.mean.sum(axis=1) ** 2 - (h.mean**2).sum(axis=1)) @ node_weights
    coupled = h.slope.sum(axis=1) * h.pull.sum(axis=1) - (h.slope * h.pull).sum(axis=1)
    return np.asarray(plain + 2 * coupled)


def _square_off_diagonal(h: Coordinates, node_weights: Floats) -> Floats:
    """Return sum over a != b of (E h_a h_b)^2 (r,), E h_a h_b being a matrix V M V^T of low rank."""
    vectors = np.concatenate([h.mean, h.slope[..., None], h.pull[..., None]], axis=-1)
    count = len(node_weights)
    middle = np.zeros((count + 2, count + 2))
    middle[:count, :count] = np.diag(node_weights)
    middle[count, count + 1] = middle[count + 1, count] = 1
    inner = middle @ (vectors.mT @ vectors)
    whole = np.einsum("rij,rji->r", inner, inner)
    diagonal = np.einsum("rdi,ij,rdj->rd", vectors, middle, vectors)
    return np.asarray(whole - (diagonal**2).sum(axis=1))
