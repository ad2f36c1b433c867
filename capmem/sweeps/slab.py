"""One slab in a worker process: its records, or rows that tell how it failed."""

from __future__ import annotations

import traceback
from typing import NamedTuple

from capmem.experiment import Experiment
from capmem.sweeps.plan import Slab
from capmem.sweeps.points import point_key
from capmem.trial import Record


class Finished(NamedTuple):
    """What came of a slab: its rows, and those by age."""

    records: list[Record]
    by_age: list[Record]


def run_slab(slab: Slab) -> Finished:
    """Run one slab; a failure becomes rows of status "failed", never a hole in the table.

    A slab that fails as a whole is run unit by unit, so that what can be computed does not hang on what cannot.
    """
    try:
        records, by_age = _run(slab)
    except Exception as error:
        if len(slab.units) > 1:
            parts = [run_slab(Slab(slab.key, slab.experiment, (unit,))) for unit in slab.units]
            return Finished([r for part in parts for r in part.records], [r for part in parts for r in part.by_age])
        told = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
        told["traceback"] = traceback.format_exc()
        columns = _columns_of(slab.experiment)
        records, by_age = [columns | {"trial": t, "num_pairs": n} | told for t, n in slab.units], []
    return Finished(*([record | {"point": slab.key} for record in some] for some in (records, by_age)))


def _run(slab: Slab) -> tuple[list[Record], list[Record]]:
    """Run a slab whose files are those that its key was made of, before and after."""
    _check_unchanged(slab)
    found = slab.experiment.run_with_ages(slab.units)
    _check_unchanged(slab)
    return found


def _check_unchanged(slab: Slab) -> None:
    if point_key(slab.experiment) != slab.key:
        raise RuntimeError("a file of keys or values has changed since the sweep was started")


def _columns_of(experiment: Experiment) -> Record:
    try:
        return experiment.columns()
    except Exception:  # a map whose width fails, say: the failure itself is what must be told
        return {"key_dim": experiment.key_dim, "value_dim": experiment.value_dim}
