"""What a narrow state costs: the error that rounding adds, against pairs and against the pairs between roundings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capmem.ensembles import Ensemble, GaussianKeys, SphereKeys, SphereValues
from capmem.feature_maps import EluPlusOne, FeatureMap, Identity
from capmem.memory import LinearMemory
from capmem.precision import StateDType
from capmem.trial import KEY_STREAM, VALUE_STREAM, Record

Rows = NDArray[np.floating[Any]]

# Keys at the scale that each map is used at: S is what the first one holds, z is what ruins the second.
CASES: dict[str, tuple[FeatureMap, Ensemble]] = {
    "identity": (Identity(), SphereKeys()),
    "elu_plus_one": (EluPlusOne(), GaussianKeys()),
}


def rounded_rows(
    formats: Sequence[StateDType],
    intervals: Sequence[int],
    counts: Sequence[int],
    sizes: tuple[int, int],
    trials: int,
    seed: int,
) -> Iterator[Record]:
    """Yield a row for each map, format, rounding interval, N and trial: what differs from a float64 state.

    Columns: added_error, mean |y_rounded - y|^2 / mean |v|^2 of the unnormalised read-out of all stored keys;
    state_error, |S_rounded - S| / |S|; z_ratio, sum z_rounded / sum z (nan where features sum to 0, or z overflowed).
    """
    reached = sorted(set(counts))
    for name, (phi, law) in CASES.items():
        keys, values = _pairs(law, reached[-1], sizes, trials, seed)
        exact = _states(LinearMemory(phi), keys.astype(np.float64), values.astype(np.float64), reached)
        features = phi(keys.astype(np.float64))
        for held_in in formats:
            for every in intervals:
                memory = LinearMemory(phi, state_dtype=held_in, round_every=every)
                told = {"part": "precision", "feature_map": name, "state_dtype": held_in, "round_every": every}
                for n, rounded, true in zip(reached, _states(memory, keys, values, reached), exact, strict=True):
                    found = _differences(rounded, true, features[:, :n], phi.signed)
                    for trial in range(trials):
                        own = {column: float(numbers[trial]) for column, numbers in found.items()}
                        yield told | {"trial": trial, "num_pairs": n} | own


def _pairs(law: Ensemble, count: int, sizes: tuple[int, int], trials: int, seed: int) -> tuple[Rows, Rows]:
    """Return keys (T, N, d) and values (T, N, v) in float32; draws depend on seed and trial alone."""
    drawn = []
    for ensemble, dim, stream in ((law, sizes[0], KEY_STREAM), (SphereValues(), sizes[1], VALUE_STREAM)):
        trial_rows = [ensemble.sample(np.random.default_rng([seed, t, stream]), count, dim) for t in range(trials)]
        drawn.append(np.stack(trial_rows).astype(np.float32))
    return drawn[0], drawn[1]


def _states(memory: LinearMemory, keys: Rows, values: Rows, reached: Sequence[int]) -> list[tuple[Rows, Rows]]:
    """Return S (T, D, v) and z (T, D) after each number of pairs."""
    state = memory.init(keys.shape[-1], values.shape[-1], keys.shape[:1], like=keys)
    states, written = [], 0
    for n in reached:
        state = memory.write(state, keys[:, written:n], values[:, written:n])
        states.append((state.rule.S.astype(np.float64), state.rule.z.astype(np.float64)))
        written = n
    return states


def _differences(rounded: tuple[Rows, Rows], exact: tuple[Rows, Rows], features: Rows, signed: bool) -> dict[str, Rows]:
    """Compare two states (S, z) trial by trial; values have mean square 1 a coordinate."""
    (S, z), (true_S, true_z) = rounded, exact
    added = features @ (S - true_S)
    ratio = z.sum(axis=-1) / true_z.sum(axis=-1)
    return {
        "added_error": np.mean(added**2, axis=(-2, -1)),
        "state_error": np.linalg.norm(S - true_S, axis=(-2, -1)) / np.linalg.norm(true_S, axis=(-2, -1)),
        "z_ratio": np.full_like(ratio, np.nan) if signed else ratio,
    }
