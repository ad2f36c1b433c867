"""One experiment: draw pairs, write them, read at checkpoints, measure; and the same for arrays at hand."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from capmem.backends import BACKENDS
from capmem.configuration import describe_memory, flatten
from capmem.ensembles import KEYS, VALUES, ArrayKeys, ArrayValues, Ensemble
from capmem.ensembles.arrays import ArrayEnsemble
from capmem.evaluation import evaluate
from capmem.memory import Memory
from capmem.passes import Passes, wanted_of
from capmem.schema import check_fields, require, unknown
from capmem.trial import METRICS, Record

DEFAULT = tuple(METRICS)
MOST_PAIRS, MOST_TRIALS, MOST_BINS = 10**12, 10**6, 10**4  # more would not end
DType = Literal["float32", "float64"]

__all__ = ["DEFAULT", "Experiment", "evaluate"]


@dataclass(frozen=True)
class Experiment:
    """Store pairs in a memory, read them back at checkpoints, and measure; several trials.

    Parameters
    ----------
    memory : Memory
        What is tested.
    keys, values : Ensemble
        The laws that keys and values are drawn from.
    key_dim, value_dim : int
        d and v.
    num_pairs : int or sequence of int
        Checkpoints: the memory is read after so many pairs.
    trials : int
        Independent repetitions.
    query_cosine : float
        Cosine of each cue with the stored key, in [-1, 1]; 1 asks with the key itself.
    seed : int
        At least 0. Generators are seeded [seed, trial, kind of draw].
    metrics : sequence of str
        Names in :data:`capmem.trial.METRICS`.
    max_queries : int
        Above so many pairs, a systematic sample of them is read.
    codebook_size : int, optional
        Top-1 competes against so many codewords: the stored values, and others of the same law.
    dtype : {"float32", "float64"}
        What the memory computes in. Draws are always float64, then cast.
    redraw_map : bool
        Give a random feature map another seed in each trial.
    age_bins : int
        :meth:`run_with_ages` cuts the pairs into so many bins of equal width in age; 0: none.
    backend : {"numpy", "torch"}
        What the memory computes with: the same numbers, to the rounding of `dtype`. Draws are NumPy's.
    device : str
        "cpu", or what PyTorch calls one, such as "cuda".

    Raises
    ------
    ValueError
        For a value out of range, or dimensions that differ from those of a file.
    """

    memory: Memory
    keys: Ensemble
    values: Ensemble
    key_dim: int
    value_dim: int
    num_pairs: tuple[int, ...] = (16, 32, 64, 128, 256)
    trials: int = 8
    query_cosine: float = 1.0
    seed: int = 0
    metrics: tuple[str, ...] = DEFAULT
    max_queries: int = 4096
    codebook_size: int | None = None
    dtype: DType = "float32"
    redraw_map: bool = True
    age_bins: int = 0
    backend: Literal["numpy", "torch"] = "numpy"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if isinstance(self.num_pairs, numbers.Integral):
            object.__setattr__(self, "num_pairs", (self.num_pairs,))
        for name in ("num_pairs", "metrics"):
            if isinstance(getattr(self, name), Sequence | np.ndarray) and not isinstance(getattr(self, name), str):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        check_fields(self)
        given = self.num_pairs
        require(bool(given) and min(given) >= 1, "num_pairs", given, "one or more integers of at least 1")
        object.__setattr__(self, "num_pairs", tuple(sorted(set(given))))
        for name in ("key_dim", "value_dim", "trials", "max_queries"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer of at least 1")
        require(max(given) <= MOST_PAIRS, "num_pairs", given, f"at most {MOST_PAIRS}")
        require(self.trials <= MOST_TRIALS, "trials", self.trials, f"at most {MOST_TRIALS}")
        require(self.seed >= 0, "seed", self.seed, "an integer of at least 0")
        require(0 <= self.age_bins <= MOST_BINS, "age_bins", self.age_bins, f"an integer from 0 to {MOST_BINS}")
        require(-1 <= self.query_cosine <= 1, "query_cosine", self.query_cosine, "a number from -1 to 1")
        noisy = abs(self.query_cosine) < 1
        require(not noisy or self.key_dim > 1, "key_dim", self.key_dim, "at least 2 for noisy cues")
        for name in self.metrics:
            if name not in METRICS:
                raise ValueError(unknown("metric", name, METRICS))
        self._check_files()
        self._check_codebook()
        if getattr(self.memory, "state_dtype", None) == "float64" and self.dtype == "float32":
            raise ValueError("state_dtype must be no wider than dtype = float32, got 'float64'")
        BACKENDS[self.backend](self.device)  # a library or device that is not there is refused here

    def configuration(self) -> dict[str, Any]:
        """Return everything that decides the numbers, as plain names and values; some only where not the default."""
        rest = ("key_dim", "value_dim", "num_pairs", "trials", "query_cosine", "seed", "metrics", "max_queries")
        return {
            **describe_memory(self.memory),
            "keys": KEYS.describe(self.keys),
            "values": VALUES.describe(self.values),
            **{name: getattr(self, name) for name in rest},
            **{name: getattr(self, name) for name in ("codebook_size", "dtype", "redraw_map")},
            **({"age_bins": self.age_bins} if self.age_bins else {}),
            **({"backend": self.backend, "device": self.device} if self.backend != "numpy" else {}),
        }

    def run(self, units: Iterable[tuple[int, int]] | None = None) -> list[Record]:
        """Run, and return one flat record for each trial and number of pairs.

        Parameters
        ----------
        units : iterable of (trial, num_pairs), optional
            What to compute (default: everything). A unit's numbers do not depend on which others are asked for.
        """
        return self.run_with_ages(units)[0]

    def run_with_ages(self, units: Iterable[tuple[int, int]] | None = None) -> tuple[list[Record], list[Record]]:
        """Run, and return the records of :meth:`run` and those by age: see :class:`capmem.ages.AgeRows`.

        Both come from one pass; without `age_bins`, or for a unit that is skipped, there are none by age.
        """
        if units is None:
            units = [(t, n) for t in range(self.trials) for n in self.num_pairs]
        return Passes(self).run(wanted_of(units))

    def columns(self) -> Record:
        """Return the configuration columns that every record of this experiment carries."""
        skipped = ("num_pairs", "trials", "metrics")
        flat = flatten({k: v for k, v in self.configuration().items() if k not in skipped})
        flat["codebook_asked"] = flat.pop("codebook_size")  # codebook_size is how many there were
        files = {"keys": self.keys, "values": self.values}
        digests = {f"{k}.sha256": e.sha256() for k, e in files.items() if isinstance(e, ArrayEnsemble)}
        return flat | digests | {"feature_dim": self.memory.feature_dim(self.key_dim)}

    def limit(self) -> int | None:
        """Return the largest number of pairs that the keys and values allow; None: any."""
        limits = (self.keys.max_pairs(self.key_dim), self.values.max_pairs(self.value_dim))
        return min((n for n in limits if n is not None), default=None)

    def _check_files(self) -> None:
        for what, ensemble in (("key", self.keys), ("value", self.values)):
            dim, given = ensemble.file_dim(), getattr(self, f"{what}_dim")
            require(dim is None or dim == given, f"{what}_dim", given, f"{dim}, as in the file, or null")
        if isinstance(self.keys, ArrayKeys) and isinstance(self.values, ArrayValues):
            rows = (len(self.keys.rows()), len(self.values.rows()))
            require(rows[0] == rows[1], "keys and values", rows, "arrays of equally many rows")

    def _check_codebook(self) -> None:
        size = self.codebook_size
        if size is None:
            return
        most = max((n for n in self.num_pairs if self.limit() is None or n <= (self.limit() or n)), default=1)
        require(size >= most, "codebook_size", size, f"at least num_pairs = {most}")
        limit = self.values.max_pairs(self.value_dim)
        require(limit is None or size <= limit, "codebook_size", size, f"at most {limit}, all values there are")
