"""What a capacity is asked for, the number of pairs left open: a metric at any N, predicted or simulated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.ensembles import Ensemble, SphereValues
from capmem.experiment import DType, Experiment
from capmem.memory import Memory

if TYPE_CHECKING:
    from capmem.theory import Source


@dataclass(frozen=True)
class Problem:
    """A memory, the laws of its keys and values, and their sizes; parameters as in :class:`Experiment`.

    Raises
    ------
    ValueError
        For a value out of range, or dimensions that differ from those of a file.
    """

    memory: Memory
    keys: Ensemble
    key_dim: int
    value_dim: int
    values: Ensemble = SphereValues()
    query_cosine: float = 1.0
    codebook_size: int | None = None
    seed: int = 0
    dtype: DType = "float32"

    def __post_init__(self) -> None:
        self.experiment((), (1,), 1)

    def experiment(self, metrics: tuple[str, ...], num_pairs: tuple[int, ...], trials: int) -> Experiment:
        """Return the experiment that measures `metrics` at these checkpoints."""
        given = {name: getattr(self, name) for name in ("query_cosine", "codebook_size", "seed", "dtype")}
        laws = (self.memory, self.keys, self.values, self.key_dim, self.value_dim)
        return Experiment(*laws, num_pairs=num_pairs, trials=trials, metrics=metrics, **given)

    def limit(self, max_pairs: int) -> int:
        """Return the largest number of pairs to look at: keys, values and the codebook may hold fewer."""
        limits = (self.keys.max_pairs(self.key_dim), self.values.max_pairs(self.value_dim), self.codebook_size)
        return min([max_pairs, *(n for n in limits if n is not None)])

    def predicted(self, metric: str, num_pairs: int) -> tuple[float, Source]:
        """Return the prediction of a metric at N pairs, against all N values unless a codebook is given.

        Raises
        ------
        TheoryUnavailable
            Where there is no formula, or none for this metric.
        """
        from capmem import theory  # half of the library's import time, which only a question needs

        codebook = num_pairs if self.codebook_size is None else self.codebook_size
        laws = (self.memory, self.keys, self.key_dim, self.value_dim, num_pairs, self.values)
        found = theory.predict(*laws, query_cosine=self.query_cosine, codebook_size=codebook)
        number = float(getattr(found, metric))
        if metric not in found.sources or np.isnan(number):
            raise theory.TheoryUnavailable(f"no formula for the metric {metric} here")
        return number, found.sources[metric]


class Curves:
    """Simulated curves of one metric: each (trial, number of pairs) is measured once, when it is asked for.

    A trial draws the same pairs whichever checkpoints are asked for, so curves can be refined at any place.
    """

    def __init__(self, problem: Problem, metric: str) -> None:
        self.problem, self.metric = problem, metric
        self._known: dict[tuple[int, int], float] = {}

    def at(self, trials: int, grid: Iterable[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the metric as (trials, checkpoints), for an ascending grid."""
        places = tuple(grid)
        units = [(t, n) for t in range(trials) for n in places]
        if missing := [unit for unit in units if unit not in self._known]:
            for record in self.problem.experiment((self.metric,), places, trials).run(missing):
                self._known[record["trial"], record["num_pairs"]] = record[self.metric]
        return np.array([self._known[unit] for unit in units]).reshape(trials, len(places))


def ladder(limit: int) -> list[int]:
    """Return 1, 2, 4, ... up to `limit`, which is the last one."""
    return [*(2**i for i in range((limit - 1).bit_length())), limit]
