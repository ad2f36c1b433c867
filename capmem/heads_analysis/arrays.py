"""Arrays of one head: rows of unit norm, and keys as they are and centred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]

AS_THEY_ARE, CENTRED = "as they are", "centred"


def unit(rows: Floats) -> Floats:
    """Return rows (..., D) divided by their norms; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    found: Floats = rows / np.where(norms > 0, norms, 1)
    return found


def both_ways(keys: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield keys (T, d) as they are, and with their mean over all T taken away."""
    yield AS_THEY_ARE, keys
    yield CENTRED, keys - keys.mean(axis=0)
