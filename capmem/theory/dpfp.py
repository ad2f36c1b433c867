"""Kernel moments of DPFP by counting which rectified coordinates two features share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capmem.feature_maps import Dpfp
from capmem.memory import LinearMemory
from capmem.theory.base import Floats, TheoryUnavailable, TrialMoments
from capmem.theory.correlated import blocks, per_coordinate, require_dims
from capmem.theory.cue_rows import cue_rows
from capmem.theory.dpfp_pairs import feature_moments, live_shifts, pair_sum
from capmem.theory.known import NONE, Known, by_dim
from capmem.theory.laws import KeyLaw, axial_nodes
from capmem.theory.refusals import require_plain

FORMULA = (
    "features {p, q}, {p', q'} of Z_2d by what they share: E(phi phi') = B B B B, A B B or A A with A = E r^2, "
    "B = E r, 0 if opposites meet; m2 = sum of its squares, M2 the same with E r^4, E r^2"
)
KNOWN_ERROR = Known(
    "measured at c = .3, .6, .9, d >= 16: m2 up to 5% high at d = 16, 2.5% at d >= 64", by_dim(0.05, 64, 0.025)
)
CUE_FORMULA = "E kappa(q, k) and its square from E h_a h_b, h_a = r_a(k) r_a(q), over rows of a random 2-frame"
CUE_ERROR = Known("M2 of cues within 0.4%, its standard error (measured at d = 8, 16, 64; c = .2, .6, .9)", 0.004)
DEGREES = np.array([[4], [8], [4], [8]])  # of m1, M2, mu, m2 in the scale of keys
CENTRED_ERROR = Known(
    "m2 up to 3% low at d = 16, moments within 0.3% at d = 64 (measured at c = .3, .6, .9)", by_dim(0.03, 64, 0.003)
)


def dpfp_moments(memory: LinearMemory, law: KeyLaw, key_dim: int) -> TrialMoments:
    """Return the moments of kappa for DPFP; see :data:`FORMULA`.

    Notes
    -----
    Source of the map: Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174. With independent N(0, s^2)
    coordinates and nu = 1, d >= 4: D_eff = 2 d / (1 + 2/pi^2 + (2 d - 6)/pi^4). kappa has degree 2 in each
    key, so on the sphere the moments are those of Gaussian keys divided by those of the norm.
    """
    assert isinstance(memory.feature_map, Dpfp)
    nu = memory.feature_map.nu
    require_plain(law)
    if memory.feature_norm != "none":
        raise TheoryUnavailable(f"no formula for DPFP features divided by their {memory.feature_norm} norm")
    centred = memory.feature_center == "mean"
    if centred and not (law.independent and not law.centred):
        raise TheoryUnavailable("no formula for centred DPFP features of correlated keys")
    if nu >= 2 * key_dim or key_dim == 1:
        raise TheoryUnavailable(f"no formula for DPFP with d = 1 or nu >= 2 d, got nu = {nu} and d = {key_dim}")
    if law.centred:
        return _centred_moments(law, key_dim, nu)
    if law.independent:
        weights = np.ones(1)
        columns = _features_centred(law.unit, key_dim, nu) if centred else _independent(law.unit, key_dim, nu)
    else:
        weights, columns = _over_common_keys(law, key_dim, nu)
        columns = columns * _sampling_correction(law, key_dim, nu)
    columns = columns * law.scale**DEGREES
    error = NONE if law.independent else KNOWN_ERROR
    return TrialMoments(weights, columns, law.independent, FORMULA, error)


def _centred_moments(law: KeyLaw, key_dim: int, nu: int) -> TrialMoments:
    """Return the moments given |u| for unit keys less their mean, taken as isotropic with their own norm."""
    require_dims(law, key_dim)
    weights, key_weights, along, across = axial_nodes(law, key_dim)
    square = along**2 + across**2
    second, fourth, eighth = square @ key_weights, square**2 @ key_weights, square**4 @ key_weights
    columns = _independent(True, key_dim, nu) * np.stack([fourth, eighth, second**2, fourth**2])
    return TrialMoments(weights, columns, False, FORMULA + "; given |u| and |k|", CENTRED_ERROR)


def _independent(unit: bool, key_dim: int, nu: int) -> Floats:
    """Return m1, M2, mu, m2 (4, 1) for independent coordinates N(0, 1/d), or the unit sphere."""
    variance = np.full((1, 2 * key_dim), 1 / key_dim)
    columns = feature_moments((variance / (2 * np.pi)) ** 0.5, variance / 2, 1.5 * variance**2, nu, key_dim)
    if not unit:
        return columns
    fourth, eighth = norm_moments(key_dim, 1 / key_dim, np.zeros(1))
    return columns / np.stack([fourth, eighth, np.ones(1), fourth**2])


def _features_centred(unit: bool, key_dim: int, nu: int) -> Floats:
    """Return m1, M2, mu, m2 (4, 1) of features less their mean F, the same for all that are not always zero.

    With S = sum phi^2 and T = sum phi: kappa(k, k) = S - 2 F T + L F^2, and sum_pp' Cov^2 = m2 - 2 F^2 E T^2 + mu^2.
    """
    row = np.full((1, 2 * key_dim), 1 / key_dim**0.5)
    first, second, third = row * (2 * np.pi) ** -0.5, row**2 / 2, row**3 * (2 / np.pi) ** 0.5
    shifts = live_shifts(nu, key_dim)
    sizes = [1 + 2 * i / key_dim for i in range(4)] if unit else [1.0] * 4  # E|x|^2n over the sphere's 1
    total = pair_sum(first, first, second, shifts, key_dim) / (sizes[1])
    mixed = pair_sum(second, first, third, shifts, key_dim) / (sizes[1] * sizes[2])
    m1, M2, mu, m2 = _independent(unit, key_dim, nu)
    mean = first[0, 0] ** 2
    square = M2 + 4 * mean**2 * total - 4 * mean * mixed + 2 * mu * m1 - 3 * mu**2
    return np.stack([m1 - mu, square, np.zeros(1), m2 - 2 * mean**2 * total + mu**2])


def dpfp_cue(memory: LinearMemory, law: KeyLaw, key_dim: int, cosine: float) -> tuple[float, float]:
    """Return E kappa(q, k) and its mean square for cues q of this cosine, independent keys: :data:`CUE_FORMULA`.

    The first is exact. In the second, three and four places share what every two of them do.
    """
    assert isinstance(memory.feature_map, Dpfp)
    if memory.feature_center != "none":
        raise TheoryUnavailable("no formula for noisy cues of centred DPFP features")
    rows = cue_rows(key_dim, cosine, 1.0, False)

    def h(key: Floats, cue: Floats) -> Floats:
        return np.maximum(key, 0) * np.maximum(cue, 0)

    def h2(key: Floats, cue: Floats) -> Floats:
        return h(key, cue) ** 2

    one, square, both = rows.one(h), rows.one(h2), rows.two(h, h)
    if one == 0:
        return 0.0, 0.0
    shared = rows.two(h2, h) / (square * one)  # 1 where places are independent
    joint = both / one**2
    three, four = square * one**2 * shared**2 * joint, one**4 * joint**6
    shifts = live_shifts(memory.feature_map.nu, key_dim)
    row = np.ones((1, 2 * key_dim))
    disjoint, some, twice = (float(pair_sum(row, row, x * row, shifts, key_dim)[0]) for x in (0, 1, 2))
    full = (twice - 2 * some + disjoint) / 2
    own = 2 * key_dim * len(shifts) * both
    own_square = disjoint * four + (some - disjoint - full) * three + full * rows.two(h2, h2)
    if law.unit:
        fourth, eighth = norm_moments(key_dim, 1 / key_dim, np.zeros(1))
        own, own_square = own / fourth[0], own_square / eighth[0]
    return float(own * law.scale**4), float(own_square * law.scale**8)


def _sampling_correction(law: KeyLaw, key_dim: int, nu: int) -> Floats:
    """Return exact over sampled moments (4, 1) of keys that are not normed: what few draws of u get wrong.

    Exact are E r r' and E r^2 r'^2 of two normal variables of correlation c, the arc-cosine kernels of order 1
    and 2 (Cho, Saul 2009); the draws have the same directions as those that the correction is for.
    """
    plain = replace(law, unit=False, fixed_mean=False)
    weights, columns = _over_common_keys(plain, key_dim, nu)
    sampled = columns @ weights
    angle, c, variance = np.arccos(law.correlation), law.correlation, 1 / key_dim
    first = variance * (np.sin(angle) + (np.pi - angle) * c) / (2 * np.pi)
    second = variance**2 * (3 * np.sin(angle) * c + (np.pi - angle) * (1 + 2 * c * c)) / (2 * np.pi)
    row = np.ones((1, 2 * key_dim))
    exact = feature_moments(first**0.5 * row, variance / 2 * row, 1.5 * variance**2 * row, nu, key_dim)[:, 0]
    exact[3] = feature_moments(first**0.5 * row, second**0.5 * row, row, nu, key_dim)[3, 0]
    return np.asarray((exact / sampled)[:, None])


def _over_common_keys(law: KeyLaw, key_dim: int, nu: int) -> tuple[Floats, Floats]:
    """Return the chances of draws of u (r,), and m1, M2, mu, m2 (4, r) given them."""
    # of each u and -u one will do: rectified, they have the same features in another order
    found = [(2 * chance, _given_common(law, u[: len(u) // 2], nu)) for chance, u in blocks(law, key_dim)]
    weights = np.concatenate([np.full(columns.shape[1], chance) for chance, columns in found])
    return weights, np.concatenate([columns for _, columns in found], axis=1)


def _averages(x: Floats, weights: Floats) -> Floats:
    """Return E r, E r^2, E r^4, E r x^2, E r^2 x^2 for r = max(x, 0) and for max(-x, 0), then E x^2 (G, 11)."""
    square = weights * x * x
    both = [np.maximum(x, 0), np.maximum(-x, 0)]
    columns = [w * r**p for r in both for w, p in ((weights, 1), (weights, 2), (weights, 4), (square, 1), (square, 2))]
    return np.stack([column.sum(axis=-1) for column in (*columns, square)], axis=-1)


def _given_common(law: KeyLaw, u: Floats, nu: int) -> Floats:
    """Return m1, M2, mu, m2 (4, r) for draws u (r, d)."""
    key_dim = u.shape[1]
    found = np.moveaxis(per_coordinate(law, u, _averages), -1, 0)
    averages = [np.concatenate([found[i], found[i + 5]], axis=1) for i in range(5)]
    square = np.concatenate([found[10], found[10]], axis=1)
    powers, tilted = averages[:3], averages[3:]
    if not law.unit:
        return feature_moments(powers[0], powers[1], powers[2], nu, key_dim)
    total = square.sum(axis=1, keepdims=True) / 2
    spread = ((1 - law.correlation) / key_dim) ** 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        tilts = [np.nan_to_num(tilt / mean, posinf=0) for tilt, mean in zip(tilted, powers, strict=False)]
    tilts = [1 + (tilt - square) / total for tilt in tilts]
    common = law.correlation * np.sum(u * u, axis=1)
    self_norm, self_norm_square = norm_moments(key_dim, spread**2, common)
    cross, cross_square = _unit_cross(powers, tilts, norm_freedom(key_dim, spread**2, common), nu)
    own, own_square, _, _ = feature_moments(powers[0], powers[1], powers[2], nu, key_dim)
    scale = total[:, 0] ** 2
    return np.stack([own / self_norm, own_square / self_norm_square, cross / scale, cross_square / scale**2])


def _unit_cross(powers: list[Floats], tilts: list[Floats], freedom: Floats, nu: int) -> tuple[Floats, Floats]:
    """Return mu and m2 (r,) of keys x/|x| with E|x|^2 = 1, from the moments of x given u.

    E phi/|x|^2 and E phi phi'/|x|^4: under the weight of a product over coordinates, E|x|^2 grows by the factor
    `tilts` of each of them (r, 2d). What is left of the norm's spread is put so that keys without a common part
    (then `freedom`, 2 over the relative variance of |x|^2, is d) come out exactly.
    """
    first, second, fourth = powers
    key_dim = first.shape[1] // 2
    _, _, cross, _ = feature_moments(first / tilts[0], second, fourth, nu, key_dim)
    _, _, _, square = feature_moments(first / tilts[0] ** 2, second / tilts[1] ** 2, fourth, nu, key_dim)
    one, two = 1 + 1 / freedom, 1 + 2 / freedom
    return cross * one**4, square * one**16 / two**2


def norm_moments(key_dim: int, noise: float, common: Floats) -> tuple[Floats, Floats]:
    """Return E|x|^4 and E|x|^8 (r,) for x ~ N(m, noise I) with |m|^2 = common (r,).

    From the cumulants of a noncentral chi^2 variable.
    """
    first, second, third, fourth = (
        factor * noise ** (n - 1) * (noise * key_dim + n * common) for n, factor in ((1, 1), (2, 2), (3, 8), (4, 48))
    )
    square = second + first**2
    return square, fourth + 4 * third * first + 3 * second**2 + 6 * second * first**2 + first**4


def norm_freedom(key_dim: int, noise: float, common: Floats) -> Floats:
    """Return 2 (E|x|^2)^2 / Var|x|^2 (r,) of the same x; d where it has mean zero."""
    mean = noise * key_dim + common
    return mean**2 / (noise * (noise * key_dim + 2 * common))
