"""The sections of a page: for each table its findings, its doubts, its figures and its numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from capmem import results, store
from capmem.capacity import Criterion
from capmem.report.contents import SWEEP, Configuration, StudyTable, study_tables
from capmem.report.own import ANALYSES, each
from capmem.report.section import Drawing, Section, alone, drawn
from capmem.report.swept import agreement, capacities, doubts, overview
from capmem.sweeps.present import draw_ages, named_choices
from capmem.sweeps.present import draw_all as sweep_figures

if TYPE_CHECKING:
    import pandas as pd

DESCRIBED = {
    "interference_curves": "Scale-optimal error against stored pairs, measured and by closed form",
    "error_by_age": "Scale-optimal error against age, by the number of stored pairs",
    "heatmap": "Scale-optimal error by stored pairs and a second axis, with the contour of N*",
}

MOST_RUNS = 5  # named in an error


def sections(folder: Path, asked: list[Configuration], criterion: Criterion) -> list[Section]:
    """Return the sections of a folder, drawn anew from what is stored.

    Raises
    ------
    StoreError
        If it holds no table.
    """
    found = [*map(_of_study, _tables(folder, asked)), *_of_others(folder, asked)]
    if found:
        return found
    if store.part_files(folder) and (not asked or any(c.application == SWEEP for c in asked)):
        return [_of_sweep(folder, criterion)]
    told = f"{folder} holds no table to report: neither a sweep's parts nor a whole table of an analysis"
    raise store.StoreError(told + _runs_below(folder))


def _runs_below(folder: Path) -> str:
    """Return the latest runs that lie in a folder, as the end of an error; nothing if there are none."""
    runs = sorted({path.parent for path in folder.glob("*/configuration*.yaml")})
    more = f"{len(runs) - MOST_RUNS} more, " if len(runs) > MOST_RUNS else ""
    return f"; it holds runs, give one of them: {more}{', '.join(map(str, runs[-MOST_RUNS:]))}" if runs else ""


def _tables(folder: Path, asked: list[Configuration]) -> list[StudyTable]:
    """Return the tables of studies, each once."""
    tables: dict[tuple[str, str, int], StudyTable] = {}
    for number, configuration in enumerate(asked):
        for table in study_tables(folder, configuration):
            same = [
                key for key, other in tables.items() if other.study is table.study and other.frame.equals(table.frame)
            ]
            tables.setdefault(same[0] if same else (table.study.name, table.label, number), table)
    return list(tables.values())


def _of_others(folder: Path, asked: list[Configuration]) -> Iterator[Section]:
    """Yield the sections of the analyses that are no studies of the frame."""
    for name, analysis in ANALYSES.items():
        configs = [config for c in asked if c.application == name for config in each(c.common, c.axes)]
        if configs:
            yield from analysis.sections(folder, configs)


def _of_study(table: StudyTable) -> Section:
    study, frame = table.study, table.frame
    title = f"{study.name.replace('_', ' ').capitalize()}{': ' if table.label else ''}{table.label}"
    if "status" in frame and not (frame["status"] == "ok").any():
        return Section(title, frame, doubts=["Nothing was measured."])
    failed = int((frame["status"] == "failed").sum()) if "status" in frame else 0
    doubted = [f"{failed} of {len(frame)} measurements failed, and are in no mean."] if failed else []
    figures = drawn((name, draw(frame)) for name, draw in study.figures.items())
    return Section(title, frame, [study.finding(frame)], doubted, [], figures)


def _of_sweep(folder: Path, criterion: Criterion) -> Section:
    frame = results.load(folder)
    ok = named_choices(frame[frame["status"] == "ok"])
    title = "Results of the sweep"
    doubted = list(doubts(folder, frame))
    if ok.empty:
        return Section(title, frame, overview(frame), doubted)
    held = capacities(ok, criterion)
    near = agreement(ok)
    told = [*overview(frame), *held.findings, *near.findings]
    listings = [listing for listing in (held.listing, near.listing) if listing is not None]
    figures = list(_sweep_drawings(named_choices(frame), criterion, folder))
    return Section(title, frame, told, [*doubted, *held.doubts], listings, figures)


def _sweep_drawings(frame: pd.DataFrame, criterion: Criterion, folder: Path) -> Iterator[Drawing]:
    import pandas as pd

    if criterion.metric not in frame or "scale_optimal_error" not in frame:
        return
    with tempfile.TemporaryDirectory() as scratch:
        for path in (*sweep_figures(frame, Path(scratch), criterion), *draw_ages(folder, Path(scratch))):
            if path.suffix == ".svg":
                kind = next((told for stem, told in DESCRIBED.items() if path.stem.startswith(stem)), path.stem)
                yield Drawing(path.stem, kind, alone(path.read_bytes()), pd.read_csv(path.with_suffix(".csv")))
