"""The sections of a page: for each table its findings, its doubts, its figures and its numbers."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from capmem import figures, results, store
from capmem.capacity import Criterion
from capmem.report.contents import SWEEP, Configuration, StudyTable, study_tables
from capmem.report.swept import Listing, agreement, capacities, doubts, overview
from capmem.sweeps.present import draw_all as sweep_figures
from capmem.sweeps.present import named_choices

if TYPE_CHECKING:
    import pandas as pd

DESCRIBED = {
    "interference_curves": "Scale-optimal error against stored pairs, measured and by closed form",
    "heatmap": "Scale-optimal error by stored pairs and a second axis, with the contour of N*",
}


class Drawing(NamedTuple):
    """A figure: its file name's stem, what it shows, its SVG, and the table of the numbers in it."""

    name: str
    shows: str
    svg: bytes
    numbers: pd.DataFrame


class Section(NamedTuple):
    """What is told of one table."""

    title: str
    findings: list[str]
    doubts: list[str]
    listings: list[Listing]
    drawings: list[Drawing]
    frame: pd.DataFrame


def sections(folder: Path, asked: list[Configuration], criterion: Criterion) -> list[Section]:
    """Return the sections of a folder, drawn anew from what is stored.

    Raises
    ------
    StoreError
        If it holds no table.
    """
    tables: dict[tuple[str, str, int], StudyTable] = {}
    for number, configuration in enumerate(asked):
        for table in study_tables(folder, configuration):
            same = [
                key for key, other in tables.items() if other.study is table.study and other.frame.equals(table.frame)
            ]
            tables.setdefault(same[0] if same else (table.study.name, table.label, number), table)
    if tables:
        return [_of_study(table) for table in tables.values()]
    if store.part_files(folder) and (not asked or any(c.application == SWEEP for c in asked)):
        return [_of_sweep(folder, criterion)]
    raise store.StoreError(
        f"{folder} holds no table to report: neither a sweep's parts nor a whole table of an analysis"
    )


def _of_study(table: StudyTable) -> Section:
    study, frame = table.study, table.frame
    title = f"{study.name.replace('_', ' ').capitalize()}{': ' if table.label else ''}{table.label}"
    if "status" in frame and not (frame["status"] == "ok").any():
        return Section(title, [], ["Nothing was measured."], [], [], frame)
    told = [study.finding(frame)]
    failed = int((frame["status"] == "failed").sum()) if "status" in frame else 0
    doubted = [f"{failed} of {len(frame)} measurements failed, and are in no mean."] if failed else []
    drawn = [_drawing(draw(frame), name) for name, draw in study.figures.items()]
    return Section(title, told, doubted, [], drawn, frame)


def _drawing(grid: figures.Grid, name: str) -> Drawing:
    axes = [ax for ax in grid.axes.flat if ax.get_visible()]
    names = [[(ax.get_ylabel(), ax.get_xlabel()) for ax in axes], [ax.get_title() for ax in axes]]
    pairs = dict.fromkeys(f"{y} against {x}" for y, x in names[0] if x and y)
    titles = ", ".join(dict.fromkeys(str(title) for title in names[1] if title))
    shows = "; ".join(pairs) + (f"; panels: {titles}" if titles else "")
    return Drawing(name, _plain(shows), _alone(_svg(grid)), grid.table)


def _svg(grid: figures.Grid) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "capmem"}):
        grid.figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def _of_sweep(folder: Path, criterion: Criterion) -> Section:
    frame = results.load(folder)
    ok = named_choices(frame[frame["status"] == "ok"])
    title = "Results of the sweep"
    doubted = list(doubts(folder, frame))
    if ok.empty:
        return Section(title, overview(frame), doubted, [], [], frame)
    held = capacities(ok, criterion)
    near = agreement(ok)
    told = [*overview(frame), *held.findings, *near.findings]
    listings = [listing for listing in (held.listing, near.listing) if listing is not None]
    drawn = list(_sweep_drawings(named_choices(frame), criterion))
    return Section(title, told, [*doubted, *held.doubts], listings, drawn, frame)


def _sweep_drawings(frame: pd.DataFrame, criterion: Criterion) -> Iterator[Drawing]:
    import pandas as pd

    if criterion.metric not in frame or "scale_optimal_error" not in frame:
        return
    with tempfile.TemporaryDirectory() as scratch:
        for path in sweep_figures(frame, Path(scratch), criterion):
            if path.suffix == ".svg":
                kind = next((told for stem, told in DESCRIBED.items() if path.stem.startswith(stem)), path.stem)
                yield Drawing(path.stem, kind, _alone(path.read_bytes()), pd.read_csv(path.with_suffix(".csv")))


def _alone(svg: bytes) -> bytes:
    """Return an SVG without its document type and metadata, which name addresses."""
    root = svg[svg.index(b"<svg") :]
    return re.sub(rb"<metadata>.*?</metadata>\s*", b"", root, flags=re.DOTALL)


def _plain(text: str) -> str:
    """Return a label without line breaks and without the marks of mathematics."""
    return " ".join(text.replace("$", "").replace("\\", "").split())
