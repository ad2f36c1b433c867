"""The mean resolvent of the Gram matrix of isotropic keys: Marchenko-Pastur, and its first correction in 1/d."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

STEP = 1e-20  # complex step: an analytic function's derivative to rounding (Squire, Trapp 1998)


class Shrinkage(NamedTuple):
    """What a ridge leaves of the Gram matrix G, expected.

    Attributes
    ----------
    first : float
        tr G (G + l)^-1 / N.
    second : float
        tr G (G + l)^-2 / N, minus the derivative of the first in l.
    """

    first: float
    second: float


def shrinkage(num_pairs: int, key_dim: int, level: float, unit: bool | None) -> Shrinkage:
    """Return the traces of G = K K^T for N isotropic keys with E|k|^2 = 1.

    Parameters
    ----------
    num_pairs, key_dim : int
        N and d.
    level : float
        l, above 0.
    unit : bool or None
        Keys on the sphere, or Gaussian ones; None: the limit of large d, which is the same for both.

    Notes
    -----
    With B the resolvent of K^T K of the other keys, [(G + l)^-1]_ii = 1 / (l (1 + k^T B k)). t = tr B / d obeys
    l t + c t / (1 + t) = 1 with c = N/d; the variance of k^T B k, w/d = 2 (tr B^2/d - [unit] t^2) / d, and the key
    that B leaves out move it by delta/d. For Gaussian keys this is the mean of the central limit theorem of Bai,
    Silverstein 2004 (Annals of Probability 32).
    """
    found = _first(num_pairs / key_dim, key_dim, level * (1 + STEP * 1j), unit)
    return Shrinkage(float(found.real), -float(found.imag) / (STEP * level))


def _first(c: float, dim: int, level: complex, unit: bool | None) -> Any:
    offset = level + c - 1
    root = np.sqrt(offset * offset + 4 * level)
    t = (root - offset) / (2 * level) if offset.real < 0 else 2 / (root + offset)
    u = 1 / (1 + t)
    if unit is None:
        return t * u
    square = t / (level + c * u * u)  # tr B^2 / d = -dt/dl
    spread = 2 * (square - (t * t if unit else 0))
    shift = (square * u + c / level * spread * u**3) / (1 + c / level * u * u)
    return t * u + (shift * u * u - spread * u**3) / dim
