"""Sums over pairs of DPFP features, by which rectified coordinates they share."""

from __future__ import annotations

import numpy as np

from capmem.theory.base import Floats


def live_shifts(nu: int, key_dim: int) -> list[int]:
    """Return the shifts whose features are not always zero."""
    return [i for i in range(1, nu + 1) if i != key_dim]


def feature_moments(first: Floats, second: Floats, fourth: Floats, nu: int, key_dim: int) -> Floats:
    """Return m1, M2, mu, m2 (4, r) from E r, E r^2, E r^4 (r, 2d) of independent coordinates."""
    shifts = live_shifts(nu, key_dim)
    columns = (
        sum((second * _roll(second, i)).sum(axis=1) for i in shifts),
        pair_sum(second, second, fourth, shifts, key_dim),
        sum((first**2 * _roll(first, i) ** 2).sum(axis=1) for i in shifts),
        pair_sum(first**2, first**2, second**2, shifts, key_dim),
    )
    return np.stack(np.broadcast_arrays(*columns, first[:, 0])[:4])


def _roll(rows: Floats, shift: int) -> Floats:
    """Return what np.roll does along the last axis, at a fraction of its time for short rows."""
    cut = -shift % rows.shape[-1]
    return np.concatenate([rows[..., cut:], rows[..., :cut]], axis=-1)


def pair_sum(left: Floats, right: Floats, shared: Floats, shifts: list[int], key_dim: int) -> Floats:
    """Return the sum (r,) over pairs of features of the product over their coordinates.

    Parameters
    ----------
    left, right, shared : array (r, 2d)
        The factor of a coordinate that only the first feature of the two has, only the second, or both.
    shifts : list of int
        Feature (p, i) has the coordinates p and p - i of Z_2d.
    key_dim : int
        d; the opposite of p is p + d.

    Notes
    -----
    All pairs as if disjoint, then those that touch, at most 8 a feature and shift, put right.
    """
    lefts, rights = ({i: x * _roll(x, i) for i in shifts} for x in (left, right))
    sums = (sum((p.sum(axis=1) for p in x.values()), np.zeros(len(left))) for x in (lefts, rights))
    total = next(sums) * next(sums)
    for i in shifts:
        for j in shifts:
            for offset in _touching(i, j, key_dim):
                own, other = (0, -i), (offset, offset - j)
                total = total - (lefts[i] * _roll(rights[j], -offset)).sum(axis=1)
                if not any((p - q - key_dim) % (2 * key_dim) == 0 for p in own for q in other):
                    total = total + _touching_sum((left, right, shared), own, other)
    return np.asarray(total)


def _touching(i: int, j: int, key_dim: int) -> set[int]:
    """Return the offsets p' - p at which features (p, i) and (p', j) share a coordinate or meet an opposite."""
    return {(p + q + o) % (2 * key_dim) for p in (0, -i) for q in (0, j) for o in (0, key_dim)}


def _touching_sum(factors: tuple[Floats, Floats, Floats], own: tuple[int, int], other: tuple[int, int]) -> Floats:
    """Return the sum (r,) over p of the product for features p + own, p + other that share coordinates."""
    period = factors[0].shape[1]
    first, second = {p % period for p in own}, {p % period for p in other}
    value = np.ones_like(factors[0])
    for p in first | second:
        kind = 2 if p in first & second else int(p in second)
        value = value * _roll(factors[kind], -p)
    return np.asarray(value.sum(axis=1))
