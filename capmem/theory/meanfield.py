"""Cosine and top-1 accuracy of any map, from the moments of its kernel: crosstalk as normal noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from capmem.theory import cosine, top1
from capmem.theory.base import Floats, TrialMoments
from capmem.theory.quadrature import gamma_rule
from capmem.theory.values import ValueLaw

FORMULA = "kappa_ii a gamma variable a m1, T = sum_j kappa_ij^2 / kappa_ii^2 one about (N-1) m2 / (m1^2 a)"
COARSE = (16, 3, 24)  # nodes that top-1 is averaged over: within 0.1% of twice as many
GROUPS = 3  # of trials, by how loud the crosstalk is: enough for a mean over them


def compressed(moments: TrialMoments, groups: int) -> TrialMoments:
    """Return the moments with trials in few groups, by how loud the crosstalk is, each with its mean moments."""
    columns, weights = moments.columns, moments.weights
    if len(weights) <= groups:
        return moments
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(columns[3] / columns[0] ** 2)
    cuts = np.searchsorted(np.cumsum(weights[order]), np.arange(1, groups) / groups)
    parts = [part for part in np.split(order, cuts) if len(part)]
    shares = np.array([weights[part].sum() for part in parts])
    means = np.array([columns[:, part] @ weights[part] for part in parts]) / shares[:, None]
    return moments._replace(weights=shares, columns=means.T)


def expected_cosine(moments: TrialMoments, num_pairs: int, values: ValueLaw) -> float:
    """Return E cos(y_i, v_i)."""
    few = compressed(moments, GROUPS)
    return float(few.weights @ [_cosine(tuple(map(float, c)), num_pairs, values) for c in few.columns.T])


def expected_top1(moments: TrialMoments, num_pairs: int, codebook: int, values: ValueLaw) -> float:
    """Return the chance that a reading scores highest with its own value, of M."""
    of = _nearest if values.one_hot else _top1
    few = compressed(moments, GROUPS)
    return float(few.weights @ [of(tuple(map(float, c)), num_pairs, codebook, values.dim) for c in few.columns.T])


def own_share(column: tuple[float, ...], size: int) -> tuple[Floats, Floats]:
    """Return nodes of kappa_ii / m1 and their weights."""
    m1, square, _, _ = column
    spread = square / m1**2 - 1
    if spread < 1e-9:
        return np.ones(1), np.ones(1)
    nodes, weights = gamma_rule(1 / spread, size)
    return nodes * spread, weights


def _noise(column: tuple[float, ...], num_pairs: int, own: Floats, size: int) -> tuple[Floats, Floats]:
    """Return nodes of T (A, Q) and their weights, given kappa_ii / m1 (A,).

    One term has the relative variance of the square of a normal variable of mean mu and mean square m2.
    """
    m1, _, mu, m2 = column
    others = num_pairs - 1
    rest = max(m2 - mu**2, 0.0)
    spread = (4 * mu**2 * rest + 2 * rest**2) / m2**2 / others if m2 > 0 else 0.0
    mean = others * m2 / (m1**2 * own)
    if spread < 1e-12:
        return mean[:, None], np.ones(1)
    nodes, weights = gamma_rule(1 / spread, size)
    return mean[:, None] * nodes * spread, weights


def _cosine(column: tuple[float, ...], num_pairs: int, values: ValueLaw) -> float:
    m1, _, _, m2 = column
    if m1 == 0:
        return 0.0
    if num_pairs == 1 or m2 <= 0:
        return float(np.sign(m1))
    own, own_weights = own_share(column, 7)
    noise, weights = _noise(column, num_pairs, own, 7)
    return float(np.sign(m1) * min(own_weights @ (cosine_of(values, noise) @ weights), 1.0))


def cosine_of(values: ValueLaw, noise: Floats) -> Floats:
    """Return E cos given T."""
    if values.one_hot:
        return np.asarray(1 / np.sqrt(1 + noise))
    expected = cosine.fixed_norm_cosine if values.fixed_norm else cosine.gaussian_cosine
    return expected(values.dim, noise)


@lru_cache(maxsize=4096)
def _top1(column: tuple[float, ...], num_pairs: int, codebook: int, value_dim: int) -> float:
    m1, _, mu, m2 = column
    if codebook == 1:
        return 1.0
    if m1 < 0:
        return 0.0
    if num_pairs == 1 or m2 <= 0:
        return 1.0
    own, own_weights = own_share(column, 4)
    noise, weights = _noise(column, num_pairs, own, 3)
    chances = [
        weights @ top1.win(row, value_dim, num_pairs, codebook, 1.0, _score(m1, mu, m2, a), COARSE)
        for a, row in zip(own, noise, strict=True)
    ]
    return min(float(own_weights @ np.array(chances)), 1.0)


def _score(m1: float, mu: float, m2: float, own: float) -> Callable[[Floats], Floats]:
    """Return the distribution function of kappa_ij / kappa_ii given kappa_ii = own m1, as a normal one."""
    scale = 1 / (m1 * own**0.5)
    spread = max(m2 - mu**2, 1e-300) ** 0.5 * scale
    return lambda a: np.asarray(ndtr((a - mu * scale) / spread))


def _nearest(column: tuple[float, ...], num_pairs: int, codebook: int, value_dim: int) -> float:
    """Return the chance that the own key is nearest; codewords that were not stored score 0."""
    m1, _, mu, m2 = column
    if num_pairs == 1 or m2 <= 0:
        return float(m1 > 0 or codebook == 1)
    own, own_weights = own_share(column, 12)
    lead = (own * m1 - mu * own**0.5) / (own**0.5 * max(m2 - mu**2, 1e-300) ** 0.5)
    chance = ndtr(lead) ** (num_pairs - 1) * (own * m1 > 0 if codebook > num_pairs else 1.0)
    return float(own_weights @ chance)
