"""Readings divided by a denominator: moments of the weights kappa_ij / sum_l kappa_il, which then stand for kappa."""

from __future__ import annotations

import numpy as np

from capmem.theory.base import Floats, Moments, TrialMoments
from capmem.theory.known import NONE
from capmem.theory.quadrature import gamma_rule

FORMULA = (
    "w_ij = kappa_ij / (kappa_ii + s + epsilon) with gamma variables kappa_ii = a m1 and kappa_ij of mean mu sqrt(a) "
    "and variance (m2 - mu^2) a: given their sum s, sum_j kappa_ij^2 is s^2 (g+1)/((N-1) g+1), g = mean^2/variance"
)
OWN, SUM = 7, 7


def weight_moments(moments: TrialMoments, num_pairs: int, epsilon: float) -> TrialMoments:
    """Return the moments of the weights: m1 = E w_ii, M2 = E w_ii^2, mu = E w_ij, m2 = E w_ij^2.

    With them in place of those of kappa, the formulas of an undivided reading hold; e_raw is then
    E (1 - w_ii)^2 + (N-1) E w_ij^2.
    """
    columns = [_weights(Moments(*map(float, column)), num_pairs, epsilon) for column in moments.columns.T]
    return moments._replace(
        columns=np.array(columns).T, exact=False, formula=f"{FORMULA}; {moments.formula}", known_error=NONE
    )


def _weights(moments: Moments, num_pairs: int, epsilon: float) -> tuple[float, ...]:
    m1, M2, mu, m2 = moments
    if m1 <= 0:  # no key has a feature: 0 is read
        return 0.0, 0.0, 0.0, 0.0
    own, own_weights = own_nodes(M2 / m1**2 - 1, OWN)
    spread = max(m2 - mu**2, 0.0) * own
    return weights_of(m1 * own, mu * np.sqrt(own), spread, own_weights, num_pairs, epsilon)


def own_nodes(spread: float, size: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of a gamma variable of mean 1 and this variance."""
    if spread < 1e-9:
        return np.ones(1), np.ones(1)
    nodes, weights = gamma_rule(1 / spread, size)
    return np.maximum(nodes, 0) * spread, weights  # but for rounding they are positive


def weights_of(
    own: Floats, mean: Floats, spread: Floats, chances: Floats, num_pairs: int, epsilon: float = 0.0
) -> tuple[float, ...]:
    """Return m1, M2, mu, m2 of the weights.

    Parameters
    ----------
    own, mean, spread : array (A,)
        kappa_ii, and the mean and variance of kappa_ij given key i.
    chances : array (A,)
        The probabilities of those keys.
    num_pairs : int
        N.
    epsilon : float
        Added to the denominator.
    """
    others = num_pairs - 1
    if others == 0:
        share = own / (own + epsilon)
        return float(chances @ share), float(chances @ share**2), 0.0, 0.0
    total, weights = _sums(others * mean, others * spread)
    below = own[:, None] + total + epsilon
    shape = np.divide(mean**2, spread, out=np.full_like(mean, 1e12), where=spread > 1e-12 * mean**2)[:, None]
    squares = total**2 * (shape + 1) / (others * shape + 1)
    share = own[:, None] / below

    def expect(x: Floats) -> float:
        return float(chances @ np.einsum("aq,aq->a", x, weights))

    return expect(share), expect(share**2), expect(total / below) / others, expect(squares / below**2) / others


def _sums(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return nodes (A, Q) and weights of gamma variables of these means and variances (A,)."""
    rules = [own_nodes(float(v / m**2) if m > 0 else 0.0, SUM) for m, v in zip(mean, variance, strict=True)]
    nodes, weights = np.zeros((len(mean), SUM)), np.zeros((len(mean), SUM))
    for i, (x, w) in enumerate(rules):
        nodes[i, : len(x)], weights[i, : len(x)] = x * mean[i], w
    return nodes, weights
