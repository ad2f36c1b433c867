"""The store: a folder of Parquet parts, read as one table, and what is missing in it.

The unit of storage is (point, trial, num_pairs). A part holds finished units of any points, and is never changed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from capmem.parts import (
    NAMING,
    PARTS,
    DamagedPart,
    StoreError,
    ages_of,
    check_part,
    part_files,
    read_part,
    write_part,
    written_at,
)
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARTS", "PartWriter", "StoreError", "part_files", "read", "write_part", "written_at"]

SET_ASIDE = "set_aside"  # what lay among the parts and is none
Unit = tuple[str, int, int]

FIRST_PAUSE, LAST_PAUSE, GROWTH = 0.5, 30.0, 1.6  # seconds between two parts of one run


def read(folder: str | Path) -> pd.DataFrame:
    """Return the whole table of a sweep's folder: a row for each (point, trial, num_pairs), in a fixed order.

    Raises
    ------
    StoreError
        If there is no sweep in the folder, a part cannot be read, or its format or numerics is another one.
    """
    files = part_files(folder)
    if not files:
        raise StoreError(f"{folder} holds no results: there is no part in {Path(folder) / PARTS}")
    return _table(files, ["point", "trial", "num_pairs"])


def read_ages(folder: str | Path) -> pd.DataFrame:
    """Return the second table: a row for each (point, trial, num_pairs, age_bin) of experiments with age bins.

    Raises
    ------
    StoreError
        As :func:`read`.
    """
    files = [ages_of(path) for path in part_files(folder) if ages_of(path).exists()]
    if not files:
        raise StoreError(f"{folder} holds no rows by age: sweep with age_bins=K")
    return _table(files, ["point", "trial", "num_pairs", "age_bin"])


def _table(files: list[Path], naming: list[str]) -> pd.DataFrame:
    import pandas as pd

    frames = [read_part(path) for path in files]
    columns = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    frame = pd.concat([f.dropna(axis=1, how="all") for f in frames], ignore_index=True).reindex(columns=columns)
    order = ["status", *naming]  # "failed" sorts before "ok": the last one counts
    frame = frame.sort_values(order, kind="stable").drop_duplicates(naming, keep="last")
    return _in_order(frame, naming)


def _in_order(frame: pd.DataFrame, naming: list[str]) -> pd.DataFrame:
    """Order rows by configuration, then pairs and trial: the same however the units were computed."""
    leading = ["key_dim", "value_dim", "feature_map", "write_rule", "readout", "keys", "keys.correlation"]
    last = ["num_pairs", *sorted(set(naming) - {"point", "num_pairs"}, reverse=True)]
    by = [name for name in leading if name in frame] + ["point", *last]
    frame = frame.sort_values(by, kind="stable").reset_index(drop=True)
    first = [name for name in ("point", "status", *leading, *last) if name in frame]
    return frame[[*first, *sorted(set(frame.columns) - set(first))]]


def finished(folder: str | Path) -> dict[Unit, str]:
    """Return the status of every stored unit."""
    return joined(_units_of(path) for path in part_files(folder))


def readable(folder: str | Path) -> tuple[dict[Path, dict[Unit, str]], list[str]]:
    """Return the units of each part, and a line for each file that is no whole part."""
    units: dict[Path, dict[Unit, str]] = {}
    damaged = []
    for path in part_files(folder):
        try:
            units[path] = _units_of(path)
        except DamagedPart as error:
            damaged.append(str(error))
    return units, damaged


def joined(parts: Iterable[dict[Unit, str]]) -> dict[Unit, str]:
    """Return the status of every unit; a success counts over a failure, whichever came first."""
    units: dict[Unit, str] = {}
    for part in parts:
        units |= {unit: status for unit, status in part.items() if units.get(unit) in (None, "failed")}
    return units


def _units_of(path: Path) -> dict[Unit, str]:
    frame = read_part(path, NAMING)
    rows = zip(*(frame[name] for name in NAMING), strict=True)
    return {(point, int(trial), int(num_pairs)): status for point, trial, num_pairs, status in rows}


def check(folder: str | Path) -> None:
    """Refuse parts of another format or of other numerics, and files that look like parts where no sweep has been.

    Raises
    ------
    StoreError
        In these cases. Damage in a sweep's own folder is no hindrance.
    """
    whole, damage = False, None
    for path in part_files(folder):
        try:
            read_part(path, NAMING)
            whole = True
        except DamagedPart as error:
            damage = damage or error
    traces = [*Path(folder).glob("configuration*.yaml"), *Path(folder).glob("runs/run-*.json")]
    if damage and not whole and not traces:
        raise damage


def set_aside_damaged(folder: str | Path) -> list[str]:
    """Move every file that is no whole part out of the parts, and return what was found, a line each.

    Nothing is deleted. What such a file held is missing from now on, so the next run computes it.

    Raises
    ------
    StoreError
        For a part of another format or of other numerics, which is whole and must not be mixed in.
    """
    told = []
    for path in part_files(folder):
        try:
            check_part(path)
        except DamagedPart as error:
            aside = Path(folder) / SET_ASIDE
            aside.mkdir(exist_ok=True)
            for file in (path, ages_of(path)):
                with contextlib.suppress(FileNotFoundError):  # there is none, or another run was faster
                    os.replace(file, aside / file.name)
            told.append(f"{error}; set aside in {aside}")
    return told


def failures(folder: str | Path, units: set[Unit]) -> list[Record]:
    """Return the stored rows of those `units` that failed."""
    if not units:
        return []
    frame = read(folder)
    frame = frame[frame["status"] == "failed"]
    rows = zip(frame["point"], frame["trial"], frame["num_pairs"], strict=True)
    chosen = [(point, int(trial), int(num_pairs)) in units for point, trial, num_pairs in rows]
    return [{str(name): value for name, value in row.items()} for row in frame[chosen].to_dict("records")]


class PartWriter:
    """Collects finished units, and writes them about once a second at first, later every 30 seconds.

    Parameters
    ----------
    folder : Path
        The sweep's folder.
    written : callable, optional
        written(count) is called after each part, with the number of its units.
    """

    def __init__(self, folder: Path, written: Callable[[int], None] | None = None) -> None:
        self.folder = folder
        self.written = written
        self.waiting: list[Record] = []
        self.by_age: list[Record] = []
        self.pause = FIRST_PAUSE
        self.last = time.monotonic()

    def add(self, records: Iterable[Record], by_age: Iterable[Record] = ()) -> None:
        """Take finished units, with their rows by age, and write all that wait if it is time."""
        self.waiting += records
        self.by_age += by_age
        if time.monotonic() - self.last >= self.pause:
            self.flush()
            self.pause = min(self.pause * GROWTH, LAST_PAUSE)

    def flush(self) -> None:
        """Write all units that wait."""
        (waiting, by_age), (self.waiting, self.by_age) = (self.waiting, self.by_age), ([], [])
        if waiting:
            write_part(self.folder, waiting, by_age)
            if self.written is not None:
                self.written(len(waiting))
        self.last = time.monotonic()
