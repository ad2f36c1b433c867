"""linear-attention-memory-research: mean |cos| between 512 keys at d = 16 after each feature map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from capmem import geometry
from capmem.ensembles import Ensemble, SphereKeys
from capmem.feature_maps import Dpfp, EluPlusOne, FeatureMap, Identity, ReLU
from capmem.figures.replications import feature_cosines as draw
from capmem.replications.base import Replication, Task
from capmem.replications.measurement import Measurement, measured, quoted
from capmem.replications.verdict import Verdict, compare

if TYPE_CHECKING:
    import pandas as pd

NUM_KEYS, KEY_DIM = 512, 16
COSINE, PUBLISHED = "mean |cos|", "published, one draw"
MAPS: dict[str, FeatureMap] = {
    "identity": Identity(),
    "elu_plus_one": EluPlusOne(),
    "relu": ReLU(),
    "dpfp, nu=1": Dpfp(1),
    "dpfp, nu=2": Dpfp(2),
    "dpfp, nu=3": Dpfp(3),
}
# What was published is of one draw: its value, and four standard deviations between draws plus its rounding.
NUMBERS = {
    "identity": (0.203, 0.0017),
    "elu_plus_one": (0.954, 0.0014),
    "relu": (0.328, 0.017),
    "dpfp, nu=1": (0.125, 0.0087),
    "dpfp, nu=2": (0.121, 0.0075),
    "dpfp, nu=3": (0.118, 0.0063),
}


def cosines(seed: int, trials: int, law: Ensemble | None = None) -> Iterator[Measurement]:
    """Yield the mean |cos| between the features of unit keys, for each map."""
    for trial in range(trials):
        keys = (law or SphereKeys()).sample(np.random.default_rng([seed, trial]), NUM_KEYS, KEY_DIM)
        for place, (name, phi) in enumerate(MAPS.items()):
            yield Measurement(COSINE, name, place, trial, float(geometry.mean_coherence(phi(keys))))


def tasks(seed: int, trials: int) -> list[Task]:
    """Return the one task."""
    return [Task(cosines, (seed, trials))]


def references() -> Iterator[Measurement]:
    """Yield the published numbers."""
    for place, (name, (number, _)) in enumerate(NUMBERS.items()):
        yield from quoted(PUBLISHED, name, [(place, number)])


def judge(table: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdicts."""
    told = "published for one draw of keys; the tolerance is four standard deviations between draws"
    for name, (number, tolerance) in NUMBERS.items():
        yield compare(f"{name}: mean |cos|", "published", number, measured(table, COSINE, name), tolerance, told)


FEATURE_COSINES = Replication(
    "feature_cosines",
    "linear-attention-memory-research (github.com/madpods), interference of 512 unit keys at d = 16",
    "the code and the numbers were read",
    24,
    tasks,
    references,
    judge,
    draw.mean_cosines,
)
