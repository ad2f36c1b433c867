"""What formulas of feature maps must not be asked: key laws they do not know, and moments that no sample shows."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from capmem.theory.base import Floats, TheoryUnavailable
from capmem.theory.laws import KeyLaw

KNOWN = {"correlation", "unit", "fixed_mean", "centred", "renormed", "scale"}
UNSEEN, UNSEEN_SHARE = 1e-6, 0.1  # at most this share of a moment may lie where so few pairs, or keys, go


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
