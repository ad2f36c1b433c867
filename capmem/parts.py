"""One Parquet part: finished units of a sweep, written once, beside its place and then renamed into it.

Where an experiment has rows by age, a part has a second file of the same name with those.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem._version import FORMAT, NUMERICS
from capmem.files import replace_file
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

PARTS = "parts"
RESULTS, AGES = "part", "ages"  # what the names of the two files begin with
NAMING = ["point", "trial", "num_pairs", "status"]  # what names a row, and says how it went
WORDS_OR_NUMBERS = ("key_scale",)  # text in every part, lest one setting has two types


class StoreError(ValueError):
    """A folder that cannot be read or written as a sweep's."""


class DamagedPart(StoreError):
    """A file among the parts that is truncated, changed, or no part at all."""


def write_part(folder: Path, records: Sequence[Record], by_age: Sequence[Record] = ()) -> Path:
    """Write finished units as one new part, and return its path.

    Raises
    ------
    StoreError
        If the folder cannot be written.
    """
    name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}.parquet"
    if by_age:  # first: a unit counts as finished by its row in the other file
        _write(folder, f"{AGES}-{name}", by_age)
    return _write(folder, f"{RESULTS}-{name}", records)


def _write(folder: Path, name: str, records: Sequence[Record]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stamps = {"format": [FORMAT] * len(records), "numerics": [NUMERICS] * len(records)}
    columns = _by_column(records) | stamps
    table = pa.table({name: _column(values, name in WORDS_OR_NUMBERS) for name, values in columns.items()})
    try:
        return replace_file(folder / PARTS / name, lambda file: pq.write_table(table, file, write_page_checksum=True))
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error}") from None


def _by_column(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the values of each name, None where a record has none; records of the same names are turned as one."""
    alike: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        alike.setdefault(tuple(record), []).append(record)
    columns: dict[str, list[Any]] = {name: [] for names in alike for name in names}
    for names, some in alike.items():
        found = dict(zip(names, zip(*(record.values() for record in some), strict=True), strict=True))
        for name, values in columns.items():
            values += found.get(name) or [None] * len(some)
    return columns


def _column(values: list[Any], as_text: bool) -> Any:
    """Return values as a Parquet column; a mixed or nested one as text."""
    import pyarrow as pa

    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {int, float} and float in kinds and not as_text:
        return pa.array(values, pa.float64())
    if as_text or len(kinds) > 1 or kinds & {list, tuple, dict}:
        return pa.array([None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values])
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):  # an integer beyond 64 bits, the width of an impossible map
        return pa.array([None if v is None else float(v) for v in values], pa.float64())


def part_files(folder: str | Path) -> list[Path]:
    """Return the parts of a folder, oldest first."""
    return sorted((Path(folder) / PARTS).glob(f"{RESULTS}-*.parquet"))


def ages_of(part: Path) -> Path:
    """Return where a part's rows by age are, if it has any."""
    return part.with_name(part.name.replace(RESULTS, AGES, 1))


def written_at(part: Path) -> float:
    """Return when a part was written, in seconds since 1970."""
    try:
        return int(part.name.split("-")[1]) / 1e9
    except ValueError:  # named by somebody else
        return part.stat().st_mtime


def read_part(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """Return the rows of one file, whole or some columns of it.

    Raises
    ------
    DamagedPart
        If it is none of ours, or damaged.
    StoreError
        If it is of another format or of other numerics.
    """
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


def check_part(path: Path) -> None:
    """Read a part to its last byte, and its rows by age where it must have them.

    Raises
    ------
    DamagedPart, StoreError
        As :func:`read_part`; also if the rows by age are missing.
    """
    frame = read_part(path)
    if "age_bins" in frame and ((frame["age_bins"] > 0) & (frame["status"] == "ok")).any():
        if not ages_of(path).exists():
            raise DamagedPart(f"{path} is not whole: its rows by age are missing")
        read_part(ages_of(path))
