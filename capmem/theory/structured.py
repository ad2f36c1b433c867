"""Kernel moments of keys with a structure of their own under the identity map: of pairs, averaged over i != j."""

from __future__ import annotations

from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.theory.base import Floats, Moments, TheoryUnavailable, TrialMoments, single
from capmem.theory.case import Case
from capmem.theory.known import NONE, Known


def linear_memory(case: Case) -> LinearMemory:
    """Return the memory, known to be a linear one."""
    assert isinstance(case.memory, LinearMemory)
    return case.memory


def require_steps(case: Case, centred: bool = True) -> LinearMemory:
    """Return the memory if all its steps are covered: the identity map, no sums, no centring where it matters.

    Parameters
    ----------
    case : Case
        What is asked.
    centred : bool
        The keys have mean zero in each trial, so centring does nothing.

    Raises
    ------
    TheoryUnavailable
        Otherwise.
    """
    memory, law = linear_memory(case), type(case.keys).__name__
    if type(memory.feature_map) is not Identity:
        raise TheoryUnavailable(f"no formula for the map {type(memory.feature_map).__name__} of {law}")
    if "sum" in (memory.key_norm, memory.feature_norm):
        raise TheoryUnavailable("no formula for keys divided by their sum: the sum of signed keys has no mean")
    if not centred and "mean" in (memory.key_center, memory.feature_center):
        raise TheoryUnavailable(f"no formula for centred {law}")
    return memory


def key_gain(case: Case) -> float:
    """Return what the memory's scale multiplies k . k' by."""
    return 1.0 if linear_memory(case).feature_norm == "l2" else memory_scale(case) ** 2


def memory_scale(case: Case) -> float:
    """Return what the memory multiplies keys by."""
    scale = linear_memory(case).key_scale
    return case.key_dim**0.5 if scale == "sqrt_dim" else float(scale)


def normed(case: Case) -> bool:
    """Return whether the memory makes all keys unit ones."""
    return "l2" in (linear_memory(case).key_norm, linear_memory(case).feature_norm)


def pair_averages(
    case: Case,
    cross: float,
    square: float,
    formula: str,
    own_square: float = 1.0,
    product: float = 1.0,
    known_error: Known = NONE,
) -> TrialMoments:
    """Return the moments for keys of E|k|^2 = 1, and for cues of any cosine.

    Parameters
    ----------
    case : Case
        What is asked.
    cross, square : float
        Means of k_i . k_j and its square over i != j.
    formula : str
        How they were found.
    known_error : Known
        What is known of their error.
    own_square, product : float
        E|k|^4, and the mean of |k_i|^2 |k_j|^2 over i != j.

    Notes
    -----
    A cue is q = c k + |k| sqrt(1 - c^2) w, w uniform across k: E (q . k')^2 = c^2 E (k . k')^2 +
    (1 - c^2) / (d - 1) (E |k|^2 |k'|^2 - E (k . k')^2).
    """
    c, gain = case.query_cosine, key_gain(case)
    noisy = c**2 * square + (1 - c**2) / max(case.key_dim - 1, 1) * (product - square)
    found = Moments(c * gain, c**2 * gain**2 * own_square, c * gain * cross, gain**2 * noisy)
    asked = formula if abs(c) == 1 else f"q.k = c |k|^2, the rest of q isotropic across k; {formula}"
    return single(found, known_error == NONE, asked, known_error)


def independent_coordinates(moments: Floats) -> Moments:
    """Return the moments of kappa = sum_a f_a f'_a from E f, E f^2, E f^4 of independent coordinates (3, d)."""
    first, second, fourth = moments
    whole, square = second.sum(), (first**2).sum()
    return Moments(
        float(whole),
        float(fourth.sum() + whole**2 - (second**2).sum()),
        float(square),
        float((second**2).sum() + square**2 - (first**4).sum()),
    )
