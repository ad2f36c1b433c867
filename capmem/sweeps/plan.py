"""What a sweep has to do: distinct slabs, the units of each, and the overrides that tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from capmem import store
from capmem.configuration import flatten
from capmem.experiment import Experiment
from capmem.sweeps.points import as_experiment, point_key

NOT_TOLD = ("num_pairs", "trials")  # a slab holds all of them


@dataclass(frozen=True)
class Slab:
    """One point, and the units (trial, num_pairs) of it that are to be computed."""

    key: str
    experiment: Experiment
    units: tuple[tuple[int, int], ...]


def plan(points: Iterable[Experiment | Mapping[str, Any]]) -> list[Slab]:
    """Check all points, and join those that are one slab: equal in all but trials and num_pairs."""
    experiments: dict[str, Experiment] = {}
    units: dict[str, dict[tuple[int, int], None]] = {}
    for point in points:
        experiment = as_experiment(point)
        key = point_key(experiment)
        experiments.setdefault(key, experiment)
        wanted = ((t, n) for t in range(experiment.trials) for n in experiment.num_pairs)
        units.setdefault(key, {}).update(dict.fromkeys(wanted))
    if not experiments:
        raise ValueError("a sweep needs at least one point, got none")
    return [Slab(key, experiments[key], tuple(units[key])) for key in experiments]


def missing(slab: Slab, done: set[store.Unit]) -> Slab:
    """Return the slab with the units that are not done."""
    return Slab(slab.key, slab.experiment, tuple(unit for unit in slab.units if (slab.key, *unit) not in done))


@dataclass(frozen=True)
class Names:
    """Tells slabs of one sweep apart by the settings that they do not share.

    Parameters
    ----------
    slabs : list of Slab
        All of the sweep.
    """

    slabs: list[Slab]

    def of(self, slab: Slab) -> str:
        """Return the slab's own overrides, ``feature_map=relu key_dim=16``; "" where there is one slab only."""
        return " ".join(f"{key}={value}" for key, value in _settings(slab).items() if key in self._varying)

    @cached_property
    def _varying(self) -> set[str]:
        """Found when first asked for: most sweeps end before anybody asks."""
        first = _settings(self.slabs[0])
        return {
            key
            for settings in map(_settings, self.slabs[1:])
            for key in first.keys() | settings.keys()
            if first.get(key) != settings.get(key)
        }


def _settings(slab: Slab) -> dict[str, Any]:
    flat = flatten(slab.experiment.configuration())
    return {key: value for key, value in flat.items() if key not in NOT_TOLD and value is not None}
