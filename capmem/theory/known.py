"""What is known of the error of a formula: a text for people, and the number in it for programs."""

from __future__ import annotations

import math
from collections.abc import Callable

Bound = Callable[[int, int, int], float]


class Known(str):
    """A text that says what is known of an error, with the largest relative error that it states.

    Parameters
    ----------
    text : str
        What was measured, and where.
    bound : float or callable
        The error relative to the true value: one number, or a function of (key_dim, value_dim, num_pairs); infinite
        where the text states none.
    """

    bound: float | Bound

    def __new__(cls, text: str, bound: float | Bound = 0.0) -> Known:
        """Return the text, with its number."""
        found = super().__new__(cls, text)
        found.bound = bound
        return found

    def at(self, key_dim: int, value_dim: int, num_pairs: int) -> float:
        """Return the largest relative error stated for these sizes."""
        return float(self.bound(key_dim, value_dim, num_pairs) if callable(self.bound) else self.bound)


NONE = Known("none", 0.0)


def together(*notes: Known) -> Known:
    """Return one note for errors that come together: texts one after the other, bounds added up."""
    told = [note for note in notes if note not in ("", NONE)]
    if len(told) < 2:
        return told[0] if told else NONE
    return Known("; ".join(told), lambda d, v, n: sum(note.at(d, v, n) for note in told))


def by_dim(small: float, least: int, large: float) -> Bound:
    """Return a bound that is `large` from the key dimension `least` on, else `small`."""
    return lambda key_dim, value_dim, num_pairs: large if key_dim >= least else small


def by_size(bounds: dict[int, float]) -> Bound:
    """Return a bound by the least of key and value dimension: that of the largest size not above it."""

    def at(key_dim: int, value_dim: int, num_pairs: int) -> float:
        reached = [size for size in bounds if size <= min(key_dim, value_dim)]
        return bounds[max(reached)] if reached else math.inf

    return at
