"""Parquet parts: what a sweep has finished, written once and never changed.

The unit of storage is (point, trial, num_pairs). A part holds finished units of any points; a folder of parts
is read as one table. Parts are written beside their place and renamed into it, so a part is whole or absent.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem._version import FORMAT, NUMERICS
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

PARTS = "parts"
SET_ASIDE = "set_aside"  # what lay among the parts and is none
WORDS_OR_NUMBERS = ("key_scale",)  # text in every part, lest one setting has two types
NAMING = ["point", "trial", "num_pairs", "status"]  # what names a row, and says how it went
Unit = tuple[str, int, int]

FIRST_PAUSE, LAST_PAUSE, GROWTH = 1.0, 30.0, 1.5  # seconds between two parts of one run


class StoreError(ValueError):
    """A folder that cannot be read or written as a sweep's."""


class DamagedPart(StoreError):
    """A file among the parts that is truncated, changed, or no part at all."""


def write_part(folder: Path, records: list[Record]) -> Path:
    """Write finished units as one new part, and return its path.

    Raises
    ------
    StoreError
        If the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    stamped = [record | {"format": FORMAT, "numerics": NUMERICS} for record in records]
    names = list(dict.fromkeys(name for record in stamped for name in record))
    table = pa.table({name: _column([r.get(name) for r in stamped], name in WORDS_OR_NUMBERS) for name in names})
    name = f"part-{time.time_ns()}-{uuid.uuid4().hex[:8]}.parquet"
    target = folder / PARTS / name
    partial = target.with_name(f".{name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, partial, write_page_checksum=True)
        os.replace(partial, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise StoreError(f"{folder} cannot be written: {error}") from None
    return target


def read(folder: str | Path) -> pd.DataFrame:
    """Return the whole table of a sweep's folder: a row for each (point, trial, num_pairs), in a fixed order.

    Raises
    ------
    StoreError
        If there is no sweep in the folder, a part cannot be read, or its format or numerics is another one.
    """
    import pandas as pd

    frames = [_read_part(path) for path in part_files(folder)]
    if not frames:
        raise StoreError(f"{folder} holds no results: there is no part in {Path(folder) / PARTS}")
    columns = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    frame = pd.concat([f.dropna(axis=1, how="all") for f in frames], ignore_index=True).reindex(columns=columns)
    order = ["status", "point", "trial", "num_pairs"]  # "failed" sorts before "ok": the last one counts
    frame = frame.sort_values(order, kind="stable").drop_duplicates(order[1:], keep="last")
    return _in_order(frame)


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


def written_at(path: Path) -> float:
    """Return when a part was written, in seconds since 1970."""
    try:
        return int(path.name.split("-")[1]) / 1e9
    except ValueError:  # named by somebody else
        return path.stat().st_mtime


def _units_of(path: Path) -> dict[Unit, str]:
    frame = _read_part(path, NAMING)
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
            _read_part(path, NAMING)
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
            _read_part(path)
        except DamagedPart as error:
            target = Path(folder) / SET_ASIDE / path.name
            target.parent.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # another run was faster
                os.replace(path, target)
            told.append(f"{error}; set aside in {target.parent}")
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


def part_files(folder: str | Path) -> list[Path]:
    """Return the parts of a folder, oldest first."""
    return sorted((Path(folder) / PARTS).glob("part-*.parquet"))


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
        self.pause = FIRST_PAUSE
        self.last = time.monotonic()

    def add(self, records: Iterable[Record]) -> None:
        """Take finished units, and write all that wait if it is time."""
        self.waiting += records
        if time.monotonic() - self.last >= self.pause:
            self.flush()
            self.pause = min(self.pause * GROWTH, LAST_PAUSE)

    def flush(self) -> None:
        """Write all units that wait."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            write_part(self.folder, waiting)
            if self.written is not None:
                self.written(len(waiting))
        self.last = time.monotonic()


def _column(values: list[Any], as_text: bool) -> Any:
    """Return values as a Parquet column; a mixed or nested one as text."""
    import pyarrow as pa

    kinds = {type(v) for v in values if v is not None}
    if kinds <= {int, float} and float in kinds and not as_text:
        return pa.array(values, pa.float64())
    if as_text or len(kinds) > 1 or kinds & {list, tuple, dict}:
        return pa.array([None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values])
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):  # an integer beyond 64 bits, the width of an impossible map
        return pa.array([None if v is None else float(v) for v in values], pa.float64())


def _read_part(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stamps = ["format", "numerics"]
    try:
        table = pq.read_table(path, columns=columns and [*columns, *stamps], page_checksum_verification=True)
        unnamed = [name for name in NAMING if table[name].null_count]
        written = {(f, n) for f, n in zip(*(table[s].to_pylist() for s in stamps), strict=True)}
    except (OSError, KeyError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DamagedPart(f"{path} is not a part of a sweep, or is damaged: {reason}") from None
    if unnamed:
        raise DamagedPart(f"{path} is not a part of a sweep: a row has no {' and no '.join(unnamed)}")
    if written - {(FORMAT, NUMERICS)}:
        raise StoreError(
            f"{path} was written in (format, numerics) {sorted(written)}, and this version writes "
            f"{(FORMAT, NUMERICS)}: their numbers cannot stand in one table; use another folder"
        )
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Order rows by configuration, then pairs and trial: the same however the units were computed."""
    leading = ["key_dim", "value_dim", "feature_map", "write_rule", "readout", "keys", "keys.correlation"]
    by = [name for name in leading if name in frame] + ["point", "num_pairs", "trial"]
    frame = frame.sort_values(by, kind="stable").reset_index(drop=True)
    first = [name for name in ("point", "status", *leading, "num_pairs", "trial") if name in frame]
    return frame[[*first, *sorted(set(frame.columns) - set(first))]]
