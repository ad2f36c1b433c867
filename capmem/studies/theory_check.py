"""Theory against simulation, over every combination that it covers: each number, its prediction, and their distance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import figures
from capmem.ensembles import KEYS
from capmem.experiment import Experiment
from capmem.schema import check_fields, require, unknown
from capmem.studies import Options, Study, Swept, Table, at_least
from capmem.studies._theory_cases import Tested, tested
from capmem.studies._theory_grid import FILES, Sizes
from capmem.studies._theory_told import finding, line
from capmem.studies._theory_verdict import FAILS, limit, verdict
from capmem.sweeps.points import point_key
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TheoryCheck:
    """Which combinations are tested, and how hard.

    Parameters
    ----------
    bases : tuple of str
        Laws of keys of the plain memories that combinations start from.
    interactions : int
        How many parts (memory, map, keys, values, rule, read-out, step, cue) may differ from a plain memory.
    key_dim, value_dim : tuple of int
        d and v, side by side.
    num_pairs : tuple of int
        N.
    age_bins : int
        Bins of errors by age; 0: none.
    trials, seed : int
        Repetitions of each; a combination has draws of its own.
    """

    bases: tuple[str, ...] = ("sphere", "equicorrelated", "gaussian")
    interactions: int = 2
    key_dim: tuple[int, ...] = (16, 48)
    value_dim: tuple[int, ...] = (16, 32)
    num_pairs: tuple[int, ...] = (8, 32)
    age_bins: int = 4
    trials: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "num_pairs", "value_dim")
        at_least(self, 2, "key_dim", "trials")
        at_least(self, 0, "interactions", "age_bins", "seed")
        same = len(self.key_dim) == len(self.value_dim)
        require(same, "value_dim", list(self.value_dim), f"as many numbers as key_dim, {len(self.key_dim)}")
        require(bool(self.bases), "bases", [], "a list that is not empty")
        for name in self.bases:
            if name not in KEYS.names() or name in FILES:
                raise ValueError(unknown("keys", name, [n for n in KEYS.names() if n not in FILES]))


@lru_cache(maxsize=4)
def cases(settings: TheoryCheck) -> tuple[Tested, ...]:
    """Return what theory covers of the combinations asked for."""
    sizes = [Sizes(d, v, settings.num_pairs) for d, v in zip(settings.key_dim, settings.value_dim, strict=True)]
    rest = settings.trials, settings.seed, settings.age_bins
    return tuple(tested(settings.bases, settings.interactions, sizes, *rest))


def points(settings: TheoryCheck) -> Iterator[Experiment]:
    """Yield the experiments."""
    for case in cases(settings):
        yield case.experiment


def rows(settings: TheoryCheck, whole: pd.DataFrame, by_age: pd.DataFrame) -> Iterator[Record]:
    """Yield a row for each number tested, from the rows of the sweep."""
    allowed = limit(sum(len(case.expected) for case in cases(settings)), settings.trials)
    metrics = _trials(whole[whole["status"] == "ok"], ["point", "num_pairs"])
    ages = _trials(by_age, ["point", "num_pairs", "age_low"]) if len(by_age) else {}
    for case in cases(settings):
        asked = case.experiment
        key = point_key(asked)
        for e in case.expected:
            trials = metrics.get((key, e.num_pairs)) if e.age_low < 0 else ages.get((key, e.num_pairs, e.age_low))
            if trials is None or not len(trials[e.metric]):
                continue
            sizes = asked.key_dim, asked.value_dim, e.num_pairs
            bound = 0.0 if e.source.exact else e.source.known_error.at(*sizes)
            least = 1 / (e.num_pairs * len(trials[e.metric])) if e.metric == "top1_accuracy" else 0.0
            found = verdict(trials[e.metric], e.predicted, bound, least, allowed)
            told = dict(zip(("key_dim", "value_dim", "num_pairs"), sizes, strict=True))
            ages_told = {"age_low": e.age_low, "age_high": e.age_high}
            source = {"exact": e.source.exact, "stated_error": bound, "limit": allowed, "trials": len(trials[e.metric])}
            yield (
                {"combination": case.combination.label}
                | case.combination._asdict()
                | told
                | {"metric": e.metric, "predicted": e.predicted}
                | found._asdict()
                | ages_told
                | source
            )


def _trials(frame: pd.DataFrame, by: list[str]) -> dict[tuple[Any, ...], dict[str, np.ndarray[Any, Any]]]:
    """Return the trials of each metric, by group."""
    names = [n for n in frame.columns if f"theory_{n}" in frame.columns]
    values = frame[names].to_numpy(dtype=np.float64)
    groups = frame.groupby(by, sort=False).indices
    found = {}
    for key, places in groups.items():
        assert isinstance(key, tuple)
        found[key] = {name: values[places, i] for i, name in enumerate(names)}
    return found


@dataclass(frozen=True)
class Judged:
    """The table of verdicts on a swept one; a number that fails is a failure of the analysis."""

    swept: Swept[TheoryCheck]

    def check(self, settings: TheoryCheck) -> None:
        """Raise ValueError if a point is not valid, or nothing is covered."""
        self.swept.check(settings)

    def table(self, settings: TheoryCheck, folder: Path, options: Options) -> Table:
        """Return a row for each number tested."""
        measured = self.swept.table(settings, folder, options)
        frame = judged(settings, measured.frame, folder)
        wrong = frame[frame["verdict"] == FAILS] if len(frame) else frame
        return Table(frame, (*measured.failures, *(line(row) for _, row in wrong.iterrows())))

    def stored(self, settings: TheoryCheck, folder: Path) -> pd.DataFrame | None:
        """Return a row for each number tested, if all of the sweep is there."""
        measured = self.swept.stored(settings, folder)
        return None if measured is None else judged(settings, measured, folder)


def judged(settings: TheoryCheck, measured: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return a row for each number tested, from the rows measured and those by age in `folder`."""
    import pandas as pd

    from capmem import results

    by_age = results.load(folder, by_age=True) if settings.age_bins else pd.DataFrame()
    by_age = by_age[by_age["trial"] < settings.trials] if len(by_age) else by_age
    return pd.DataFrame.from_records(list(rows(settings, measured, by_age)))


STUDY = Study("theory_check", TheoryCheck, Judged(Swept(points)), finding, {"theory_check": figures.theory_check})
