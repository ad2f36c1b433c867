"""What every prediction is made of: kernel moments, a mixture of them over trials, and where numbers come from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capmem.theory.known import NONE, Known

Floats = NDArray[np.float64]


class TheoryUnavailable(ValueError):
    """No formula covers this combination; the message says what stands in the way."""


class Source(NamedTuple):
    """Where a predicted number comes from.

    Attributes
    ----------
    formula : str
        The formula, in plain text.
    exact : bool
        Whether it is the expectation itself (up to quadrature and rounding), and no approximation.
    known_error : Known
        What is known of its error, measured against simulation: text, and the largest relative error in it.
    """

    formula: str
    exact: bool
    known_error: Known


class Moments(NamedTuple):
    """Moments of the kernel kappa(a, b) = phi(a) . phi(b) of independent keys k, k' of one law.

    Attributes
    ----------
    self_mean, self_square : float
        m1 = E kappa(k, k) and M2 = E kappa(k, k)^2.
    cross_mean, cross_square : float
        mu = E kappa(k, k') and m2 = E kappa(k, k')^2.
    """

    self_mean: float
    self_square: float
    cross_mean: float
    cross_square: float


class TrialMoments(NamedTuple):
    """Moments given what all keys of one trial share (its common key), as a mixture over trials.

    Attributes
    ----------
    weights : array (R,)
        They sum to 1; R = 1 where the keys of a trial share nothing.
    columns : array (4, R)
        m1, M2, mu, m2 as in :class:`Moments`, conditional.
    exact : bool
        Whether nothing but quadrature stands between these numbers and the law.
    formula : str
        How they were found.
    known_error : Known
        The error measured for it.
    """

    weights: Floats
    columns: Floats
    exact: bool
    formula: str
    known_error: Known = NONE

    def average(self) -> Moments:
        """Return the moments over all trials."""
        return Moments(*map(float, self.columns @ self.weights))


def single(moments: Moments, exact: bool, formula: str, known_error: Known = NONE) -> TrialMoments:
    """Return the mixture for keys that share nothing: one component."""
    return TrialMoments(np.ones(1), np.array(moments)[:, None], exact, formula, known_error)
