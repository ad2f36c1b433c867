"""Which pairs interfere: the largest cosines with their tokens, each token's recall error, part of the Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capmem import metrics
from capmem.heads_analysis.arrays import both_ways, unit
from capmem.heads_analysis.recall import MEMORY
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.task import Analysed, Record


def worst_pairs(head: Analysed, settings: HeadsAnalysis) -> Iterator[Record]:
    """Yield the pairs of keys with the largest |cosine|: of equal tokens, and of different ones."""
    rows, columns = np.triu_indices(len(head.keys), k=1)
    same = head.labels[rows] == head.labels[columns]
    for way, keys in both_ways(head.keys):
        units = unit(keys)
        cosines = (units @ units.T)[rows, columns]
        order = np.argsort(-abs(cosines), kind="stable")
        for equal in (False, True):
            for rank, place in enumerate(order[same[order] == equal][: settings.worst_pairs], start=1):
                i, j = int(rows[place]), int(columns[place])
                told = {"keys": way, "same_token": equal, "rank": rank, "i": i, "j": j}
                texts = {"token_i": head.tokens[i], "token_j": head.tokens[j]}
                yield head.columns() | told | texts | {"cosine": float(cosines[place])}


def token_errors(head: Analysed, settings: HeadsAnalysis) -> Iterator[Record]:
    """Yield a row for each token, all T stored: its recall error, whether it is recalled, and the worst other key.

    error = |a r_i - v_i|^2 / mean |v|^2 with one gain a for all tokens: its mean is the scale-optimal error.
    """
    codebook = settings.codebook(head.values)
    for way, keys in both_ways(head.keys):
        units = unit(keys)
        empty = MEMORY.init(units.shape[1], head.values.shape[1])
        retrieved = MEMORY.read(MEMORY.write(empty, units, head.values), units)
        errors = metrics.scale_optimal_error(retrieved, head.values, per_pair=True)
        best = np.argmax(retrieved @ codebook.T, axis=1)
        cosines = units @ units.T - 3 * np.eye(len(keys))
        for i, token in enumerate(head.tokens):
            found, j = int(best[i]), int(np.argmax(cosines[i]))
            told = {"keys": way, "position": i, "token": token, "error": float(errors[i])}
            told |= {"recalled": found == i, "recalled_token": bool(head.labels[found] == head.labels[i])}
            told |= {"read_as": head.tokens[found], "nearest": head.tokens[j], "cosine": float(cosines[i, j])}
            yield head.columns() | told


def gram(head: Analysed, settings: HeadsAnalysis) -> Iterator[Record]:
    """Yield the cosines of keys spread evenly over the text, i <= j their positions: neighbours are no fair sample."""
    count = min(settings.gram_tokens, len(head.keys))
    places = np.linspace(0, len(head.keys) - 1, count).round().astype(int)
    cosines = [unit(keys)[places] @ unit(keys)[places].T for _, keys in both_ways(head.keys)]
    for a, b in zip(*(rows.tolist() for rows in np.triu_indices(count)), strict=True):
        i, j = int(places[a]), int(places[b])
        told = {"i": i, "j": j, "token_i": head.tokens[i], "token_j": head.tokens[j]}
        yield head.columns() | told | {"cosine": float(cosines[0][a, b]), "cosine_centred": float(cosines[1][a, b])}
