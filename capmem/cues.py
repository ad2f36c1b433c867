"""Cues: what the memory is asked with, the stored key or a noisy one."""

from __future__ import annotations

import numpy as np

from capmem.ensembles.base import Rows, unit_rows


def noisy_cues(rng: np.random.Generator, keys: Rows, cosine: float) -> Rows:
    """Return q = |k| (c k/|k| + sqrt(1 - c^2) w) for keys (N, d), w uniform among unit vectors orthogonal to k.

    Every cue has the cosine c with its key, and the key's norm. At c = 1 or -1 the keys times c
    are returned and nothing is drawn; otherwise row by row, so that the first n cues do not depend on N.
    """
    if cosine == 1 or cosine == -1:
        return keys * cosine
    norms: Rows = np.sqrt(np.einsum("ni,ni->n", keys, keys))[:, None]
    directions: Rows = keys / np.where(norms > 0, norms, 1)
    noise = rng.standard_normal(keys.shape)
    noise -= np.einsum("ni,ni->n", noise, directions)[:, None] * directions
    mixed: Rows = cosine * directions + np.sqrt(1 - cosine**2) * unit_rows(noise)
    return norms * mixed
