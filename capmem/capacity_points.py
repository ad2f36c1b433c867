"""What the capacity analysis is asked: points, each an experiment, and how capacities are asked for at all of them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import typing
from collections.abc import Sequence
from typing import Any, NamedTuple

from capmem import capacity, results
from capmem._version import FORMAT, NUMERICS
from capmem.capacity.decide import LEAST_DIM
from capmem.experiment import Experiment
from capmem.schema import coerce, require, unknown
from capmem.sweeps.points import experiment_from

Row = dict[str, Any]

HINTS: dict[str, Any] = {
    "method": str,
    "precision": float,
    "max_pairs": int | None,
    "max_dim": int,
    "wanted": tuple[int, ...],
}
METHODS = ("auto", "theory", "simulation")


class Asked(NamedTuple):
    """How capacities are asked for, the same at every point; see conf/capacity.yaml."""

    criterion: capacity.Criterion
    method: Any
    precision: float
    max_pairs: int | None
    max_dim: int
    wanted: tuple[int, ...]


class Point(NamedTuple):
    """One point of the grid: the experiment, and whether its value dimension is that of the keys at any d."""

    experiment: Experiment
    follows: bool
    asked: Asked

    def family(self) -> Any:
        """Return what a point shares with those that differ in the key dimension only."""
        e = self.experiment
        return (e.memory, e.keys, e.values, e.query_cosine, e.codebook_size, None if self.follows else e.value_dim)

    def options(self) -> Row:
        """Return the arguments that :func:`capacity.estimate` and :func:`capacity.required_dim` share."""
        e, criterion = self.experiment, self.asked.criterion
        own = {
            name: getattr(e, name) for name in ("values", "query_cosine", "codebook_size", "trials", "seed", "dtype")
        }
        return own | {
            "metric": criterion.metric,
            "threshold": criterion.threshold,
            "method": self.asked.method,
            "precision": self.asked.precision,
        }


def asked_of(configs: list[Row], options: Row) -> Asked:
    """Take out of all configurations how capacities are asked for; it must be one for all."""
    if options["criterion"] not in results.METRICS:
        raise ValueError(unknown("criterion", options["criterion"], results.METRICS))
    criterion = capacity.Criterion(options["criterion"], options["threshold"])
    given = {key: _single(configs, key) for key in HINTS}
    if given["method"] not in METHODS:
        raise ValueError(unknown("method", given["method"], METHODS))
    require(0 < given["precision"] < math.inf, "precision", given["precision"], "a number above 0")
    most = given["max_pairs"]
    require(most is None or most >= 1, "max_pairs", most, "an integer of at least 1")
    require(given["max_dim"] >= LEAST_DIM, "max_dim", given["max_dim"], f"an integer of at least {LEAST_DIM}")
    require(min(given["wanted"], default=1) >= 1, "wanted", given["wanted"], "integers of at least 1")
    return Asked(criterion, **given)


def point_of(config: Row, asked: Asked) -> Point:
    """Return the point of a configuration that :func:`asked_of` has left what concerns the experiment."""
    e = experiment_from(config | {"num_pairs": 1})
    most = max(asked.wanted, default=1)
    enough = e.codebook_size is None or e.codebook_size >= most
    require(enough, "codebook_size", e.codebook_size, f"at least the wanted pairs, {most}")
    follows = config.get("value_dim") is None and e.values.file_dim() is None
    return Point(dataclasses.replace(e, value_dim=e.key_dim) if follows else e, follows, asked)


def key_of(points: Sequence[Point]) -> str:
    """Return the key that the tables of these points are stored under; a file counts by its content too."""
    told = [[p.experiment.columns() | {"trials": p.experiment.trials}, p.follows, p.asked] for p in points]
    text = json.dumps([FORMAT, NUMERICS, told], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _single(configs: list[Row], key: str) -> Any:
    found = {repr(config[key]): config.pop(key) for config in configs}
    if len(found) > 1:
        raise ValueError(f"{key} cannot be swept, got {', '.join(found)}")
    value = next(iter(found.values()))
    single = typing.get_origin(HINTS[key]) is tuple and isinstance(value, int) and not isinstance(value, bool)
    return coerce([value] if single else value, HINTS[key], key)
