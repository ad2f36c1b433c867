"""The sweep engine: plan what is missing, run it in a pool of processes or in tasks, store it. It needs no Hydra."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from capmem import store
from capmem.experiment import Experiment
from capmem.schema import coerce, require
from capmem.sweeps.cluster import Cluster
from capmem.sweeps.folder import RunRecord, check_folder
from capmem.sweeps.plan import Names, Slab, missing, plan
from capmem.sweeps.pool import results_of, signals_as_interrupts, usable_cores
from capmem.sweeps.progress import Progress
from capmem.sweeps.slab import run_slab
from capmem.sweeps.spread import Arrivals, spread
from capmem.trial import Record

Note = Callable[[int], None]


class Failure(NamedTuple):
    """One slab that failed: its configuration, its error, the overrides that name it, and how many of its units."""

    configuration: Record
    error: str
    overrides: str
    units: int

    def __str__(self) -> str:
        first = self.error.splitlines()[0] if self.error else "no error was told"
        return f"{self.overrides}: {first}" if self.overrides else first


class Stopped(KeyboardInterrupt):
    """A sweep that was interrupted; the message says how far it came, and how to go on."""


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
    failed : list of Failure
        Slabs that failed, now or in an earlier run.
    set_aside : list of str
        Files that lay among the parts and are none, a line each.
    """

    folder: Path
    points: int
    units: int
    found: int
    computed: int
    failed: list[Failure] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)

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
    cluster: Cluster | None = None,
) -> SweepReport:
    """Run a sweep: compute what is not stored in `folder` yet, and store it there.

    Parameters
    ----------
    points : iterable of Experiment or mapping
        A mapping holds plain names and values; see :func:`capmem.sweeps.experiment_from`. All are checked
        before the first one runs. Points that differ in trials or num_pairs only are run as one.
    folder : path
        It is made if it does not exist. The same folder again resumes. A file among its parts that is damaged or
        none of ours is set aside, and what it held is computed again.
    workers : int, optional
        Processes, each with one BLAS thread (default: the cores that this process may use). The numbers do not
        depend on it. With a cluster: those of each task (default: its own).
    retry_failed : bool
        Run stored failures again.
    progress : bool
        Show a bar (in a terminal or a notebook) or lines.
    cluster : Cluster, optional
        Run in tasks, on SLURM say. The numbers do not depend on it.

    Raises
    ------
    ValueError
        For a point that is not valid, or no points.
    RuntimeError
        If a worker or a task is killed, or the cluster cannot be started.
    StoreError
        If the folder cannot be read or written, or holds parts of another version.
    Stopped
        A KeyboardInterrupt: on Ctrl-C, SIGTERM or SIGHUP, with all that is finished stored.
    """
    workers = coerce(workers, int | None, "workers")
    require(workers is None or workers >= 1, "workers", workers, "an integer of at least 1, or null")
    require(isinstance(folder, str | Path), "folder", folder, "a path")
    require(
        isinstance(points, Iterable) and not isinstance(points, str | Mapping), "points", points, "a list of points"
    )
    planned = plan(points)
    if cluster is not None:
        cluster = replace(cluster, workers=workers or cluster.workers)
        cluster.check_available()
    folder = Path(folder)
    check_folder(folder)
    store.check(folder)
    set_aside = store.set_aside_damaged(folder)
    stored = store.finished(folder)
    done = {unit for unit, status in stored.items() if status != "failed" or not retry_failed}
    slabs = [slab for slab in (missing(slab, done) for slab in planned) if slab.units]
    units, lacking = (sum(len(s.units) for s in some) for some in (planned, slabs))
    names = Names(planned)
    report = SweepReport(folder, len(planned), units, units - lacking, lacking, set_aside=set_aside)
    report.failed.extend(_stored_failures(folder, planned, stored, retry_failed, names))
    most = cluster.shards * cluster.workers if cluster else workers or usable_cores()
    record = RunRecord(len(slabs), units, units - lacking, min(most, max(len(slabs), 1)))
    with Progress(len(slabs), progress) as bar:
        for line in set_aside:
            bar.tell(line)
        if report.found and slabs:
            bar.tell(f"{report.found} of {units} measurements are stored in {folder}; computing the other {lacking}")
        with _recorded(record, folder) as note:
            if cluster is None:
                _compute(slabs, record.workers, store.PartWriter(folder, note), bar, report, names)
            elif slabs:
                _compute_on(cluster, slabs, note, bar, report, names)
    return report


def _compute(
    slabs: list[Slab], workers: int, writer: store.PartWriter, bar: Progress, report: SweepReport, names: Names
) -> None:
    """Run slabs in processes of this machine; whatever is finished is stored, however it ends."""
    by_key = {slab.key: slab for slab in slabs}
    try:
        with results_of(slabs, run_slab, workers) as results:
            for records, by_age in results:
                writer.add(records, by_age)
                slab = by_key[records[0]["point"]]
                for failure in _failures([r for r in records if r["status"] == "failed"], names.of(slab)):
                    report.failed.append(failure)
                    bar.tell(f"failed: {failure}")
                bar.step(lambda slab=slab: names.of(slab))  # type: ignore[misc]
    finally:
        writer.flush()


def _compute_on(
    cluster: Cluster, slabs: list[Slab], note: Note, bar: Progress, report: SweepReport, names: Names
) -> None:
    """Run slabs in tasks of a cluster, which store what is finished."""
    arrivals = Arrivals(report.folder, slabs)
    with spread(slabs, cluster, arrivals, note, bar.tell) as complete:
        for slab in complete:
            bar.step(lambda slab=slab: names.of(slab))  # type: ignore[misc]
    for failure in _stored_failures(report.folder, slabs, arrivals.units, False, names):
        report.failed.append(failure)
        bar.tell(f"failed: {failure}")


@contextmanager
def _recorded(record: RunRecord, folder: Path) -> Iterator[Note]:
    """Give what counts units as stored; see that the record of the run is true, however the block ends."""

    def note(count: int) -> None:
        record.computed += count
        record.write(folder)

    (folder / store.PARTS).mkdir(exist_ok=True)  # from now on it is a sweep's, even if nothing gets stored
    record.write(folder)
    with signals_as_interrupts():
        try:
            yield note
        except KeyboardInterrupt:
            told = f"stopped with {record.found + record.computed} of {record.units} measurements stored in {folder}"
            raise Stopped(f"{told}; the same command with this folder resumes") from None
        finally:
            record.ended = time.time()
            record.write(folder)


def _stored_failures(
    folder: Path, planned: list[Slab], stored: dict[store.Unit, str], retry: bool, names: Names
) -> list[Failure]:
    """Return one failure of each slab that failed in an earlier run, unless it is run again."""
    failed = {unit for unit, status in stored.items() if status == "failed" and not retry}
    by_key = {slab.key: slab for slab in planned if failed}
    wanted = {(slab.key, *unit) for slab in by_key.values() for unit in slab.units} & failed
    rows: dict[str, list[Record]] = {}
    for row in store.failures(folder, wanted):
        rows.setdefault(row["point"], []).append(row)
    return [failure for key, some in rows.items() for failure in _failures(some, names.of(by_key[key]))]


def _failures(rows: list[Record], overrides: str) -> list[Failure]:
    """Return the failed rows of one slab as one failure, told by the first."""
    return [Failure(rows[0], rows[0]["error"], overrides, len(rows))] if rows else []
