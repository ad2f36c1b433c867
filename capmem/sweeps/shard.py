"""One task's share of a sweep: what is dealt to it, and how it runs it."""

from __future__ import annotations

import os
import random
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from capmem.store import PartWriter
from capmem.sweeps.allocation import keep_freed_memory
from capmem.sweeps.plan import Slab
from capmem.sweeps.pool import TERMINATING, results_of, signals_as_interrupts
from capmem.sweeps.slab import run_slab

ENDING = [*TERMINATING] + ([signal.SIGUSR2] if hasattr(signal, "SIGUSR2") else [])  # the last: time is nearly up


@dataclass(frozen=True)
class Shard:
    """What a task gets.

    Attributes
    ----------
    slabs : list of Slab
        What it computes.
    folder : Path
        The sweep's folder, absolute.
    workers : int
        Its processes.
    lease : Path, optional
        A file that whoever started the task holds locked; the task ends when the lock is gone.
    """

    slabs: list[Slab]
    folder: Path
    workers: int
    lease: Path | None = None


def deal(slabs: list[Slab], hands: int) -> list[list[Slab]]:
    """Deal slabs to as many shards, or to fewer where there are not so many slabs; none is empty.

    They are shuffled first, always the same: in a grid's order, every second slab could be the dear one.
    """
    shuffled = random.Random(0).sample(slabs, len(slabs))
    return [shuffled[first::hands] for first in range(min(hands, len(slabs)))]


def run_shard(shard: Shard) -> None:
    """Run the slabs of a shard; whatever is finished is stored, however it ends."""
    writer = PartWriter(shard.folder)
    try:
        with results_of(shard.slabs, run_slab, min(shard.workers, len(shard.slabs))) as results:
            for records, by_age in results:
                writer.add(records, by_age)
    finally:
        writer.flush()


def run_task(shard: Shard) -> None:
    """Run a shard in a process of its own, which ends early when it is told to, or when nobody waits any more.

    Raises
    ------
    RuntimeError
        If it was told to end; what is finished is stored.
    """
    if shard.lease is not None:
        threading.Thread(target=_end_with_lease, args=(shard.lease,), daemon=True).start()
    keep_freed_memory()
    with signals_as_interrupts(ENDING):
        try:
            run_shard(shard)
        except KeyboardInterrupt:
            raise RuntimeError("it was told to end before its work was done, as at its time limit") from None


def _end_with_lease(lease: Path) -> None:
    """Wait until the lock is free, which it is as soon as its holder is gone, however that came."""
    import fcntl

    with lease.open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        os._exit(1)
