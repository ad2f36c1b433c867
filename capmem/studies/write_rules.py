"""Write rules on the same stream: error against load and age, a repeated key, noisy cues and what a ridge does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from capmem import figures
from capmem.ensembles import DuplicatedKeys, Ensemble, SphereKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.schema import check_fields, require
from capmem.studies import Computed, Study, at_least
from capmem.studies._replacement import replacement_rows
from capmem.studies._rules_told import finding
from capmem.trial import Record
from capmem.write_rules import Decay, Delta, GatedDelta, Hebbian, LeastSquares, WriteRule

ERRORS = ("relative_squared_error", "scale_optimal_error")
MORE = 4  # times as many trials where the error of few pairs, or of a nearly singular solve, scatters
SCAN = tuple(2.0**p for p in range(-7, 4))  # ridges at N = d


@dataclass(frozen=True)
class WriteRules:
    """What is written, and what is asked: unit keys, uniform on the sphere, in d dimensions.

    Parameters
    ----------
    key_dim, value_dim : int
        d and v.
    num_pairs : tuple of int
        N of the curves against load.
    step_size : float
        Of the delta rules; stable below 2.
    rate : float
        What decay and gated delta keep of the state at each pair.
    age_pairs, age_bins : int
        N at which errors are told by age, and into how many bins.
    fractions : tuple of float
        Chances that a pair uses an earlier key again.
    overwrite_pairs : int
        N of those streams.
    distinct_keys : tuple of int
        Orthonormal keys that as many pairs are drawn from, with replacement.
    query_cosine : float
        Of the noisy cues to their keys.
    noise_pairs : tuple of int
        N of the curves with noisy cues.
    ridges : tuple of float
        Of least squares with noisy cues.
    trials, seed : int
        Repetitions; draws depend on seed and trial alone.
    """

    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (8, 16, 32, 64, 96, 128, 192, 256, 512)
    step_size: float = 1.0
    rate: float = 0.99
    age_pairs: int = 256
    age_bins: int = 16
    fractions: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9)
    overwrite_pairs: int = 64
    distinct_keys: tuple[int, ...] = (20, 40, 100, 200)
    query_cosine: float = 0.8
    noise_pairs: tuple[int, ...] = (8, 16, 32, 48, 56, 60, 64, 68, 72, 80, 96, 128, 256)
    ridges: tuple[float, ...] = (0.0, 0.05, 0.5)
    trials: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "value_dim", "num_pairs", "age_pairs", "age_bins", "trials")
        at_least(self, 2, "key_dim", "overwrite_pairs", "distinct_keys", "noise_pairs")
        at_least(self, 0, "ridges", "fractions", "seed")
        require(self.age_bins <= self.age_pairs, "age_bins", self.age_bins, f"at most age_pairs = {self.age_pairs}")
        require(max(self.fractions) < 1, "fractions", list(self.fractions), "a list of numbers from 0 to below 1")
        require(0 < self.step_size < 2, "step_size", self.step_size, "a number between 0 and 2, where it is stable")
        require(0 < self.rate < 1, "rate", self.rate, "a number between 0 and 1")
        require(0 < self.query_cosine < 1, "query_cosine", self.query_cosine, "a number between 0 and 1")


def rules(settings: WriteRules) -> dict[str, WriteRule]:
    """Return the rules that are compared, by label."""
    step, rate = settings.step_size, settings.rate
    return {
        "hebbian": Hebbian(),
        f"decay, rate={rate:g}": Decay(rate),
        f"delta, step={step:g}": Delta(step),
        f"gated_delta, step={step:g}, rate={rate:g}": GatedDelta(step, rate),
        "least_squares": LeastSquares(),
    }


def rows(settings: WriteRules) -> Iterator[Record]:
    """Yield the table, by the column `part`: "load", "age", "overwrite", "replacement", "noise" and "ridge"."""
    for part in (_load_and_age, _overwrite, _replacement, _noise, _ridge):
        for row in part(settings):
            yield {"key_dim": settings.key_dim, "value_dim": settings.value_dim} | row


def _load_and_age(settings: WriteRules) -> Iterator[Record]:
    for label, rule in rules(settings).items():
        asked = _experiment(settings, rule, SphereKeys(), (*settings.num_pairs, settings.age_pairs))
        records, by_age = replace(asked, age_bins=settings.age_bins).run_with_ages()
        told = {"rule": label}
        for record in records:
            if record["num_pairs"] in settings.num_pairs:
                yield {"part": "load"} | told | _kept(record)
        for record in by_age:
            if record["num_pairs"] == settings.age_pairs:
                yield {"part": "age"} | told | _kept(record)


def _overwrite(settings: WriteRules) -> Iterator[Record]:
    for fraction in settings.fractions:
        for label, rule in rules(settings).items():
            asked = _experiment(settings, rule, DuplicatedKeys(fraction), (settings.overwrite_pairs,), MORE)
            for record in asked.run():
                yield {"part": "overwrite", "rule": label, "fraction": fraction} | _kept(record)


def _replacement(settings: WriteRules) -> Iterator[Record]:
    for row in replacement_rows(settings.distinct_keys, MORE * settings.trials, settings.seed):
        yield {"part": "replacement"} | row


def _noise(settings: WriteRules) -> Iterator[Record]:
    compared: dict[str, WriteRule] = {
        "hebbian": Hebbian(),
        f"delta, step={settings.step_size:g}": Delta(settings.step_size),
    }
    compared |= {ridge_label(ridge): LeastSquares(ridge) for ridge in settings.ridges}
    for label, rule in compared.items():
        asked = _experiment(settings, rule, SphereKeys(), settings.noise_pairs, MORE, settings.query_cosine)
        for record in asked.run():
            yield {"part": "noise", "rule": label} | _cue(settings) | _kept(record)


def _ridge(settings: WriteRules) -> Iterator[Record]:
    for ridge in SCAN:
        rule, pairs = LeastSquares(ridge), (settings.key_dim,)
        asked = _experiment(settings, rule, SphereKeys(), pairs, 1, settings.query_cosine)
        for record in asked.run():
            yield {"part": "ridge", "rule": "least_squares", "ridge": ridge} | _cue(settings) | _kept(record)


def ridge_label(ridge: float) -> str:
    """Return how least squares of this ridge is called."""
    return f"least_squares, ridge={ridge:g}"


def _cue(settings: WriteRules) -> Record:
    return {"query_cosine": settings.query_cosine}


def _experiment(
    settings: WriteRules,
    rule: WriteRule,
    keys: Ensemble,
    num_pairs: tuple[int, ...],
    more: int = 1,
    query_cosine: float = 1.0,
) -> Experiment:
    return Experiment(
        LinearMemory(Identity(), rule), keys, SphereValues(), settings.key_dim, settings.value_dim, num_pairs,
        trials=more * settings.trials, query_cosine=query_cosine, seed=settings.seed, metrics=ERRORS,
        dtype="float64",
    )  # fmt: skip


def _kept(record: Record) -> Record:
    """Return what the figures and the finding need of a record, and its load N / d."""
    names = (
        "num_pairs",
        "trial",
        "num_scored",
        "age_low",
        "age_high",
        "warning",
        *ERRORS,
        *(f"theory_{e}" for e in ERRORS),
    )
    return {name: record[name] for name in names if name in record} | {"load": record["num_pairs"] / record["key_dim"]}


STUDY = Study(
    "write_rules",
    WriteRules,
    Computed(rows),
    finding,
    {
        "load": figures.error_by_load,
        "age": figures.error_by_age,
        "overwrite": figures.overwriting,
        "noisy_cues": figures.double_descent,
    },
)
