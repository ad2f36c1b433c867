"""Kernel moments of keys from a file: those of the file's own Gram matrix, without replacement."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from capmem.ensembles import ArrayKeys
from capmem.memory import LinearMemory
from capmem.theory.base import Floats, Moments, TheoryUnavailable, TrialMoments, single
from capmem.theory.known import NONE, Known

MAX_ROWS = 4096
BLOCK = 512

FORMULA = "m1, M2: means of kappa_ii and kappa_ii^2; mu, m2: means of kappa_ij and kappa_ij^2 over i != j"


def array_moments(memory: LinearMemory, keys: ArrayKeys, key_dim: int, num_pairs: int | None = None) -> TrialMoments:
    """Return the moments of the rows that are stored: all of the file in random order, else its first ones.

    Raises
    ------
    TheoryUnavailable
        If the rows do not have `key_dim` coordinates, or there are fewer than `num_pairs`.
    """
    count, dim = keys.rows().shape
    if dim != key_dim:
        raise TheoryUnavailable(f"the file's keys have {dim} coordinates, and key_dim is {key_dim}")
    if "sum" in (memory.key_norm, memory.feature_norm):
        raise TheoryUnavailable("no formula for rows divided by their sum, which can be near zero or negative")
    if hasattr(memory.feature_map, "seed"):
        raise TheoryUnavailable("no formula for a random map of a file's keys: its draw differs from trial to trial")
    if num_pairs is not None and num_pairs > count:
        raise TheoryUnavailable(f"the file holds {count} keys, and num_pairs is {num_pairs}")
    stored = count if num_pairs is None or keys.order == "random" else num_pairs
    if memory.feature_map.positional and (keys.order == "random" or stored > MAX_ROWS):
        raise TheoryUnavailable("no formula for a map that depends on the place of a key, and keys in random order")
    return _gram_moments(memory, keys, keys.sha256(), stored)


@lru_cache(maxsize=256)
def _gram_moments(memory: LinearMemory, keys: ArrayKeys, sha256: str, stored: int) -> TrialMoments:
    """Return the moments of the first `stored` rows; the hash is there for the cache, since files change."""
    rows = keys.rows()
    means = memory.calibrate(rows)
    chosen = rows[:stored]
    if stored > MAX_ROWS:
        chosen = rows[np.linspace(0, stored - 1, MAX_ROWS).round().astype(int)]
    state = memory.init(rows.shape[1], 1, **means)
    features = np.asarray(memory.features(state, chosen), dtype=np.float64)
    error = Known(f"from a systematic sample of {MAX_ROWS} of {stored} rows", math.inf) if stored > MAX_ROWS else NONE
    return single(_off_diagonal(features), stored <= MAX_ROWS, FORMULA, error)


def _off_diagonal(features: Floats) -> Moments:
    """Return the moments of the Gram matrix of features (N, D), a block of rows at a time."""
    count = features.shape[0]
    own = np.einsum("nd,nd->n", features, features)
    total = square = 0.0
    for start in range(0, count, BLOCK):
        gram = features[start : start + BLOCK] @ features.T
        total += float(gram.sum())
        square += float(np.einsum("ij,ij->", gram, gram))
    pairs = max(count * (count - 1), 1)
    cross = ((total - own.sum()) / pairs, (square - (own**2).sum()) / pairs)
    return Moments(float(own.mean()), float((own**2).mean()), *map(float, cross))
