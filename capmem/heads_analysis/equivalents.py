"""What random keys of a given dimension would hold: the measure that a head's keys are held against."""

from __future__ import annotations

import math
from functools import lru_cache

from capmem import capacity
from capmem.ensembles import SphereKeys
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory

LEAST = 2  # the closed form needs angles


def random_keys_hold(dim: float, value_dim: int, accuracy: float) -> float:
    """Return N* (top-1 against the stored values, random values) of random unit keys, by the closed form.

    Between two whole dimensions it is taken as linear; nan below 2, above 4096, and where the form does not bracket it.
    """
    if not LEAST <= dim <= 4096:
        return math.nan
    below = math.floor(dim)
    low, high = (_at(d, value_dim, accuracy) for d in (below, below + 1))
    return low + (dim - below) * (high - low)


@lru_cache(maxsize=4096)
def _at(dim: int, value_dim: int, accuracy: float) -> float:
    return capacity.estimate(
        LinearMemory(Identity()),
        SphereKeys(),
        key_dim=dim,
        value_dim=value_dim,
        metric="top1_accuracy",
        threshold=accuracy,
        method="theory",
    ).pairs
