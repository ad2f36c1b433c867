"""The folder of a sweep: whether it can be one, and the record that each run leaves in it."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

from capmem import store
from capmem.files import replace_file

RUNS = "runs"


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, or that is no sweep's, before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store.StoreError(f"the output folder {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise store.StoreError(f"the output folder {folder} cannot be written: permission denied")
    held = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    ours = (folder / store.PARTS).is_dir() or any(name.startswith("configuration") for name in held)
    folders = (store.PARTS, store.SET_ASIDE, RUNS, "figures")
    misplaced = [name for name in folders if (folder / name).exists() and not (folder / name).is_dir()]
    misplaced += ["results.csv"] if (folder / "results.csv").is_dir() else []
    if misplaced:
        raise store.StoreError(f"the output folder {folder} cannot be used: {misplaced[0]} is in the way")
    if held and not ours:
        some = ", ".join(sorted(held)[:3]) + (", ..." if len(held) > 3 else "")
        raise store.StoreError(
            f"the output folder {folder} holds something else ({some}): name a new one, or a sweep's"
        )


@dataclass
class RunRecord:
    """What one run set out to do, and how far it came; written beside the parts, whenever a part is.

    Attributes
    ----------
    slabs, units : int
        Slabs that the run computes, and units (point, trial, num_pairs) of the whole sweep.
    found : int
        Units that were stored before.
    started, ended : float
        Seconds since 1970; `ended` is None while it runs, and stays so if it is killed.
    computed : int
        Units that it stored.
    process, host
        Who runs it.
    """

    slabs: int
    units: int
    found: int
    workers: int
    started: float = field(default_factory=time.time)
    ended: float | None = None
    updated: float = 0.0
    computed: int = 0
    process: int = field(default_factory=os.getpid)
    host: str = field(default_factory=lambda: os.uname().nodename if hasattr(os, "uname") else "")
    name: str = field(default_factory=lambda: f"run-{time.time_ns()}-{uuid.uuid4().hex[:8]}.json")

    def write(self, folder: Path) -> None:
        """Write it by rename; a disk that is full shall stop the parts, not the record of them."""
        self.updated = time.time()
        with contextlib.suppress(OSError):
            replace_file(folder / RUNS / self.name, lambda file: file.write_text(json.dumps(asdict(self), indent=1)))


def run_records(folder: Path) -> list[RunRecord]:
    """Return the records of all runs, oldest first; what cannot be read is left out."""
    records = []
    for path in sorted((folder / RUNS).glob("run-*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            records.append(RunRecord(**json.loads(path.read_text())))
    return records
