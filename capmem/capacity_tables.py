"""The tables of the capacity analysis: N* of every point and the dimensions needed, computed once and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from capmem import capacity
from capmem._version import FORMAT, NUMERICS
from capmem.capacity.decide import LEAST_DIM
from capmem.capacity.dimension import as_row
from capmem.capacity_points import Point, Row, key_of
from capmem.files import replace_file
from capmem.store import StoreError
from capmem.studies.sources import TABLES
from capmem.sweeps.pool import results_of, usable_cores
from capmem.theory import TheoryUnavailable

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
STORED = "capacity"  # what the names of stored files begin with
TOLD = ("pairs", "low", "high", "bracketed", "bound", "method", "trials", "narrow", "source")  # of an estimate
SETTINGS = ("memory", "key_dim", "value_dim")  # of those that every row has
SIZES = ("state_elements", "state_bytes", "pairs_per_byte")
CAPACITY_COLUMNS = (*SETTINGS, *TOLD, "theory_pairs", "criterion", *SIZES, "pareto")
NEEDED_COLUMNS = (*SETTINGS, "num_pairs", "bracketed", "criterion", "state_bytes", "shown")


class Tables(NamedTuple):
    """A row for each point, and a row for each memory and wanted number of pairs."""

    capacities: pd.DataFrame
    needed: pd.DataFrame


class Wanted(NamedTuple):
    """One question of the inverse: pairs to hold, and a dimension to begin the search at."""

    point: Point
    num_pairs: int
    start: int | None


def tables(points: Sequence[Point], folder: Path, workers: int | None = None) -> Tables:
    """Return the tables of these points, from `folder` where they are there.

    Raises
    ------
    StoreError
        If the stored tables cannot be read.
    """
    path = folder / TABLES / f"{STORED}-{key_of(points)}.json"
    if not path.exists():
        found = capacities(points, workers)
        needed = dimensions(points, found, workers)
        told = {"format": FORMAT, "numerics": NUMERICS, **{k: v.to_dict("records") for k, v in
                (("capacities", found), ("needed", needed))}}  # fmt: skip
        text = json.dumps(told, default=lambda number: number.item())
        replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))
    return _tables_of(_told(path), path)


def stored(folder: Path) -> Iterator[Tables]:
    """Yield what the folder holds, oldest first; tables of another version are left out."""
    for path in sorted((folder / TABLES).glob(f"{STORED}-*.json"), key=lambda p: (p.stat().st_mtime, p.name)):
        told = _told(path)
        if _version(told) == (FORMAT, NUMERICS):
            yield _tables_of(told, path)


def _told(path: Path) -> dict[str, Any]:
    """Return what a stored file says: an object that names its version."""
    try:
        told: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None
    if not (isinstance(told, dict) and None not in _version(told)):
        raise _damaged(path, "it is no object with format and numerics")
    return told


def _version(told: dict[str, Any]) -> tuple[Any, Any]:
    return told.get("format"), told.get("numerics")


def _tables_of(told: dict[str, Any], path: Path) -> Tables:
    """Return the tables of a stored file; there is a row for each point, so none of capacities is a fault."""
    import pandas as pd

    held = {name: told.get(name) for name in Tables._fields}
    for name, rows in held.items():
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise _damaged(path, f"{name} is no list of rows")
    found = Tables(**{name: pd.DataFrame(rows) for name, rows in held.items()})
    if found.capacities.empty:
        raise _damaged(path, "capacities is empty")
    for name, frame, columns in zip(Tables._fields, found, (CAPACITY_COLUMNS, NEEDED_COLUMNS), strict=True):
        missing = [column for column in columns if column not in frame]
        if missing and not frame.empty:
            raise _damaged(path, f"{name} lacks {', '.join(missing)}")
    return found


def _damaged(path: Path, reason: object) -> StoreError:
    return StoreError(f"{path} is damaged, delete it to compute it again: {reason}")


def capacities(points: Sequence[Point], workers: int | None = None) -> pd.DataFrame:
    """Return a row for each point: its settings, N* with interval and bound, the predicted N*, the state's size."""
    import pandas as pd

    frame = pd.DataFrame(_in_order(list(points), _measure, workers))
    return frame.assign(pareto=capacity.pareto(frame))


def dimensions(points: Sequence[Point], table: pd.DataFrame, workers: int | None = None) -> pd.DataFrame:
    """Return a row for each memory and wanted number of pairs: the least key dimension, and the state there.

    The searches begin where the law through the capacities of `table` (a row a point) says.
    """
    import pandas as pd

    families: dict[Any, list[int]] = {}
    for i, point in enumerate(points):
        families.setdefault(point.family(), []).append(i)
    questions = []
    for members in families.values():
        point = points[members[0]]
        if point.experiment.keys.file_dim() is None:
            law = capacity.power_law(*table[["key_dim", "pairs"]].iloc[members].to_numpy(dtype=float).T)
            questions += [Wanted(point, n, _start(law, n, point.asked.max_dim)) for n in point.asked.wanted]
    return pd.DataFrame(_in_order(questions, _require, workers))


def _measure(point: Point) -> Row:
    e = point.experiment
    options = point.options() | {"max_pairs": point.asked.max_pairs}
    found = capacity.estimate(e.memory, e.keys, e.key_dim, e.value_dim, **options)
    predicted = math.nan
    try:
        theory = options | {"method": "theory"}
        predicted = capacity.estimate(e.memory, e.keys, e.key_dim, e.value_dim, **theory).pairs
    except TheoryUnavailable:
        pass
    held = max(1, math.floor(found.pairs if found.bracketed else found.low if found.bound == "at least" else 1))
    size = e.memory.state_size(e.key_dim, e.value_dim, held, e.dtype)
    return e.columns() | {name: getattr(found, name) for name in TOLD} | {
        "theory_pairs": predicted,
        "criterion": str(found.criterion),
        "state_elements": size.elements,
        "state_bytes": size.bytes,
        "pairs_per_byte": found.pairs / size.bytes,
    }  # fmt: skip


def _require(wanted: Wanted) -> Row:
    e = wanted.point.experiment
    found = capacity.required_dim(
        wanted.num_pairs,
        e.memory,
        e.keys,
        value_dim=None if wanted.point.follows else e.value_dim,
        max_dim=wanted.point.asked.max_dim,
        start=wanted.start,
        **wanted.point.options(),
    )
    return e.columns() | as_row(found)


def _in_order(tasks: list[T], work: Callable[[T], Row], workers: int | None) -> list[Row]:
    """Return work(task) of each task, in order; the largest are begun first."""
    numbered = sorted(enumerate(tasks), key=lambda task: -_weight(task[1]))
    processes = min(workers or usable_cores(), len(tasks)) or 1
    with results_of([(i, work, task) for i, task in numbered], _numbered, processes) as found:
        return [row for _, row in sorted(found, key=lambda result: result[0])]


def _numbered(task: tuple[int, Callable[[Any], Row], Any]) -> tuple[int, Row]:
    number, work, asked = task
    return number, work(asked)


def _weight(task: Any) -> float:
    return float(task.num_pairs if isinstance(task, Wanted) else task.experiment.key_dim)


def _start(law: capacity.PowerLaw, num_pairs: int, max_dim: int) -> int | None:
    if not law.exponent > 0:
        return None
    guess = float((num_pairs / law.factor) ** (1 / law.exponent))
    return round(min(max(guess, LEAST_DIM), max_dim))
