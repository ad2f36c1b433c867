"""Coordinates of a key and of its noisy cue, at one place and at two: rows of a random 2-frame times the norm."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from capmem.theory.base import Floats, TheoryUnavailable
from capmem.theory.quadrature import Rule, gamma_rule, legendre_rule

FINE = (56, 24, 13.0)  # radii, angles on each arc, and standard deviations at which a coordinate is cut
COARSE = (12, 8, 8.0)  # the same for two places
NORMS = 4
LEAST_DIM = 4

Pair = Callable[[Floats, Floats], Floats]


class CueRows(NamedTuple):
    """Nodes of (k_a, q_a), and coarser ones of it and of (k_b, q_b) given it, b != a.

    Attributes
    ----------
    key, cue, weights : array (F,)
        One place.
    first_key, first_cue, first_weights : array (n,)
        The first place of two.
    other_key, other_cue, other_weights : array (n, m)
        The second, given the first.
    """

    key: Floats
    cue: Floats
    weights: Floats
    first_key: Floats
    first_cue: Floats
    first_weights: Floats
    other_key: Floats
    other_cue: Floats
    other_weights: Floats

    def one(self, h: Pair) -> float:
        """Return E h(k_a, q_a)."""
        return float(self.weights @ h(self.key, self.cue))

    def two(self, h: Pair, g: Pair) -> float:
        """Return E h(k_a, q_a) g(k_b, q_b): E h E g from the fine nodes, and what the places share from coarse ones."""
        first, again = h(self.first_key, self.first_cue), g(self.first_key, self.first_cue)
        inner = np.sum(self.other_weights * g(self.other_key, self.other_cue), axis=1)
        product = (self.first_weights @ first) * (self.first_weights @ again)
        return float(self.first_weights @ (first * inner) - product) + self.one(h) * self.one(g)


@lru_cache(maxsize=2)  # some 15 MB each
def cue_rows(key_dim: int, cosine: float, scale: float, unit: bool) -> CueRows:
    """Return the nodes for q = |k| (c k/|k| + sqrt(1 - c^2) w), w uniform across k.

    Parameters
    ----------
    key_dim, cosine : int, float
        d of at least 4, c.
    scale : float
        |k| on the sphere, else sqrt(E |k|^2) of Gaussian keys.
    unit : bool
        Keys on the sphere.

    Notes
    -----
    (k/|k|, w) is a uniform 2-frame. A row of it has a uniform angle and the squared norm p ~ Beta(1, (d-2)/2);
    a second row is one of a frame in d - 1 dimensions, times sqrt(1 - p) along the first. Times the norm of a
    Gaussian key, a row is a pair of independent N(0, scale^2 / d) variables. Angles are split where a coordinate
    of key or cue changes sign, so functions with a kink at zero are integrated exactly.
    """
    if key_dim < LEAST_DIM:
        raise TheoryUnavailable(f"no formula for noisy cues of such a map below d = {LEAST_DIM}, got d = {key_dim}")
    angle = float(np.arccos(np.clip(cosine, -1, 1)))
    radius, weights = _first_radii(key_dim, scale, unit, *FINE[::2])
    fine, fine_weights, fine_radius = _turned(radius, weights, angle, FINE[1])
    radius, weights = _first_radii(key_dim, scale, unit, *COARSE[::2])
    along, across, radius, weights = _given_first(key_dim, scale, unit, radius, weights)
    rows = np.stack([along, across, radius])
    first, first_weights, (along, across, radius) = _turned(rows, weights, angle, COARSE[1])
    parts = [(along * np.cos(first - a), -across * np.sin(first - a)) for a in (0.0, angle)]
    phases, sizes = [np.arctan2(y, x) for x, y in parts], [np.hypot(x, y) for x, y in parts]
    second, second_weights = _angles(phases[0], phases[1], COARSE[1])
    rho, rho_weights = _radii(key_dim - 1, *COARSE[::2])
    other_key, other_cue = (
        ((size[:, None] * np.cos(second - phase[:, None]))[..., None] * rho).reshape(len(first), -1)
        for size, phase in zip(sizes, phases, strict=True)
    )
    return CueRows(
        key=fine_radius * np.cos(fine),
        cue=fine_radius * np.cos(fine - angle),
        weights=fine_weights,
        first_key=radius * np.cos(first),
        first_cue=radius * np.cos(first - angle),
        first_weights=first_weights,
        other_key=other_key,
        other_cue=other_cue,
        other_weights=(second_weights[..., None] * rho_weights).reshape(len(first), -1),
    )


def _turned(rows: Floats, weights: Floats, angle: float, size: int) -> tuple[Floats, Floats, Floats]:
    """Return angles (R T,), weights and rows (..., R T) of all pairs of a node (R,) and an angle (T,)."""
    turn, turn_weights = _angles(np.zeros(1), np.full(1, angle), size)
    count = turn.shape[1]
    return np.tile(turn[0], len(weights)), np.outer(weights, turn_weights[0]).ravel(), np.repeat(rows, count, axis=-1)


def _first_radii(key_dim: int, scale: float, unit: bool, size: int, reach: float) -> Rule:
    """Return nodes and weights of |y|, y a row of the frame times the norm of the key."""
    if unit:
        rho, weights = _radii(key_dim, size, reach)
        return scale * rho, weights
    nodes, weights = legendre_rule(size)
    weights = weights * nodes * np.exp(-((reach * nodes) ** 2) / 2)
    return scale / key_dim**0.5 * reach * nodes, weights / weights.sum()


def _given_first(
    key_dim: int, scale: float, unit: bool, radius: Floats, weights: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return sqrt(r^2 - |y|^2), r, |y| and weights, r being the norm of the key.

    r is fixed on the sphere; for Gaussian keys r^2 - |y|^2 is chi^2_{d-2} whatever |y|.
    """
    if unit:
        return np.sqrt(scale**2 - radius**2), np.full(len(radius), scale), radius, weights
    rest, rest_weights = gamma_rule(key_dim / 2 - 1, NORMS)
    size, square = np.broadcast_arrays(radius[:, None], 2 * rest * scale**2 / key_dim)
    whole = np.sqrt(square + size**2)
    return np.sqrt(square).ravel(), whole.ravel(), size.ravel(), np.outer(weights, rest_weights).ravel()


def _radii(dim: int, size: int, reach: float) -> Rule:
    """Return nodes and weights of the norm of a row of a uniform 2-frame in `dim` of at least 3 dimensions."""
    nodes, weights = legendre_rule(size)
    angle = min(np.pi / 2, reach / (dim - 2) ** 0.5) * nodes
    weights = weights * np.sin(angle) * np.cos(angle) ** (dim - 3)
    return np.sin(angle), weights / weights.sum()


def _angles(key_phase: Floats, cue_phase: Floats, size: int) -> Rule:
    """Return nodes and weights (n, 4 size) of a uniform angle, split where cos(angle - phase) changes sign."""
    nodes, weights = legendre_rule(size)
    gap = np.mod(cue_phase - key_phase, np.pi)[:, None]
    half = np.concatenate([gap * nodes, gap + (np.pi - gap) * nodes], axis=1)
    half_weights = np.concatenate([gap * weights, (np.pi - gap) * weights], axis=1) / (2 * np.pi)
    turned = key_phase[:, None] + np.pi / 2 + half
    return np.concatenate([turned, turned + np.pi], axis=1), np.concatenate([half_weights, half_weights], axis=1)
