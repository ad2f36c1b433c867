"""What the theory says of an experiment: the columns that stand beside each measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capmem.trial import CHUNK, Record

if TYPE_CHECKING:
    from capmem.experiment import Experiment


def predictions(experiment: Experiment, num_pairs: int) -> Record:
    """Return ``theory_<metric>`` for each metric; where there is no formula nan, and the reason."""
    from capmem import theory  # half of the library's import time, which only a run needs

    try:
        prediction = theory.predict(
            experiment.memory,
            experiment.keys,
            key_dim=experiment.key_dim,
            value_dim=experiment.value_dim,
            num_pairs=num_pairs,
            values=experiment.values,
            query_cosine=experiment.query_cosine,
            codebook_size=experiment.codebook_size if num_pairs <= CHUNK else None,
        )
    except theory.TheoryUnavailable as error:
        return {f"theory_{name}": math.nan for name in experiment.metrics} | {"theory_unavailable": str(error)}
    return {f"theory_{name}": getattr(prediction, name) for name in experiment.metrics}


def predictions_by_age(experiment: Experiment, num_pairs: int, bins: Sequence[tuple[int, int]]) -> list[Record]:
    """Return the predicted error of each bin of ages (low, high); where there is no formula None, and the reason."""
    from capmem.theory.base import TheoryUnavailable
    from capmem.theory.by_age import mean_by_age

    name = "theory_relative_squared_error"
    try:
        means = mean_by_age(
            experiment.memory,
            experiment.keys,
            key_dim=experiment.key_dim,
            value_dim=experiment.value_dim,
            num_pairs=num_pairs,
            bins=bins,
            values=experiment.values,
            query_cosine=experiment.query_cosine,
        )
    except TheoryUnavailable as error:
        return [{name: None, "theory_unavailable": str(error)} for _ in bins]
    return [{name: mean} for mean in means]
