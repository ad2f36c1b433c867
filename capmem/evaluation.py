"""The same question about arrays that are at hand: how well does this memory hold these pairs?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capmem._arrays import Array, require_vectors
from capmem.ensembles.arrays import RowStream
from capmem.memory import Memory
from capmem.schema import require
from capmem.trial import CHUNK, KEY_STREAM, METRICS, SUBSET_STREAM, Record, Sampling, Sources, run_trial


def evaluate(
    memory: Memory,
    keys: Array,
    values: Array,
    queries: Array | None = None,
    num_pairs: int | Sequence[int] | None = None,
    trials: int = 1,
    seed: int = 0,
) -> list[Record]:
    """Measure how well a memory holds keys and values that are at hand, of any array library.

    Each trial stores the pairs in a random order of its own, so that a trial of n pairs is a random subset.
    A memory that centres does so by the mean over all given keys.

    Parameters
    ----------
    memory : Memory
        What is tested.
    keys : array (N, d)
        Real floating point; of one library, dtype and device with the others.
    values : array (N, v)
        Value i belongs to key i.
    queries : array (N, d), optional
        Query i asks for value i (default: the keys).
    num_pairs : int or sequence of int, optional
        Checkpoints, each at most N (default: N).
    trials : int
        Random orders.
    seed : int
        At least 0; the order of a trial is drawn from [seed, trial, 0], as in a sweep over ``keys=array``.

    Returns
    -------
    list of dict
        One a trial and checkpoint: num_pairs, trial, all metrics, counts, state_elements, state_bytes.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a checkpoint that is not within 1 to N.
    """
    _check_arrays(keys, values, keys if queries is None else queries)
    total = int(keys.shape[0])
    given = (total,) if num_pairs is None else (num_pairs,) if isinstance(num_pairs, int) else tuple(num_pairs)
    checkpoints = sorted(set(given))
    require(bool(checkpoints), "num_pairs", given, "one or more integers")
    require(1 <= checkpoints[0] and checkpoints[-1] <= total, "num_pairs", given, f"within 1 to {total}")
    require(trials >= 1, "trials", trials, "an integer of at least 1")
    means = memory.calibrate(keys)
    dims = int(keys.shape[1]), int(values.shape[1])
    records = []
    for trial in range(trials):
        state = memory.init(*dims, like=keys, **means)
        sources = _array_sources(keys, values, keys if queries is None else queries, (seed, trial, KEY_STREAM))
        sampling = Sampling(CHUNK, None, (seed, trial, SUBSET_STREAM))
        for record in run_trial(memory, state, sources, sampling, checkpoints, tuple(METRICS)):
            size = memory.state_size(*dims, record["num_pairs"], str(keys.dtype).split(".")[-1])
            sizes = {"state_elements": size.elements, "state_bytes": size.bytes}
            records.append({"trial": trial} | record | sizes)
    return records


def _check_arrays(keys: Array, values: Array, queries: Array) -> None:
    for name, rows in (("keys", keys), ("values", values), ("queries", queries)):
        require_vectors(rows, name)
        if rows.ndim != 2 or rows.shape[0] != keys.shape[0] or 0 in rows.shape:
            raise ValueError(
                f"{name} must be one array (N, dim) with a row for each of the {keys.shape[0]} keys, "
                f"got shape {tuple(rows.shape)}; go through heads or batches one by one"
            )
    require_vectors(queries, "queries", keys.shape[1])


def _array_sources(keys: Array, values: Array, queries: Array, seed: Sequence[int]) -> Sources:
    def stream(rows: Array) -> RowStream:
        return RowStream(rows, np.random.default_rng(seed), "random")

    cues, stored = stream(queries), stream(values)
    return Sources(
        keys=stream(keys),
        values=stored,
        cue=lambda rows: cues.draw(rows.shape[0]),
        others=lambda taken, n: stored.others(np.random.default_rng(seed), taken, n),
        cast=lambda rows: rows,
    )
