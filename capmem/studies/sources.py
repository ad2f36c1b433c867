"""Where a study's table comes from: computed and kept as one file, or swept by the engine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from capmem._version import FORMAT, NUMERICS
from capmem.experiment import Experiment
from capmem.store import StoreError

if TYPE_CHECKING:
    import pandas as pd

    from capmem.sweeps.plan import Slab

TABLES = "parts"  # where a sweep keeps its own: one folder holds all that is stored

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
Point = Experiment | Mapping[str, Any]


class Options(NamedTuple):
    """How a study is run and shown: part of no table."""

    workers: int | None = None
    figures: bool = True
    retry_failed: bool = False


class Table(NamedTuple):
    """A study's table, and the errors of what could not be computed."""

    frame: pd.DataFrame
    failures: tuple[str, ...] = ()


class Source(Protocol[S_contra]):
    """What makes the table of a study."""

    def check(self, settings: S_contra) -> None:
        """Raise ValueError for settings that cannot be computed, before anything is."""

    def table(self, settings: S_contra, folder: Path, options: Options) -> Table:
        """Return the table, computing only what `folder` does not hold."""


@dataclasses.dataclass(frozen=True)
class Computed(Generic[S]):
    """A table that a plain function computes in this process, with one BLAS thread; kept whole, as Parquet.

    Parameters
    ----------
    rows : callable
        rows(settings) -> records, one dict a row.
    """

    rows: Callable[[S], Iterable[Mapping[str, Any]]]

    def check(self, settings: S) -> None:
        """Do nothing: settings have checked themselves."""

    def table(self, settings: S, folder: Path, options: Options) -> Table:
        """Return the table of exactly these settings, from `folder` if it is there.

        Raises
        ------
        StoreError
            If the stored table cannot be read.
        """
        import pandas as pd
        from threadpoolctl import threadpool_limits

        path = folder / TABLES / f"table-{table_key(settings)}.parquet"
        if not path.exists():
            with threadpool_limits(1):
                frame = pd.DataFrame.from_records(list(self.rows(settings)))
            replace_file(path, lambda partial: frame.to_parquet(partial, index=False))
        try:
            return Table(pd.read_parquet(path))
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise StoreError(f"{path} is damaged, delete it to compute it again: {reason}") from None


@dataclasses.dataclass(frozen=True)
class Swept(Generic[S]):
    """A table of the sweep engine: points run in its pool of processes, and what is stored is not run again.

    Parameters
    ----------
    points : callable
        points(settings) -> experiments, or plain mappings as :func:`capmem.sweeps.points.experiment_from` takes.
    """

    points: Callable[[S], Iterable[Point]]

    def check(self, settings: S) -> None:
        """Raise ValueError if a point is not valid."""
        self._plan(settings)

    def table(self, settings: S, folder: Path, options: Options) -> Table:
        """Run what is missing; return the rows of these points, trials and num_pairs, and of no others."""
        from capmem import results
        from capmem.sweeps.engine import run

        report = run(self.points(settings), folder, options.workers, options.retry_failed)
        wanted = {(slab.key, *unit) for slab in self._plan(settings) for unit in slab.units}
        frame = results.load(folder)
        units = zip(frame["point"], frame["trial"], frame["num_pairs"], strict=True)
        chosen = frame[[unit in wanted for unit in units]].reset_index(drop=True)
        return Table(chosen, tuple(map(str, report.failed)))

    def _plan(self, settings: S) -> list[Slab]:
        from capmem.sweeps.plan import plan

        return plan(self.points(settings))


def table_key(settings: Any) -> str:
    """Return the key that a computed table is stored under: a hash of the settings, and of what they are of."""
    told = {"study": type(settings).__qualname__, "format": FORMAT, "numerics": NUMERICS}
    text = json.dumps(told | {"settings": dataclasses.asdict(settings)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place, then rename it: whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
