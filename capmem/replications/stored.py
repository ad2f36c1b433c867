"""What replications measured, kept as one file a study: computed in a pool of processes where it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from capmem.files import replace_file
from capmem.replications import REPLICATIONS
from capmem.replications.base import Task
from capmem.replications.measurement import Measurement, as_frame
from capmem.studies.sources import TABLES, read_table, table_key
from capmem.sweeps.pool import results_of, usable_cores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Asked:
    """What decides the measurements of one study."""

    study: str
    trials: int
    seed: int

    def path(self, folder: Path) -> Path:
        """Return the file of its table."""
        return folder / TABLES / f"{self.study}-{table_key(self)}.parquet"


class _Piece(NamedTuple):
    owner: int
    place: int
    task: Task


def tables(asked: Sequence[Asked], folder: Path, workers: int | None = None) -> list[pd.DataFrame]:
    """Return the table of measurements of each study, from `folder` where it is there.

    Rows do not depend on the number of workers or on which other studies are asked for.

    Raises
    ------
    StoreError
        If a stored table cannot be read.
    """
    missing = [one for one in asked if not one.path(folder).exists()]
    _measure(missing, folder, workers)
    return [read_table(one.path(folder)) for one in asked]


def stored(asked: Asked, folder: Path) -> pd.DataFrame | None:
    """Return the table of measurements of a study, None where `folder` does not hold it."""
    path = asked.path(folder)
    return read_table(path) if path.is_file() else None


def _measure(asked: Sequence[Asked], folder: Path, workers: int | None) -> None:
    """Run all tasks in one pool; each study is stored as soon as its last one is done."""
    tasks = [REPLICATIONS[one.study].tasks(one.seed, one.trials) for one in asked]
    pieces = [_Piece(owner, i, task) for owner, own in enumerate(tasks) for i, task in enumerate(own)]
    done: list[dict[int, list[Measurement]]] = [{} for _ in asked]
    processes = min(workers or usable_cores(), len(pieces)) or 1
    with results_of(pieces, _run, processes) as found:
        for owner, place, rows in found:
            done[owner][place] = rows
            if len(done[owner]) == len(tasks[owner]):
                frame = as_frame(row for _, own in sorted(done[owner].items()) for row in own)
                replace_file(asked[owner].path(folder), partial(frame.to_parquet, index=False))


def _run(piece: _Piece) -> tuple[int, int, list[Measurement]]:
    return piece.owner, piece.place, piece.task.run()
