"""Expected cosine between a retrieved value and the stored one, isotropic keys and the identity map."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, hyp1f1

from capmem.theory.base import Floats
from capmem.theory.quadrature import gamma_rule
from capmem.theory.special import hyp2f1

FIXED_NORM = "E_T (a/sqrt 2) Gamma((v+1)/2)/Gamma(v/2+1) 1F1(1/2; v/2+1; -a^2/2), a^2 = v c^2/T"
GAUSSIAN = "E_T rho (2/v) (Gamma((v+1)/2)/Gamma(v/2))^2 2F1(1/2, 1/2; v/2+1; rho^2), rho^2 = c^2/(c^2+T)"


def crosstalk_rule(key_dim: int, num_pairs: int, unit: bool) -> tuple[Floats, Floats]:
    """Return nodes and weights for T = sum_{j != i} (k_i . k_j)^2 / |k_i|^4, the noise of one reading.

    On the sphere T has mean (N-1)/d and variance (N-1) 2(d-1)/(d^2 (d+2)), and is taken as a gamma variable.
    For Gaussian keys it is one given |k_i|^2 = g, exactly: a chi^2_{N-1} variable over g ~ chi^2_d.
    """
    others = num_pairs - 1
    if unit:
        if key_dim == 1:
            return np.full(1, float(others)), np.ones(1)
        mean = others / key_dim
        shape = others * (key_dim + 2) / (2 * (key_dim - 1))
        nodes, weights = gamma_rule(shape, 9)
        return nodes * mean / shape, weights
    nodes, weights = gamma_rule(others / 2, 9)
    norms, norm_weights = gamma_rule(key_dim / 2, 12)
    return (nodes / norms[:, None]).ravel(), (weights * norm_weights[:, None]).ravel()


def fixed_norm_cosine(value_dim: int, noise: Floats, gain: float = 1.0) -> Floats:
    """Return E cos(y, w) for y = gain w + sqrt(T) g, |w|^2 = v, g from N(0, I): :data:`FIXED_NORM`.

    Parameters
    ----------
    value_dim : int
        v.
    noise : array (...)
        T, positive.
    gain : float
        c, the cosine of the cue.
    """
    n = value_dim
    a = gain * np.sqrt(n / noise)
    ratio = np.exp(gammaln((n + 1) / 2) - gammaln(n / 2 + 1))
    return np.asarray(a / 2**0.5 * ratio * hyp1f1(0.5, n / 2 + 1, -(a**2) / 2))


def gaussian_cosine(value_dim: int, noise: Floats, gain: float = 1.0) -> Floats:
    """Return E cos(y, w) for y = gain w + sqrt(T) g, with w, g from N(0, I): :data:`GAUSSIAN`."""
    n = value_dim
    rho = gain / np.sqrt(gain**2 + noise)
    ratio = np.exp(2 * (gammaln((n + 1) / 2) - gammaln(n / 2)))
    return np.asarray(rho * (2 / n) * ratio * hyp2f1(0.5, 0.5, n / 2 + 1, rho**2))
