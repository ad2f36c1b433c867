"""What formulas must not be asked: key laws they do not know, moments that no sample shows or float64 does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import numpy as np

from capmem.theory.base import Floats, TheoryUnavailable, TrialMoments
from capmem.theory.laws import KeyLaw

KNOWN = {"correlation", "unit", "fixed_mean", "centred", "renormed", "scale"}
UNSEEN, UNSEEN_SHARE = 1e-6, 0.1  # at most this share of a moment may lie where so few pairs, or keys, go

MOST = 1e100  # moments whose squares and products stay within float64


@contextmanager
def within_float64() -> Iterator[None]:
    """Raise TheoryUnavailable, instead of a warning or an error, where a number leaves the range of float64."""
    try:
        with np.errstate(over="raise"):
            yield
    except (OverflowError, FloatingPointError) as error:
        raise TheoryUnavailable("no prediction where numbers leave the range of float64: use smaller keys") from error


def require_moderate(moments: TrialMoments) -> TrialMoments:
    """Return the moments; raise TheoryUnavailable if some are beyond :data:`MOST`, or no numbers."""
    if not np.abs(moments.columns).max() < MOST:  # nan neither
        raise TheoryUnavailable(f"no prediction where moments of the kernel are beyond {MOST:g}")
    return moments


def require_plain(law: KeyLaw) -> None:
    """Raise TheoryUnavailable for a law that is more than a common direction plus isotropic noise."""
    for field in fields(law):
        if field.name not in KNOWN and getattr(law, field.name) != field.default:
            raise TheoryUnavailable(f"no formula for such a map of keys with {field.name}")


def require_seen(weights: Floats, masses: Floats, what: str) -> None:
    """Raise TheoryUnavailable if a moment lies where no sample goes.

    Parameters
    ----------
    weights : array (...)
        Probabilities of the nodes.
    masses : array (...)
        What each contributes to the moment, weight included; not negative.
    what : str
        The moment, for the message.
    """
    order = np.argsort(-(masses / np.where(weights > 0, weights, 1)).ravel())
    rare = np.cumsum(weights.ravel()[order]) < UNSEEN
    if masses.ravel()[order][rare].sum() > UNSEEN_SHARE * masses.sum():
        raise TheoryUnavailable(f"{what} lies in less than {UNSEEN:g} of its samples, unseen")
