"""What mixes into a value that is read: errors against pairs, signal and crosstalk apart, and which pairs are lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from capmem import figures
from capmem.ensembles import EquicorrelatedKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import FEATURE_MAPS
from capmem.memory import LinearMemory
from capmem.readouts import READOUTS, Linear
from capmem.schema import check_fields, require
from capmem.studies import Computed, Study, at_least
from capmem.studies._interference_told import finding
from capmem.studies._signal import signal_rows
from capmem.theory import TheoryUnavailable, predict_by_age
from capmem.trial import Record
from capmem.write_rules import WRITE_RULES

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("scale_optimal_error", "cosine_similarity", "top1_accuracy")
ERROR = METRICS[0]
By = Literal["correlation", "feature_map", "write_rule", "readout"]


@dataclass(frozen=True)
class Interference:
    """What is stored, and what is told apart.

    Parameters
    ----------
    by : {"correlation", "feature_map", "write_rule", "readout"}
        What the lines are: all entries of its list. Of the other three lists the first entry holds.
    correlations : tuple of float
        Of the unit keys, from 0 to below 1.
    feature_maps, write_rules, readouts : tuple of str
        Names; keys come to the maps at the norm sqrt(d).
    key_dim, value_dim : int
        d and v.
    num_pairs : tuple of int
        N.
    age_pairs, age_bins : int
        N at which errors are told by age, and into how many bins.
    trials, seed : int
        Repetitions; draws depend on seed and trial alone.
    """

    by: By = "correlation"
    correlations: tuple[float, ...] = (0.0, 0.1, 0.3, 0.5)
    feature_maps: tuple[str, ...] = ("identity", "relu", "elu_plus_one", "dpfp", "taylor")
    write_rules: tuple[str, ...] = ("hebbian", "decay", "delta", "gated_delta", "least_squares")
    readouts: tuple[str, ...] = ("linear", "normalized", "rms_norm")
    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512, 1024)
    age_pairs: int = 256
    age_bins: int = 16
    trials: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 2, "num_pairs", "key_dim")
        at_least(self, 1, "value_dim", "age_pairs", "age_bins", "trials")
        at_least(self, 0, "correlations", "seed")
        require(self.age_bins <= self.age_pairs, "age_bins", self.age_bins, f"at most age_pairs = {self.age_pairs}")
        require(
            max(self.correlations) < 1, "correlations", list(self.correlations), "a list of numbers from 0 to below 1"
        )
        for name, registry in (("feature_maps", FEATURE_MAPS), ("write_rules", WRITE_RULES), ("readouts", READOUTS)):
            require(bool(getattr(self, name)), name, [], "a list that is not empty")
            for choice in getattr(self, name):
                registry.build(choice, name)


class Line(NamedTuple):
    """One line of the figures: its label, a law of keys and a memory, whether it centres, and what all lines share."""

    level: str
    keys: EquicorrelatedKeys
    memory: LinearMemory
    centring: str
    held: str


def lines(settings: Interference) -> list[Line]:
    """Return every line: features as they are, and less their mean, which is what keys and maps share."""
    lists: dict[str, tuple[Any, ...]] = {"correlation": settings.correlations, "feature_map": settings.feature_maps,
             "write_rule": settings.write_rules, "readout": settings.readouts}  # fmt: skip
    first = {name: values[0] for name, values in lists.items()}
    found = []
    for centre, told in (("none", "features as they are"), ("mean", "features centred")):
        for level in lists[settings.by]:
            chosen = first | {settings.by: level}
            memory = LinearMemory(
                FEATURE_MAPS.build(chosen["feature_map"]),
                WRITE_RULES.build(chosen["write_rule"]),
                READOUTS.build(chosen["readout"]),
                key_scale="sqrt_dim",
                feature_center=centre,  # type: ignore[arg-type]
                feature_norm="l2" if settings.by == "write_rule" else "none",  # a step of 1 is for unit features
            )
            level = f"{level:g}" if isinstance(level, float) else level
            keys = EquicorrelatedKeys(float(chosen["correlation"]))
            found.append(Line(str(level), keys, memory, told, _held(first, settings.by)))
    return found


def _held(first: dict[str, Any], by: str) -> str:
    told = {"correlation": "key correlation {:g}", "feature_map": "{} map", "write_rule": "{} rule",
            "readout": "{} read-out"}  # fmt: skip
    return ", ".join(told[name].format(value) for name, value in first.items() if name != by).replace("_", " ")


def rows(settings: Interference) -> Iterator[Record]:
    """Yield the table, by the column `part`: "curve", "signal" and "age"."""
    for line in lines(settings):
        told = {
            "by": settings.by,
            "level": line.level,
            "centring": line.centring,
            "key_dim": settings.key_dim,
            "held": line.held,
        }
        for part in (_curves_and_ages, _signal):
            for row in part(settings, line):
                yield told | row


def experiment(settings: Interference, line: Line) -> Experiment:
    """Return the experiment of a line."""
    return Experiment(
        line.memory, line.keys, SphereValues(), settings.key_dim, settings.value_dim,
        (*settings.num_pairs, settings.age_pairs), trials=settings.trials, seed=settings.seed, metrics=METRICS,
        dtype="float64", age_bins=settings.age_bins,
    )  # fmt: skip


def _curves_and_ages(settings: Interference, line: Line) -> Iterator[Record]:
    asked = experiment(settings, line)
    records, by_age = asked.run_with_ages()
    for record in records:
        if record["num_pairs"] in settings.num_pairs:
            names = ("num_pairs", "trial", "num_queries", "nonpositive_denominators", "nonfinite_retrieved", "warning")
            told = {name: record[name] for name in (*names, *METRICS, *(f"theory_{m}" for m in METRICS))}
            yield {"part": "curve"} | told
    theory = _theory_by_age(asked, settings.age_pairs)
    for record in by_age:
        if record["num_pairs"] == settings.age_pairs:
            told = {name: record[name] for name in ("num_pairs", "trial", "age_low", "age_high", "num_scored", ERROR)}
            yield {"part": "age"} | told | {f"theory_{ERROR}": theory(record["age_low"], record["age_high"])}


def _theory_by_age(asked: Experiment, num_pairs: int) -> Callable[[int, int], float]:
    """Return the predicted mean error of the ages low to high, nan where there is no formula."""
    sizes = (asked.key_dim, asked.value_dim, num_pairs)
    try:
        found = predict_by_age(asked.memory, asked.keys, *sizes, values=asked.values).scale_optimal_error
    except TheoryUnavailable:
        return lambda low, high: math.nan
    return lambda low, high: float(found[low : high + 1].mean())


def _signal(settings: Interference, line: Line) -> Iterator[Record]:
    if line.memory.readout != Linear():  # the others scale signal and crosstalk alike
        return
    for row in signal_rows(experiment(settings, line), settings.num_pairs):
        yield {"part": "signal"} | row


def _curves(value: str) -> Callable[[pd.DataFrame], figures.Grid]:
    return partial(figures.measured_by_pairs, value=value)


def by_age(table: pd.DataFrame) -> figures.Grid:
    """Draw the error by age."""
    ordered = table["by"].iloc[0] == "correlation"
    return figures.error_by_age(table, value=ERROR, line="level", facet="centring", ordered=ordered)


STUDY = Study(
    "interference",
    Interference,
    Computed(rows),
    finding,
    {
        "error": _curves(METRICS[0]),
        "cosine": _curves(METRICS[1]),
        "top1": _curves(METRICS[2]),
        "signal": figures.signal_and_crosstalk,
        "age": by_age,
    },
)
