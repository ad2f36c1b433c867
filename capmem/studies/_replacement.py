"""Keys and values drawn with replacement: what a rule reads of a key that was written several times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from capmem import metrics
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.readouts import Normalized
from capmem.trial import KEY_STREAM, VALUE_STREAM, Record
from capmem.write_rules import Delta

MEMORIES = {
    "hebbian, normalised": LinearMemory(Identity(), readout=Normalized()),
    "delta, step=1": LinearMemory(Identity(), Delta(1.0)),
}


def replacement_rows(distinct_keys: Sequence[int], trials: int, seed: int) -> Iterator[Record]:
    """Yield a row for each rule, number of keys S and trial: S pairs of S orthonormal keys and S one-hot values.

    Each pair draws its key and its value anew; a key that is there is asked for its latest value. A trial's error is
    the sum over its keys, `num_scored` of them, by the expected number: its expectation is the mean over the keys of
    all trials, which is what the closed form is of.

    References
    ----------
    Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 6.1.2 (their loss is half of this error).
    """
    for S in distinct_keys:
        expected = S * (1 - (1 - 1 / S) ** S)
        theory = {"hebbian, normalised": averaging_error(S), "delta, step=1": 0.0}
        for trial in range(trials):
            rng = {s: np.random.default_rng([seed, trial, s]) for s in (KEY_STREAM, VALUE_STREAM)}
            keys, values = (np.eye(S)[rng[s].integers(S, size=S)] for s in (KEY_STREAM, VALUE_STREAM))
            latest = [np.flatnonzero(keys[:, k])[-1] for k in np.flatnonzero(keys.any(axis=0))]
            for label, memory in MEMORIES.items():
                read = memory.read(memory.write(memory.init(S, S), keys, values), keys[latest])
                error = float(metrics.relative_squared_error(read, values[latest])) * len(latest) / expected
                yield {
                    "rule": label, "num_pairs": S, "trial": trial, "num_scored": len(latest),
                    "relative_squared_error": error, "theory_relative_squared_error": theory[label],
                }  # fmt: skip


def averaging_error(distinct: int) -> float:
    """Return (1 - 1/S) E[(n-1)/n | n >= 1], n ~ Binomial(S, 1/S): a read that averages all values of a key."""
    S = distinct
    n = np.arange(1, S + 1)
    log_chance = np.cumsum(np.log((S - n + 1) / n)) - n * np.log(S) + (S - n) * np.log1p(-1 / S)
    chance = np.exp(log_chance)
    return float((1 - 1 / S) * (chance * (n - 1) / n).sum() / chance.sum())
