"""The same question about arrays that are at hand: how well does this memory hold these pairs?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capmem._arrays import Array, namespace, require_vectors
from capmem.ensembles.arrays import RowStream
from capmem.memory import Memory
from capmem.schema import coerce, require
from capmem.trial import CHUNK, KEY_STREAM, METRICS, SUBSET_STREAM, Record, Sampling, Sources, run_trials


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
        For shapes, libraries or dtypes that do not fit, nan or inf, or a checkpoint not within 1 to N.
    """
    queries = keys if queries is None else queries
    require(isinstance(memory, Memory), "memory", memory, "a memory, such as LinearMemory(ReLU())")
    _check_arrays(keys, values, queries)
    checkpoints = _checkpoints(num_pairs, int(keys.shape[0]))
    trials, seed = coerce(trials, int, "trials"), coerce(seed, int, "seed")
    require(trials >= 1, "trials", trials, "an integer of at least 1")
    require(seed >= 0, "seed", seed, "an integer of at least 0")
    means = memory.calibrate(keys)
    dims = int(keys.shape[1]), int(values.shape[1])
    own = f"float{namespace(keys).finfo(keys.dtype).bits}"  # bfloat16 takes what float16 does
    records = []
    for trial in range(trials):
        state = memory.init(*dims, like=keys, **means)
        sources = _array_sources(keys, values, queries, (seed, trial, KEY_STREAM))
        sampling = Sampling(CHUNK, None, (seed, trial, SUBSET_STREAM))
        with np.errstate(over="ignore", invalid="ignore"):  # counted: nonfinite_retrieved
            for (record,) in run_trials(memory, state, [sources], sampling, _only, checkpoints, tuple(METRICS)):
                size = memory.state_size(*dims, record["num_pairs"], own)
                sizes = {"state_elements": size.elements, "state_bytes": size.bytes}
                records.append({"trial": trial} | record | sizes)
    return records


def _checkpoints(num_pairs: int | Sequence[int] | None, total: int) -> list[int]:
    given = total if num_pairs is None else num_pairs
    listed = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
    checkpoints = sorted({coerce(n, int, "num_pairs") for n in listed})
    require(bool(checkpoints), "num_pairs", given, "one or more integers")
    require(1 <= checkpoints[0] and checkpoints[-1] <= total, "num_pairs", given, f"within 1 to {total}")
    return checkpoints


def _check_arrays(keys: Array, values: Array, queries: Array) -> None:
    xp = require_vectors(keys, "keys")
    for name, rows in (("keys", keys), ("values", values), ("queries", queries)):
        if require_vectors(rows, name) is not xp or rows.dtype != keys.dtype:
            raise ValueError(f"{name} must be of the library and dtype of the keys, {keys.dtype}, got {rows.dtype}")
        if rows.ndim != 2 or rows.shape[0] != keys.shape[0] or 0 in rows.shape:
            raise ValueError(
                f"{name} must be one array (N, dim) with a row for each of the {keys.shape[0]} keys, "
                f"got shape {tuple(rows.shape)}; go through heads or batches one by one"
            )
        bad = ~xp.all(xp.isfinite(rows), axis=-1)
        if bool(xp.any(bad)):
            first, count = int(xp.argmax(xp.astype(bad, xp.int64))), int(xp.count_nonzero(bad))
            raise ValueError(f"{name} hold nan or inf in {count} rows, the first is {first}")
    require_vectors(queries, "queries", keys.shape[1])


def _array_sources(keys: Array, values: Array, queries: Array, seed: Sequence[int]) -> Sources:
    def stream(rows: Array) -> RowStream:
        return RowStream(rows, np.random.default_rng(seed), "random")

    stored, cues = stream(values), None if queries is keys else stream(queries)
    return Sources(
        keys=stream(keys),
        values=stored,
        cue=None if cues is None else lambda rows: cues.draw(rows.shape[0]),
        others=lambda taken, n: stored.others(np.random.default_rng(seed), taken, n),
    )


def _only(rows: list[Array]) -> Array:
    return rows[0]
