"""What theory says of each combination: the numbers that are tested, and what is known of their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capmem import theory
from capmem.ages import age_bins
from capmem.experiment import Experiment
from capmem.studies._theory_grid import Combination, Sizes, combinations, experiment
from capmem.theory.base import Source

BY_AGE = "relative_squared_error"


class Expected(NamedTuple):
    """One number: what it is of, its value, and its source; ages are those of a bin, -1 where all pairs are read."""

    num_pairs: int
    metric: str
    age_low: int
    age_high: int
    predicted: float
    source: Source


class Tested(NamedTuple):
    """A combination that theory covers, as an experiment, with all that is predicted of it."""

    combination: Combination
    experiment: Experiment
    expected: tuple[Expected, ...]


def tested(
    bases: tuple[str, ...], interactions: int, sizes: list[Sizes], trials: int, seed: int, bins: int
) -> Iterator[Tested]:
    """Yield every combination and size of which anything is predicted, with the numbers of pairs that it holds."""
    for combination in combinations(bases, interactions):
        for size in sizes:
            # under the Hebbian rule all ages are alike: the identity map stands for the others
            aged = combination.write_rule != "hebbian" or combination.feature_map == "identity"
            rest = trials, seed, bins if aged else 0
            try:
                asked = experiment(combination, size, *rest)
            except ValueError:  # parts that do not go together
                continue
            limit = asked.limit()
            held = [n for n in size.num_pairs if limit is None or n <= limit]
            expected = tuple(e for n in held for e in (*_metrics(asked, n), *_ages(asked, n)))
            if expected:
                covered = tuple(sorted({e.num_pairs for e in expected}))
                asked = experiment(combination, size._replace(num_pairs=covered), *rest)
                yield Tested(combination, asked, expected)


def _metrics(asked: Experiment, num_pairs: int) -> Iterator[Expected]:
    try:
        found = theory.predict(
            asked.memory, asked.keys, asked.key_dim, asked.value_dim, num_pairs, asked.values, asked.query_cosine
        )
    except theory.TheoryUnavailable:
        return
    for metric, source in found.sources.items():
        yield Expected(num_pairs, metric, -1, -1, getattr(found, metric), source)


def _ages(asked: Experiment, num_pairs: int) -> Iterator[Expected]:
    """Yield the errors by age of rules under which age matters."""
    if asked.age_bins == 0 or type(getattr(asked.memory, "write_rule", None)).__name__ == "LeastSquares":
        return
    bins = age_bins(num_pairs, asked.age_bins)
    try:
        found = theory.predict_by_age(
            asked.memory, asked.keys, asked.key_dim, asked.value_dim, num_pairs, asked.values, asked.query_cosine
        )
    except theory.TheoryUnavailable:
        return
    for each in bins:
        mean = float(found.relative_squared_error[each.low : each.high + 1].mean())
        yield Expected(num_pairs, BY_AGE, each.low, each.high, mean, found.source)
