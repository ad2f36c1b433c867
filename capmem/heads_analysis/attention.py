"""A query head's own softmax attention: its output, and how many tokens it attends to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capmem.heads_analysis.arrays import Floats
from capmem.heads_analysis.halves import Interval, about, halves


class Own(NamedTuple):
    """What a query head does itself.

    Attributes
    ----------
    output : array (T, v)
        softmax(scale q k^T) v, causal where the head is.
    attended : array (T,)
        exp of the entropy of each row of weights: how many tokens each query attends to.
    """

    output: Floats
    attended: Floats


def own_attention(queries: Floats, keys: Floats, values: Floats, scale: float, causal: bool) -> Own:
    """Return what a query head does itself; queries and keys (T, d), values (T, v)."""
    scores = scale * (queries @ keys.T)
    if causal:
        scores = np.where(np.tri(len(scores), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    logs = np.log(np.where(weights > 0, weights, 1))
    return Own(weights @ values, np.exp(-(weights * logs).sum(axis=1)))


def attended_tokens(attended: Floats, seed: int) -> Interval:
    """Return the mean over queries of the number of attended tokens."""
    chosen = halves(len(attended), seed)
    return about(float(attended.mean()), attended[chosen].mean(axis=-1))
