"""Least squares: the rank of the features at ridge 0, the spectrum of their Gram matrix otherwise."""

from __future__ import annotations

from typing import Any

from capmem.theory.base import Source, TheoryUnavailable
from capmem.theory.case import Case
from capmem.theory.curves import AgeCurve, Term
from capmem.theory.isotropic import Isotropic, isotropic
from capmem.theory.known import NONE, Known, by_dim
from capmem.theory.ranks import feature_rank
from capmem.theory.spectrum import Shrinkage, shrinkage

RANK = "e = 1 - r/N, r = min(N, rank of phi): the residual of a projection"
NOISY = (
    "e = 1 - 2 c r/N + c^2 r/N + (1-c^2)/(d-1) (W - r/N), r = min(N, d), W the mean of |k|^2 tr G^+: on the sphere "
    "N(d-2)/(d-N-1) for N < d and d^2 (N-2)/(N (N-d-1)) for N > d; Gaussian (Nd-2)/(d-N-1) and d (Nd-2)/(N (N-d-1))"
)
RIDGE = (
    "e = 1 - 2 c h1 + c^2 h2 + (1-c^2)/(d-1) (N h - h2), h1 = tr G(G+l)^-1/N, h = tr G(G+l)^-2/N, h2 = h1 - l h, "
    "l = ridge/E|k|^2: traces of the Marchenko-Pastur law with its first correction in 1/d"
)
NOISY_ERROR = Known(
    "at N > d on the sphere within 1% for d >= 8, 4% below; within a few pairs of N = d single trials scatter by more "
    "than the mean",
    by_dim(0.04, 8, 0.01),
)
LARGEST_SHIFT = 0.2  # of the error by the first correction; the second is of the order of its square


def least_squares_curve(case: Case, ridge: float) -> AgeCurve:
    """Return gain and power of the least-squares read-out, the same at every age.

    Parameters
    ----------
    case : Case
        At ridge 0 and exact cues any map of known rank; otherwise the identity map on isotropic keys.
    ridge : float
        At least 0.

    Raises
    ------
    TheoryUnavailable
        For features of unknown rank, noisy cues within one pair of N = d (their error has no mean), or a ridge so
        small, or d so small, that an expansion in 1/d does not resolve the spectrum.

    Notes
    -----
    With G = K K^T, y = q^T K^T (G + l)^-1 V. The part of a cue across its key is averaged over all directions there,
    which leaves traces of G. The spectrum: Marchenko, Pastur 1967 (Math. USSR-Sbornik 1).
    """
    if ridge > 0:
        return _ridge(case, ridge)
    if case.query_cosine == 1:
        share = min(case.num_pairs, feature_rank(case)) / case.num_pairs
        exact = Source(RANK, True, Known("none: up to the rank that the precision of the state can tell"))
        return _flat(case, share, share, exact, projection=True)
    return _noisy_pseudo_inverse(case)


def _noisy_pseudo_inverse(case: Case) -> AgeCurve:
    law, d, N, c = _radial(case), case.key_dim, case.num_pairs, case.query_cosine
    share = min(N, d) / N
    noise = _across(c, d) * (_inverse(N, d, law.unit) - share) if abs(c) < 1 else 0.0
    exact = N < d or not law.unit or abs(c) == 1
    source = Source(NOISY, exact, NONE if exact else NOISY_ERROR)
    return _flat(case, c * share, c * c * share + noise, source)


def _inverse(num_pairs: int, key_dim: int, unit: bool) -> float:
    """Return the mean over pairs of |k|^2 tr G^+."""
    N, d = num_pairs, key_dim
    if abs(N - d) < 2:
        raise TheoryUnavailable(
            f"noisy cues of {N} keys in {d} dimensions: the mean error of least squares is infinite"
        )
    if N < d:
        return (N * (d - 2) if unit else N * d - 2) / (d - N - 1)
    return d * (d * (N - 2) if unit else N * d - 2) / (N * (N - d - 1))


def _ridge(case: Case, ridge: float) -> AgeCurve:
    law = _radial(case)
    level = ridge / law.square
    gain, power = _read(case, level, shrinkage(case.num_pairs, case.key_dim, level, law.unit))
    shift = _first_correction(case, level)
    if shift > LARGEST_SHIFT:
        raise TheoryUnavailable(
            f"ridge {ridge:.3g} with d = {case.key_dim}, N = {case.num_pairs} is out of reach of an expansion in 1/d: "
            f"the first correction to the Marchenko-Pastur law is {shift:.0%}"
        )
    known = Known(f"at most about {4 * shift**2:.1%}, four times the square of the first correction", 4 * shift**2)
    return _flat(case, gain, power, Source(RIDGE, False, known))


def _first_correction(case: Case, level: float) -> float:
    """Return the relative size of what it does to the traces, for Gaussian keys: on the sphere two parts cancel."""
    corrected, limit = (_traces(shrinkage(case.num_pairs, case.key_dim, level, law), level) for law in (False, None))
    return max(abs(a / b - 1) for a, b in zip(corrected, limit, strict=True))


def _traces(found: Shrinkage, level: float) -> tuple[float, float, float]:
    """Return the error of exact cues, the power of their readings, and what noise in a cue is multiplied by."""
    return 1 - found.first - level * found.second, found.first - level * found.second, found.second


def _read(case: Case, level: float, found: Shrinkage) -> tuple[float, float]:
    """Return gain and power at a ridge of `level` in units of E|k|^2."""
    c, (_, square, noise) = case.query_cosine, _traces(found, level)
    across = _across(c, case.key_dim) * (case.num_pairs * noise - square)
    return c * found.first, c * c * square + across


def _across(cosine: float, key_dim: int) -> float:
    """Return the power of a cue along each direction across its key, of unit norm."""
    return (1 - cosine**2) / (key_dim - 1) if abs(cosine) < 1 else 0.0


def _radial(case: Case) -> Isotropic:
    law = isotropic(case)
    if not law.radial:
        raise TheoryUnavailable("least squares on keys of signs has no formula: with other cues or a ridge")
    return law


def _flat(case: Case, gain: float, power: float, source: Source, projection: bool = False) -> AgeCurve:
    """Return the curve; own weights are taken to be all equal."""
    own = gain**2
    return AgeCurve(case, Term(gain), (Term(own),), (Term(power - own),), source, projection=projection)


def least_squares(case: Case) -> AgeCurve:
    """Return the curve of the rule of a case."""
    memory: Any = case.memory
    return least_squares_curve(case, memory.write_rule.ridge)
