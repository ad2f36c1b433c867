"""How a memory fills: spectrum and effective rank of S while pairs are added, and the keys' Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from capmem import figures, geometry
from capmem.ensembles import Ensemble, EquicorrelatedKeys, OrthonormalKeys, SphereKeys, SphereValues
from capmem.ensembles.base import Rows
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.schema import check_fields, require
from capmem.studies import Computed, Study, at_least
from capmem.theory import effective_dimension
from capmem.trial import CALIBRATION_STREAM, CHUNK, KEY_STREAM, VALUE_STREAM, Record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class MemoryGrowth:
    """What is stored, and when it is looked at.

    Parameters
    ----------
    key_dim, value_dim : int
        d and v.
    num_pairs : tuple of int
        N: S is looked at after so many pairs. Orthonormal keys end at d.
    correlation : float
        Of the keys that share a direction, above 0.
    gram_pairs : int
        Keys in the Gram matrix, at most d.
    trials, seed : int
        Repetitions; draws depend on seed and trial alone.
    """

    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    correlation: float = 0.5
    gram_pairs: int = 32
    trials: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "value_dim", "num_pairs", "trials")
        at_least(self, 16, "key_dim")  # what the closed form of correlated keys needs
        at_least(self, 0, "seed")
        require(0 < self.correlation < 1, "correlation", self.correlation, "a number between 0 and 1")
        require(2 <= self.gram_pairs <= self.key_dim, "gram_pairs", self.gram_pairs, "from 2 to key_dim")


class Case(NamedTuple):
    """A law of keys with a name, whether keys are centred, and E cos^2 of two keys (nan: not of unit norm)."""

    name: str
    law: Ensemble
    centred: bool
    mean_squared_cosine: float


def cases(settings: MemoryGrowth) -> list[Case]:
    """Return the laws that are compared; keys that share a mean come as they are, and centred."""
    correlated = EquicorrelatedKeys(settings.correlation)
    of = {law: 1 / effective_dimension(Identity(), law, settings.key_dim) for law in (SphereKeys(), correlated)}
    name = f"correlation {settings.correlation:g}"
    return [
        Case("orthonormal", OrthonormalKeys(), False, 0.0),
        Case("sphere", SphereKeys(), False, of[SphereKeys()]),
        Case(name, correlated, False, of[correlated]),
        Case(f"{name}, centred", correlated, True, float("nan")),
    ]


def participation(num_pairs: int, value_dim: int, mean_squared_cosine: float) -> float:
    """Return E(tr S S^T)^2 / E tr (S S^T)^2 of S = sum_i k_i v_i^T: unit keys, values uniform on a sphere.

    N / (1 + (N - 1)(r + (1 + r) / v)), with r = E cos^2 of two keys: 1/d on the sphere, 0 for orthonormal keys.
    Both expectations are exact; the mean of the ratio differs from their ratio by O(1/N).
    """
    r = mean_squared_cosine
    return num_pairs / (1 + (num_pairs - 1) * (r + (1 + r) / value_dim))


def rows(settings: MemoryGrowth) -> Iterator[Record]:
    """Yield the table, by the column `part`: "state" (a row a trial), "singular" (means) and "gram" (trial 0).

    Singular values are in units of |v|: a single pair of unit norm gives 1.
    """
    for case in cases(settings):
        told = {"keys": case.name, "key_dim": settings.key_dim, "value_dim": settings.value_dim}
        limit = case.law.max_pairs(settings.key_dim)
        reached = [n for n in sorted(set(settings.num_pairs)) if limit is None or n <= limit]
        spectra = []
        for trial in range(settings.trials):
            keys, states = _grow(settings, case, trial, reached)
            spectra.append([np.linalg.svd(state, compute_uv=False) / settings.value_dim**0.5 for state in states])
            for n, state in zip(reached, states, strict=True):
                theory = participation(n, settings.value_dim, case.mean_squared_cosine)
                yield (
                    told
                    | {"part": "state", "num_pairs": n, "trial": trial}
                    | _sizes(state)
                    | {"theory_participation_ratio": theory}
                )
            if trial == 0:
                yield from _gram_rows(told, keys[: settings.gram_pairs])
        for n, spectrum in zip(reached, np.mean(spectra, axis=0), strict=True):
            for index, value in enumerate(spectrum, start=1):
                yield told | {"part": "singular", "num_pairs": n, "index": index, "singular_value": float(value)}


def _sizes(state: Rows) -> Record:
    return {
        "effective_rank": float(geometry.effective_rank(state)),
        "participation_ratio": float(geometry.participation_ratio(state)),
    }


def _grow(settings: MemoryGrowth, case: Case, trial: int, reached: list[int]) -> tuple[Rows, list[Rows]]:
    """Return the keys as the memory sees them, and S after each number of pairs."""
    most = max([*reached, settings.gram_pairs])
    rng = {s: np.random.default_rng([settings.seed, trial, s]) for s in (KEY_STREAM, VALUE_STREAM, CALIBRATION_STREAM)}
    stream = case.law.start(rng[KEY_STREAM], settings.key_dim)
    keys = stream.draw(most)
    values = SphereValues().sample(rng[VALUE_STREAM], most, settings.value_dim)
    memory = LinearMemory(Identity(), key_center="mean" if case.centred else "none")
    means = memory.calibrate(stream.fork(rng[CALIBRATION_STREAM]).draw(CHUNK)) if case.centred else {}
    state = memory.init(settings.key_dim, settings.value_dim, **means)
    features = memory.features(state, keys)
    states, written = [], 0
    for n in reached:
        state = memory.write(state, keys[written:n], values[written:n])
        states.append(memory.write_rule.matrix(state.rule))
        written = n
    return features, states


def _gram_rows(told: Record, keys: Rows) -> Iterator[Record]:
    for i, line in enumerate(geometry.gram(keys)):
        for j, product in enumerate(line):
            place = {"part": "gram", "num_pairs": len(keys), "i": i + 1, "j": j + 1}
            yield told | place | {"inner_product": float(product)}


def finding(table: pd.DataFrame) -> str:
    """Return, from the largest N that every law but the orthonormal one reaches, how many directions S uses."""
    state = table[table["part"] == "state"]
    most, d, v = state["num_pairs"].max(), state["key_dim"].iloc[0], state["value_dim"].iloc[0]
    means = state[state["num_pairs"] == most].groupby("keys", sort=False).mean(numeric_only=True)
    ranks = [f"{name} keys {row['effective_rank']:.1f}" for name, row in means.iterrows()]
    sphere = means.loc["sphere"]
    return (
        f"After {most} pairs S ({d} x {v}) has an effective rank of: {'; '.join(ranks)}. Its energy lies in "
        f"{sphere['participation_ratio']:.1f} directions for sphere keys (participation ratio; closed form "
        f"{sphere['theory_participation_ratio']:.1f}), in {means['participation_ratio'].min():.1f} for the most "
        f"correlated: the state is full of the direction that the keys share."
    )


STUDY = Study(
    "memory_growth",
    MemoryGrowth,
    Computed(rows),
    finding,
    {
        "memory_growth": figures.effective_rank,
        "spectrum": figures.spectrum,
        "gram": figures.gram_heatmap,
    },
)
