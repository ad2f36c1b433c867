"""Run slabs in the tasks of a cluster, and follow them by what they store."""

from __future__ import annotations

import dataclasses
import os
import pickle
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capmem import store
from capmem.parts import NAMING, read_part
from capmem.sweeps.cluster import Cluster
from capmem.sweeps.plan import Slab
from capmem.sweeps.pool import signals_ignored
from capmem.sweeps.shard import Shard, deal
from capmem.sweeps.tasks import RUNNERS, Tasks, interpreter

HIDDEN = ".submitit"  # in the sweep's folder: what the tasks are told, and their logs
FIRST_PAUSE, LAST_PAUSE, GROWTH = 0.1, 2.0, 1.2  # seconds between two looks
MOST_TOLD = 3  # tasks of whose end the error tells
LOADS = (
    "import pickle, sys; from capmem.sweeps.points import point_key; "
    "slab = pickle.load(sys.stdin.buffer); sys.exit(point_key(slab.experiment) != slab.key)"
)


class Arrivals:
    """The units of some slabs that are stored from now on.

    Parameters
    ----------
    folder : Path
        The sweep's folder.
    slabs : list of Slab
        What is awaited.
    """

    def __init__(self, folder: Path, slabs: list[Slab]) -> None:
        self.folder = folder
        self.seen = set(store.part_files(folder))
        self.slabs = {slab.key: slab for slab in slabs}
        self.awaited = {slab.key: set(slab.units) for slab in slabs}
        self.units: dict[store.Unit, str] = {}

    def look(self) -> tuple[int, list[Slab]]:
        """Return how many units are new, and the slabs that are complete with them."""
        count, complete = 0, []
        for path in store.part_files(self.folder):
            if path in self.seen:
                continue
            self.seen.add(path)
            frame = read_part(path, NAMING)
            for point, trial, num_pairs, status in zip(*(frame[name] for name in NAMING), strict=True):
                unit, awaited = (int(trial), int(num_pairs)), self.awaited.get(point, set())
                if unit in awaited:
                    awaited.remove(unit)
                    self.units[(point, *unit)] = status
                    count += 1
                    complete += [] if awaited else [self.slabs[point]]
        return count, complete

    @property
    def lacking(self) -> int:
        """Return how many units are not there."""
        return sum(map(len, self.awaited.values()))


@contextmanager
def spread(
    slabs: list[Slab], cluster: Cluster, arrivals: Arrivals, note: Callable[[int], None], tell: Callable[[str], None]
) -> Iterator[Iterator[Slab]]:
    """Give each slab as soon as it is stored as a whole; no task outlives the block.

    Parameters
    ----------
    slabs : list of Slab
        What is to be computed.
    cluster : Cluster
        Where.
    arrivals : Arrivals
        Knows afterwards what was stored.
    note : callable
        note(count) is called at every look, with the number of new units.
    tell : callable
        Takes a line for the user.

    Raises
    ------
    ValueError
        If tasks could not build a point.
    RuntimeError
        If tasks have ended, and units are missing.
    """
    if cluster.kind != "debug":
        check_buildable(slabs)
    work = (arrivals.folder / HIDDEN / f"{time.time_ns()}-{uuid.uuid4().hex[:8]}").absolute()
    work.mkdir(parents=True)
    shards = [Shard(share, arrivals.folder.absolute(), cluster.workers) for share in deal(slabs, cluster.shards)]
    try:
        with signals_ignored():  # none starts unnoticed; processes started here ignore Ctrl-C as well
            tasks = RUNNERS[cluster.kind](cluster, shards, work)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    tell(f"{len(slabs)} slabs in {len(shards)} tasks, {cluster.kind}; their logs are in {work}")
    try:
        yield _as_stored(tasks, arrivals, note)
    finally:
        with signals_ignored():
            tasks.cancel()
            note(arrivals.look()[0])
    shutil.rmtree(work, ignore_errors=True)  # the logs of tasks that went well


def _as_stored(tasks: Tasks, arrivals: Arrivals, note: Callable[[int], None]) -> Iterator[Slab]:
    """Yield slabs as their last unit appears; the store is what counts, not what tasks say of themselves."""
    pause, ended = FIRST_PAUSE, None
    while True:
        if ended is None and not tasks.running():
            ended = time.monotonic()
        count, complete = arrivals.look()
        note(count)
        yield from complete
        if ended is not None and (not arrivals.lacking or time.monotonic() - ended >= tasks.settling):
            break
        time.sleep(pause)
        pause = min(pause * GROWTH, LAST_PAUSE)
    if arrivals.lacking:
        told = tasks.told() or ["by their own account with all done"]
        raise RuntimeError(
            f"{arrivals.lacking} measurements are missing, for tasks have ended: {'; '.join(told[:MOST_TOLD])}; "
            "the same command with this folder computes them"
        )


def check_buildable(slabs: list[Slab]) -> None:
    """Refuse points with choices that a process of its own does not know, as a map registered in a notebook.

    Raises
    ------
    ValueError
        If there is one.
    """
    foreign: dict[tuple[type, ...], Slab] = {}
    for slab in slabs:
        foreign.setdefault(_foreign_types(slab), slab)
    foreign.pop((), None)
    for types, slab in foreign.items():
        if not _loads_elsewhere(slab):
            named = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in types)
            raise ValueError(
                f"tasks do not know {named}: register it in a module that they can import, where it is defined, or "
                "by an entry point"
            )


def _foreign_types(slab: Slab) -> tuple[type, ...]:
    """Return the classes of a point that other packages define."""
    experiment: Any = slab.experiment
    parts = [getattr(experiment.memory, f.name) for f in dataclasses.fields(experiment.memory)]
    values = [experiment.memory, experiment.keys, experiment.values, *filter(dataclasses.is_dataclass, parts)]
    return tuple(type(value) for value in values if type(value).__module__.partition(".")[0] != "capmem")


def _loads_elsewhere(slab: Slab) -> bool:
    try:
        pickled = pickle.dumps(slab)
    except (pickle.PicklingError, AttributeError, TypeError):  # a class of a function, say
        return False
    command = [*shlex.split(interpreter()), "-c", LOADS]
    return subprocess.run(command, input=pickled, capture_output=True, env=dict(os.environ)).returncode == 0
