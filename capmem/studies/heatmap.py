"""Any metric over any two axes, of a small sweep of its own or of one that is stored: a heatmap with contours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from capmem import figures, results, store
from capmem.ensembles import EquicorrelatedKeys, SphereValues
from capmem.experiment import DEFAULT, Experiment
from capmem.feature_maps import FEATURE_MAPS
from capmem.memory import LinearMemory
from capmem.schema import check_fields, require, unknown
from capmem.studies import Options, Study, Swept, Table, at_least
from capmem.studies._heatmap_told import ROLES, SHOWN, criterion, finding, shown

if TYPE_CHECKING:
    import pandas as pd

AXES = {*results.CONFIGURATION, "state_bytes"}
RECORDED = ("elapsed_s", "state_bytes")  # what every row has, and is no metric
OWN = ("key_dim", "num_pairs", "feature_maps", "correlations", "value_dim", "trials", "seed")  # of a sweep of its own


@dataclass(frozen=True)
class Heatmap:
    """What is drawn, and of which sweep.

    Parameters
    ----------
    folder : str, optional
        A sweep that is stored, which is drawn whole: nothing is computed, and all below `scale` must be left out.
    metric : str
        The colour: a metric, or any other column of numbers.
    x, y, facet, facet_row : str
        Columns of the table; the facets can be None.
    threshold : float, optional
        Of the metric, for N* or a line; None: no line.
    scale : {"auto", "linear", "log"}
        Of colour; see :func:`capmem.figures.heatmap`.
    key_dim, num_pairs : tuple of int
        d and N of the sweep.
    feature_maps : tuple of str
        Its maps.
    correlations : tuple of float
        Its key correlations; unit keys times sqrt(d).
    value_dim, trials, seed : int
        v, repetitions, and where draws begin.
    """

    folder: str | None = None
    metric: str = "scale_optimal_error"
    x: str = "key_dim"
    y: str = "num_pairs"
    facet: str | None = "feature_map"
    facet_row: str | None = None
    threshold: float | None = 0.5
    scale: Literal["auto", "linear", "log"] = "auto"
    key_dim: tuple[int, ...] = (16, 32, 64, 128)
    num_pairs: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512)
    feature_maps: tuple[str, ...] = ("identity", "relu", "elu_plus_one", "dpfp")
    correlations: tuple[float, ...] = (0.0,)
    value_dim: int = 64
    trials: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "num_pairs", "key_dim", "value_dim", "trials")
        at_least(self, 0, "seed")
        for name in ("feature_maps", "correlations"):
            require(bool(getattr(self, name)), name, [], "a list that is not empty")
        for name in self.feature_maps:
            FEATURE_MAPS.build(name, "feature_maps")
        used = [getattr(self, role) for role in ROLES if getattr(self, role) is not None]
        require(len(set(used)) == len(used), ", ".join(ROLES), used, "different columns")
        limit = self.threshold
        require(limit is None or math.isfinite(limit), "threshold", limit, "a finite number, or null")
        given = [f.name for f in fields(self) if f.name in OWN and getattr(self, f.name) != f.default]
        if self.folder is not None and given:
            raise ValueError(f"{', '.join(given)} cannot be set beside folder={self.folder}: that sweep is drawn whole")


def points(settings: Heatmap) -> Iterator[Experiment]:
    """Yield an experiment for each map, correlation and key dimension."""
    s = settings
    for name in dict.fromkeys(s.feature_maps):
        for correlation in sorted(set(s.correlations)):
            for d in sorted(set(s.key_dim)):
                yield Experiment(
                    LinearMemory(FEATURE_MAPS.build(name), key_scale="sqrt_dim"), EquicorrelatedKeys(correlation),
                    SphereValues(), d, s.value_dim, s.num_pairs, trials=s.trials, seed=s.seed,
                )  # fmt: skip


@dataclass(frozen=True)
class SweptOrStored:
    """The table of a folder that is named, or else of a sweep; how it is drawn joins every row, as ``shown_*``."""

    swept: Swept[Heatmap]

    def check(self, settings: Heatmap) -> None:
        """Raise ValueError for a folder or column that does not exist, an axis too many, or an invalid sweep."""
        if settings.folder is None:
            self.swept.check(settings)
            frame = planned(settings)
        else:
            frame = stored(settings.folder)
        numbers = list(frame.select_dtypes("number").columns)
        if settings.metric not in numbers:
            raise ValueError(unknown("metric", settings.metric, numbers))
        axes = [c for c in map(str, frame.columns) if c.partition(".")[0] in AXES]
        for role in ROLES:
            column = getattr(settings, role)
            if column is not None and column not in axes:
                raise ValueError(unknown(role, column, axes))
        facet_row(frame, settings)

    def table(self, settings: Heatmap, folder: Path, options: Options) -> Table:
        """Return the rows to draw, computing only what neither folder holds."""
        from capmem.sweeps.present import named_choices

        if settings.folder is not None:
            return Table(as_shown(stored(settings.folder), settings))
        found = self.swept.table(settings, folder, options)
        return found._replace(frame=as_shown(named_choices(found.frame), settings))

    def stored(self, settings: Heatmap, folder: Path) -> pd.DataFrame | None:
        """Return the rows to draw, if the folder that has them holds all of them."""
        from capmem.sweeps.present import named_choices

        if settings.folder is not None:
            there = bool(store.part_files(settings.folder))
            return as_shown(stored(settings.folder), settings) if there else None
        found = self.swept.stored(settings, folder)
        return None if found is None else as_shown(named_choices(found), settings)


def as_shown(frame: pd.DataFrame, settings: Heatmap) -> pd.DataFrame:
    """Return the rows with how they are to be drawn, as columns ``shown_*``."""
    told = {name: getattr(settings, name) for name in SHOWN} | {"facet_row": facet_row(frame, settings)}
    return frame.assign(**{f"shown_{name}": value for name, value in told.items()})


def stored(folder: str) -> pd.DataFrame:
    """Return the table of a sweep's folder, the fields of each choice in its name.

    Raises
    ------
    ValueError
        If there is no such folder, or no sweep in it.
    """
    from capmem.sweeps.present import named_choices

    require(Path(folder).is_dir(), "folder", folder, "the folder of a sweep")
    return named_choices(results.load(folder))


def planned(settings: Heatmap) -> pd.DataFrame:
    """Return a row for each point and N that the sweep will have, the measured columns empty."""
    import pandas as pd

    from capmem.sweeps.present import named_choices

    measured = [*DEFAULT, *(f"theory_{name}" for name in DEFAULT), *RECORDED]
    rows = [p.columns() | {"num_pairs": n} | dict.fromkeys(measured, math.nan) for p in points(settings)
            for n in p.num_pairs]  # fmt: skip
    return named_choices(pd.DataFrame(rows))


def facet_row(frame: pd.DataFrame, settings: Heatmap) -> str | None:
    """Return the column of the rows of panels: the one asked for, or a last axis that has no place yet.

    Raises
    ------
    ValueError
        If cells would average over an axis all the same.
    """
    from capmem.sweeps.present import axes_of

    roles = [getattr(settings, role) for role in ROLES if getattr(settings, role) is not None]
    mixed = results.mixed(results.measured(frame), roles)
    left = [name for name in (*axes_of(frame), "num_pairs") if name in mixed] or mixed
    if len(left) == 1 and settings.facet_row is None:
        return left[0]
    if left:
        raise ValueError(f"a cell would average over different {', '.join(left)}: make it x, y, facet or facet_row")
    return settings.facet_row


def draw(table: pd.DataFrame) -> figures.Grid:
    """Draw the heatmap that was asked for."""
    told = shown(table)
    frame = table.drop(columns=[f"shown_{name}" for name in SHOWN])
    roles = {role: told[role] for role in ROLES}
    grid: figures.Grid = figures.heatmap(
        frame, value=told["metric"], **roles, contours=criterion(table), scale=told["scale"]
    )
    return grid


STUDY = Study("heatmap", Heatmap, SweptOrStored(Swept(points)), finding, {"heatmap": draw})
