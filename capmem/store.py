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
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem._version import FORMAT, NUMERICS
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

PARTS = "parts"
WORDS_OR_NUMBERS = ("key_scale",)  # text in every part, lest one setting has two types
Unit = tuple[str, int, int]

FIRST_PAUSE, LAST_PAUSE, GROWTH = 1.0, 30.0, 1.5  # seconds between two parts of one run


class StoreError(ValueError):
    """A folder that cannot be read or written as a sweep's."""


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
        pq.write_table(table, partial)
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
    units: dict[Unit, str] = {}
    for path in part_files(folder):
        frame = _read_part(path, ["point", "trial", "num_pairs", "status"])
        if frame.isna().any(axis=None):
            raise StoreError(f"{path} is not a part of a sweep: a row names no point, trial, num_pairs or status")
        rows = zip(frame["point"], frame["trial"], frame["num_pairs"], frame["status"], strict=True)
        for point, trial, num_pairs, status in rows:
            unit = (point, int(trial), int(num_pairs))
            if units.get(unit) in (None, "failed"):
                units[unit] = status
    return units


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
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
        if self.waiting:
            write_part(self.folder, self.waiting)
        self.waiting = []
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
        table = pq.read_table(path, columns=columns and [*columns, *stamps])
        written = {(f, n) for f, n in zip(*(table[s].to_pylist() for s in stamps), strict=True)}
    except (OSError, KeyError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise StoreError(f"{path} is not a part of a sweep, or is damaged: {reason}") from None
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
