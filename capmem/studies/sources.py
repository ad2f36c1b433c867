"""Where a study's table comes from: computed and kept as one file, or swept by the engine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from capmem._version import FORMAT, NUMERICS
from capmem.experiment import Experiment
from capmem.files import replace_file
from capmem.store import StoreError, part_files

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

    def stored(self, settings: S_contra, folder: Path) -> pd.DataFrame | None:
        """Return the table where `folder` holds all of it, else None; nothing is computed."""


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

        path = computed_path(settings, folder)
        if not path.exists():
            with threadpool_limits(1):
                frame = pd.DataFrame.from_records(list(self.rows(settings)))
            replace_file(path, lambda partial: frame.to_parquet(partial, index=False))
        return Table(read_table(path))

    def stored(self, settings: S, folder: Path) -> pd.DataFrame | None:
        """Return the table of exactly these settings, if it is there."""
        path = computed_path(settings, folder)
        return read_table(path) if path.is_file() else None


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
        from capmem.sweeps.engine import run

        report = run(self.points(settings), folder, options.workers, options.retry_failed)
        return Table(self._rows(settings, folder)[0], tuple(map(str, report.failed)))

    def stored(self, settings: S, folder: Path) -> pd.DataFrame | None:
        """Return the rows of these points, trials and num_pairs, if all are there."""
        if not part_files(folder):
            return None
        rows, whole = self._rows(settings, folder)
        return rows if whole else None

    def _rows(self, settings: S, folder: Path) -> tuple[pd.DataFrame, bool]:
        """Return the stored rows of these settings, and whether there is one for every unit."""
        from capmem import results

        wanted = {(slab.key, *unit) for slab in self._plan(settings) for unit in slab.units}
        frame = results.load(folder)
        units = list(zip(frame["point"], frame["trial"], frame["num_pairs"], strict=True))
        return frame[[unit in wanted for unit in units]].reset_index(drop=True), wanted <= set(units)

    def _plan(self, settings: S) -> list[Slab]:
        from capmem.sweeps.plan import plan

        return plan(self.points(settings))


def computed_path(settings: Any, folder: Path) -> Path:
    """Return where the computed table of these settings is kept."""
    return folder / TABLES / f"table-{table_key(settings)}.parquet"


def read_table(path: Path) -> pd.DataFrame:
    """Return a table that was kept whole.

    Raises
    ------
    StoreError
        If it cannot be read.
    """
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise StoreError(f"{path} is damaged, delete it to compute it again: {reason}") from None


def table_key(settings: Any) -> str:
    """Return the key that a computed table is stored under: a hash of the settings, and of what they are of."""
    told = {"study": type(settings).__qualname__, "format": FORMAT, "numerics": NUMERICS}
    text = json.dumps(told | {"settings": dataclasses.asdict(settings)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
