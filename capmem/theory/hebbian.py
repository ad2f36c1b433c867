"""Predicted metrics of the Hebbian rule, for each read-out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from capmem.ensembles import DuplicatedKeys, TightFrameKeys
from capmem.readouts import Linear, Normalized, Readout, RMSNorm
from capmem.theory import ratio, tight_frames
from capmem.theory.angles import angle_numbers
from capmem.theory.base import Source, TheoryUnavailable, TrialMoments
from capmem.theory.case import Case, Numbers
from capmem.theory.common_mean import FORMULA as COMMON
from capmem.theory.common_mean import common_mean_error
from capmem.theory.denominator import weight_moments
from capmem.theory.known import NONE, Known
from capmem.theory.laws import reduced
from capmem.theory.meanfield import compressed
from capmem.theory.measured import measured
from capmem.theory.pairs import fresh_share, pair_moments, ratio_notes
from capmem.theory.structured import linear_memory
from capmem.theory.values import ValueLaw, value_law

RAW = "e_raw = M2 - 2 m1 + 1 + (N-1) m2"
NORMED = "e_raw = 2 (1 - cos), e_opt = 1 - cos^2 with cos = E cos(y, v)"
FRAME_ERROR = Known("a beta law is taken for values of fixed norm too: 0.1% at N = 2 d, v >= 16", 0.001)
GROUPS = 3  # of trials, over which a divided reading is averaged


def hebbian_numbers(case: Case) -> Numbers:
    """Return the predicted metrics of S = sum_i phi(k_i) v_i^T.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known.
    """
    readout = linear_memory(case).readout
    if type(readout) not in READOUTS:
        raise TheoryUnavailable(f"no formula for the read-out {type(readout).__name__}")
    return READOUTS[type(readout)](case)


def _linear(case: Case) -> Numbers:
    values, moments = value_law(case.values, case.value_dim), pair_moments(case)
    source = Source(f"{RAW}; {moments.formula}", moments.exact, moments.known_error)
    if values.common:
        found = common_mean_error(case, moments, values)
        return {"relative_squared_error": (found, source._replace(formula=f"{COMMON}; {moments.formula}"))}
    raw = {"relative_squared_error": (raw_error(moments, case.num_pairs), source)}
    return raw | _optimal(case, moments, values) | angle_numbers(case, moments, values)


def raw_error(moments: TrialMoments, num_pairs: int) -> float:
    """Return M2 - 2 m1 + 1 + (N-1) m2, the mean over trials."""
    m1, M2, _, m2 = moments.columns
    return max(float(moments.weights @ (M2 - 2 * m1 + 1 + (num_pairs - 1) * m2)), 0.0)  # but for rounding


def _optimal(case: Case, moments: TrialMoments, values: ValueLaw) -> Numbers:
    if type(case.keys) is TightFrameKeys and case.query_cosine == 1:
        error, odds = tight_frames.tight_frame_errors(case, values)
        found = {"scale_optimal_error": (error, Source(tight_frames.OPTIMAL, True, NONE))}
        exact = values.overlap == 0 or not values.fixed_norm or case.num_pairs <= case.key_dim
        known = NONE if exact else FRAME_ERROR
        return found | _odds(odds, Source(tight_frames.ODDS, exact, known))
    return optimal_numbers(moments, case.num_pairs, values, ratio_notes(case, "linear"), fresh_share(case))


def optimal_numbers(
    moments: TrialMoments,
    num_pairs: int,
    values: ValueLaw,
    notes: tuple[Known, Known],
    fresh: float = 1.0,
    fourth: float | None = None,
) -> Numbers:
    """Return scale-optimal error and signal-to-noise ratio, the latter where it has a mean.

    See :func:`capmem.theory.ratio.optimal_errors`; `notes` say what is known of the errors of the two.
    """
    error, odds = ratio.optimal_errors(moments, num_pairs, values, fresh, fourth)
    formula = f"{ratio.OPTIMAL}; {moments.formula}"
    found = {"scale_optimal_error": (error, Source(formula, False, notes[0]))}
    return found | _odds(odds, Source(formula, False, notes[1]))


def _odds(odds: float, source: Source) -> Numbers:
    return {} if np.isnan(odds) else {"signal_to_noise": (odds, source)}


def _normalized(case: Case) -> Numbers:
    memory: Any = linear_memory(case)
    if memory.feature_center == "mean" or not memory.feature_map.positive_kernel:
        raise TheoryUnavailable("no formula for a normalised read-out of a kernel that can be negative")
    if isinstance(reduced(case.keys), DuplicatedKeys):
        raise TheoryUnavailable("no formula for a normalised read-out of keys that come again")
    values, moments = value_law(case.values, case.value_dim), pair_moments(case)
    weights = weight_moments(compressed(moments, GROUPS), case.num_pairs, float(memory.readout.epsilon))
    notes = (measured("divided_raw", case), *ratio_notes(case, "divided"))
    numbers = divided_numbers(weights, case.num_pairs, values, notes, memory.readout.epsilon == 0)
    return numbers if values.common else numbers | angle_numbers(case, moments, values)


def divided_numbers(
    weights: TrialMoments,
    num_pairs: int,
    values: ValueLaw,
    notes: tuple[Known, Known, Known],
    full: bool = True,
    fourth: float | None = None,
) -> Numbers:
    """Return the errors of a weighted mean of the values.

    Parameters
    ----------
    weights : TrialMoments
        Of the weights.
    num_pairs : int
        N.
    values : ValueLaw
        Their common mean passes through, where weights add up to 1.
    notes : tuple of Known
        What is known of the errors of e_raw, e_opt, SNR.
    full : bool
        Whether they do.
    fourth : float, optional
        E kappa_ij^4 / m2^2.
    """
    if values.common and not full:
        raise TheoryUnavailable("no formula for values with a common mean under weights that do not add up to 1")
    error = raw_error(weights, num_pairs) * values.power / (values.power + values.common)
    source = Source(f"{RAW} of weights, {weights.formula}", False, notes[0])
    raw = {"relative_squared_error": (error, source)}
    if values.common:
        return raw
    return raw | optimal_numbers(weights, num_pairs, values, notes[1:], fourth=fourth)


def _rms_norm(case: Case) -> Numbers:
    values, moments = value_law(case.values, case.value_dim), pair_moments(case)
    if values.common:
        raise TheoryUnavailable("no formula for values with a common mean under a normalised output")
    numbers = angle_numbers(case, moments, values)
    m1, M2, _, m2 = moments.columns
    power = float(moments.weights @ (M2 + (case.num_pairs - 1) * m2)) * values.power / values.dim
    plain, odds = ratio.optimal_errors(moments, case.num_pairs, values, fresh_share(case))
    spread = odds * plain / (1 - plain) if 0 < plain < 1 else 1.0
    return numbers | _normed(numbers["cosine_similarity"], power, spread, case, values)


def _normed(cosine: tuple[float, Source], power: float, spread: float, case: Case, values: ValueLaw) -> Numbers:
    """Return the errors of a reading of power v, less what epsilon takes from it, from its cosine.

    Parameters
    ----------
    cosine : tuple
        E cos(y, v) and its source.
    power : float
        Mean square of a coordinate of the reading before its norm.
    spread : float
        The mean over trials of 1/x - 1 over its value at the mean x, for x the error of the undivided reading.
    case : Case
        What is asked; its read-out has the epsilon.
    values : ValueLaw
        Of fixed norm, or there is no formula for the raw error.
    """
    cos, source = cosine
    readout: Any = linear_memory(case).readout
    length = (values.dim * power / (power + readout.epsilon)) ** 0.5 if power > 0 else 0.0
    size = values.power**0.5
    formula = f"{NORMED}; {source.formula}"
    optimal_note, odds_note = ratio_notes(case, "normed")
    explained = min(cos**2, 1.0)
    odds = np.inf if explained > 1 - 1e-14 else spread * explained / (1 - explained)
    found = {"scale_optimal_error": (1 - explained, Source(formula, False, optimal_note))}
    found |= _odds(odds, Source(formula, False, odds_note))
    if values.fixed_norm:
        error = (length**2 - 2 * length * size * cos) / values.power + 1
        found["relative_squared_error"] = (max(error, 0.0), Source(formula, False, measured("normed_raw", case)))
    return found


READOUTS: dict[type[Readout], Callable[[Case], Numbers]] = {
    Linear: _linear,
    Normalized: _normalized,
    RMSNorm: _rms_norm,
}
