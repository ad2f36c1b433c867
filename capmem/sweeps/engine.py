"""The sweep engine: plan what is missing, run it in a pool of processes, store it. It needs no Hydra."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capmem import store
from capmem.experiment import Experiment
from capmem.schema import coerce, require
from capmem.sweeps.points import as_experiment, point_key
from capmem.sweeps.pool import results_of, signals_as_interrupts, usable_cores
from capmem.sweeps.progress import Progress
from capmem.trial import Record


@dataclass(frozen=True)
class Slab:
    """One point, and the units (trial, num_pairs) of it that are to be computed."""

    key: str
    experiment: Experiment
    units: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SweepReport:
    """What a sweep did.

    Attributes
    ----------
    folder : Path
        Where the results are.
    points : int
        Distinct points.
    units : int
        (trial, num_pairs) of all points together.
    found, computed : int
        Units that were stored before, and units that this run computed.
    failed : list of (configuration, error)
        Slabs that failed, now or in an earlier run, each with its configuration and its error.
    """

    folder: Path
    points: int
    units: int
    found: int
    computed: int
    failed: list[tuple[Record, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no slab failed."""
        return not self.failed


def run(
    points: Iterable[Experiment | Mapping[str, Any]],
    folder: str | Path,
    workers: int | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> SweepReport:
    """Run a sweep: compute what is not stored in `folder` yet, and store it there.

    Parameters
    ----------
    points : iterable of Experiment or mapping
        A mapping holds plain names and values; see :func:`capmem.sweeps.experiment_from`. All are checked
        before the first one runs. Points that differ in trials or num_pairs only are run as one.
    folder : path
        It is made if it does not exist. The same folder again resumes.
    workers : int, optional
        Processes, each with one BLAS thread (default: the cores that this process may use). The numbers do not
        depend on it.
    retry_failed : bool
        Run stored failures again.
    progress : bool
        Show a bar (in a terminal) or lines.

    Raises
    ------
    ValueError
        For a point that is not valid, or no points.
    StoreError
        If the folder cannot be read or written.
    """
    workers = coerce(workers, int | None, "workers")
    require(workers is None or workers >= 1, "workers", workers, "an integer of at least 1, or null")
    require(isinstance(folder, str | Path), "folder", folder, "a path")
    require(
        isinstance(points, Iterable) and not isinstance(points, str | Mapping), "points", points, "a list of points"
    )
    planned = plan(points)
    folder = Path(folder)
    check_folder(folder)
    stored = store.finished(folder)
    done = {unit for unit, status in stored.items() if status != "failed" or not retry_failed}
    slabs = [slab for slab in (_missing(slab, done) for slab in planned) if slab.units]
    units, missing = (sum(len(s.units) for s in some) for some in (planned, slabs))
    report = SweepReport(folder, len(planned), units, units - missing, missing)
    report.failed.extend(_stored_failures(folder, planned, stored, retry_failed))
    writer = store.PartWriter(folder)
    workers = min(workers or usable_cores(), max(len(slabs), 1))
    with signals_as_interrupts():
        try:
            with Progress(len(slabs), progress) as bar, results_of(slabs, run_slab, workers) as results:
                for records in results:
                    writer.add(records)
                    report.failed.extend(_failure(records))
                    bar.step()
        finally:
            writer.flush()
    return report


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


def run_slab(slab: Slab) -> list[Record]:
    """Run one slab; a failure becomes rows of status "failed", never a hole in the table.

    A slab that fails as a whole is run unit by unit, so that what can be computed does not hang on what cannot.
    """
    try:
        records = _run(slab)
    except Exception as error:
        if len(slab.units) > 1:
            return [r for unit in slab.units for r in run_slab(Slab(slab.key, slab.experiment, (unit,)))]
        told = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
        told["traceback"] = traceback.format_exc()
        columns = _columns_of(slab.experiment)
        records = [columns | {"trial": t, "num_pairs": n} | told for t, n in slab.units]
    return [record | {"point": slab.key} for record in records]


def _run(slab: Slab) -> list[Record]:
    """Run a slab whose files are those that its key was made of, before and after."""
    _check_unchanged(slab)
    records = slab.experiment.run(slab.units)
    _check_unchanged(slab)
    return records


def _check_unchanged(slab: Slab) -> None:
    if point_key(slab.experiment) != slab.key:
        raise RuntimeError("a file of keys or values has changed since the sweep was started")


def _columns_of(experiment: Experiment) -> Record:
    try:
        return experiment.columns()
    except Exception:  # a map whose width fails, say: the failure itself is what must be told
        return {"key_dim": experiment.key_dim, "value_dim": experiment.value_dim}


def _missing(slab: Slab, done: set[store.Unit]) -> Slab:
    units = tuple(unit for unit in slab.units if (slab.key, *unit) not in done)
    return Slab(slab.key, slab.experiment, units)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store.StoreError(f"the output folder {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise store.StoreError(f"the output folder {folder} cannot be written: permission denied")
    held = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    ours = (folder / store.PARTS).is_dir() or any(name.startswith("configuration") for name in held)
    misplaced = [name for name in (store.PARTS, "figures") if (folder / name).exists() and not (folder / name).is_dir()]
    misplaced += ["results.csv"] if (folder / "results.csv").is_dir() else []
    if misplaced:
        raise store.StoreError(f"the output folder {folder} cannot be used: {misplaced[0]} is in the way")
    if held and not ours:
        some = ", ".join(sorted(held)[:3]) + (", ..." if len(held) > 3 else "")
        raise store.StoreError(
            f"the output folder {folder} holds something else ({some}): name a new one, or a sweep's"
        )


def _stored_failures(
    folder: Path, planned: list[Slab], stored: dict[store.Unit, str], retry: bool
) -> list[tuple[Record, str]]:
    """Return one failure of each point that failed in an earlier run, unless it is run again."""
    wanted = {(slab.key, *unit) for slab in planned for unit in slab.units}
    units = {unit for unit in wanted if stored.get(unit) == "failed" and not retry}
    first = {record["point"]: record for record in reversed(store.failures(folder, units))}
    return [(record, record["error"]) for record in first.values()]


def _failure(records: list[Record]) -> list[tuple[Record, str]]:
    failed = [r for r in records if r["status"] == "failed"]
    return [(failed[0], failed[0]["error"])] if failed else []
