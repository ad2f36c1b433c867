"""What a sweep's folder says of itself: finished, failed, left, speed, time to go, size."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from capmem import results, store
from capmem.sweeps.folder import RunRecord, run_records

if TYPE_CHECKING:
    import pandas as pd

QUIET = 120.0  # seconds without a part, of which the longest pause is 30 s, from which on a run counts as ended


@dataclass(frozen=True)
class Status:
    """The state of a sweep's folder; its units are (point, trial, num_pairs).

    Attributes
    ----------
    folder : Path
        The folder.
    asked : int
        Units that the last run was asked for, stored before or not.
    finished, failed : int
        Units of the folder that went well or were skipped, and that failed.
    left : int
        Units that the last run still has, or had, to compute.
    running : bool
        Whether the last run goes on, as far as its traces tell.
    speed : float
        Units a second that the last run stored; 0 before its first part.
    parts, size : int
        Parts, and bytes of the whole folder.
    errors : list of str
        Overrides and the first line of the error, for each point that failed.
    damaged : list of str
        What is wrong with files among the parts; the next run sets them aside.
    """

    folder: Path
    asked: int
    finished: int
    failed: int
    left: int
    running: bool
    speed: float
    parts: int
    size: int
    errors: list[str]
    damaged: list[str]

    @property
    def seconds_left(self) -> float:
        """Return how long the rest takes at this speed; inf where nobody can tell."""
        if self.left == 0:
            return 0.0
        return self.left / self.speed if self.speed else math.inf

    def __str__(self) -> str:
        state = "running" if self.running else "stopped" if self.left else "complete"
        state += (
            f", but {self.failed} failed (retry_failed=true runs them again)" if self.failed and not self.left else ""
        )
        togo = f", {_duration(self.seconds_left)} to go" if self.running and self.speed and self.left else ""
        lines = [
            f"{self.folder}: {state}",
            f"  finished  {self.finished} measurements (the last run was asked for {self.asked})",
            f"  failed    {self.failed}",
            f"  left      {self.left}",
            f"  speed     {self.speed:.3g} a second{togo}" if self.speed else "  speed     not known yet",
            f"  size      {_bytes(self.size)} in {self.parts} part{'s' * (self.parts != 1)}",
        ]
        lines += [f"  failed: {error}" for error in self.errors]
        return "\n".join([*lines, *(f"  damaged: {line}" for line in self.damaged)])


def status(folder: str | Path) -> Status:
    """Look at a sweep's folder, and change nothing in it.

    Raises
    ------
    StoreError
        If it is no sweep's folder, or one of another version.
    """
    folder = Path(folder)
    records, (parts, damaged) = run_records(folder), store.readable(folder)
    if not records and not parts and not damaged:
        raise store.StoreError(f"{folder} is no sweep's folder: it holds neither parts nor records of runs")
    units = store.joined(parts.values())
    failed = {unit for unit, how in units.items() if how == "failed"}
    last = records[-1] if records else RunRecord(0, len(units), len(units), 0)
    new = {path: part for path, part in parts.items() if store.written_at(path) >= last.started}
    computed = len(store.joined(new.values()))
    latest = max(map(store.written_at, new), default=last.started)
    return Status(
        folder,
        last.units,
        len(units) - len(failed),
        len(failed),
        max(last.units - last.found - computed, 0),
        bool(records) and last.ended is None and time.time() - max(latest, last.updated) < QUIET,
        computed / max(latest - last.started, 1e-9) if computed else 0.0,
        len(parts),
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        _errors(store.read(folder)) if failed and not damaged else [],
        damaged,
    )


def _errors(frame: pd.DataFrame) -> list[str]:
    """Return a line for each point that failed, told by the settings that vary in the folder."""
    names = [name for name in results.varying(frame) if name not in ("num_pairs", "feature_dim")]
    failed = frame[frame["status"] == "failed"].drop_duplicates("point").to_dict("records")
    told = []
    for row in failed:
        overrides = " ".join(
            f"{name}={row[name]}" for name in names if row[name] is not None and row[name] == row[name]
        )
        first = str(row["error"]).partition("\n")[0]
        told.append(f"{overrides}: {first}" if overrides else first)
    return told


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
