"""What a person sees at the end of a sweep: a table, what is not to be trusted, figures, and where everything is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from capmem import capacity, figures, results, tables
from capmem.files import replace_file
from capmem.sweeps.engine import Failure, SweepReport
from capmem.sweeps.points import GROUPS

if TYPE_CHECKING:
    import pandas as pd

LINE_ORDER = ("keys.correlation", "key_center", "feature_center", "query_cosine", "write_rule", "readout", "keys")
FACET_ORDER = ("feature_map", "keys.name", "keys", "values")
MOST_FAILURES = 20  # that are told one by one
MOST_LINES = 120  # of the table that is printed
MOST_FIGURES = 8  # of each kind, where further axes ask for one each
DIGEST = 8  # letters of a SHA-256 that are shown


def finish(report: SweepReport, draw: bool, criterion: capacity.Criterion) -> None:
    """Print the summary of a sweep, write results.csv, and draw the figures unless told not to."""
    frame = results.load(report.folder)
    told = frame.drop(columns="traceback", errors="ignore")
    replace_file(report.folder / "results.csv", lambda path: _write_csv(told, path))
    print(_counts(report, frame))
    print("".join(f"{line}\n" for line in failures_told(report.failed, report.points)), end="", file=sys.stderr)
    ok = frame[frame["status"] == "ok"]
    if len(ok):
        print(_cut(_table(named_choices(ok), criterion)), end="\n\n")
    print("".join(f"{line}\n\n" for line in doubts(ok)), end="")
    drawn = _drawn(report, named_choices(frame), criterion) if draw and len(ok) else []
    print(_places(report.folder, drawn))


def axes_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns that the sweep varies, without those that only follow from the others."""
    axes = [name for name in results.varying(frame) if name != "num_pairs"]
    for name in sorted([name for name in axes if name != "memory"], key=_place_to_drop):
        others = [other for other in axes if other != name]
        if others and (frame.groupby(others, dropna=False)[name].nunique(dropna=False) == 1).all():
            axes = others
    return axes


def _place_to_drop(name: str) -> int:
    """Drop digests and widths first, then fields of a choice, then the second of two paired names."""
    if name.endswith((".sha256", ".path")) or name == "feature_dim":
        return 0
    if name in GROUPS:
        return 4
    return 1 if name.startswith("values") else 2 if "." in name and not name.startswith("keys") else 3


def named_choices(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the fields of each group that varies put into its name: "dpfp, nu=2"."""
    frame = frame.assign(**{c: frame[c].str[:DIGEST] for c in frame.columns if c.endswith(".sha256")})
    for group in GROUPS:
        if group not in frame.columns or frame[group].nunique(dropna=False) < 2:
            continue
        fields = sorted(str(c) for c in frame.columns if str(c).startswith(f"{group}."))
        codes, table = results.group(frame, [group, *fields])
        labels = [figures.describe(row, table) for row in table.itertuples(index=False)]
        frame = frame.assign(**{group: [labels[code] for code in codes]}).drop(columns=fields)
    return frame


def _counts(report: SweepReport, frame: pd.DataFrame) -> str:
    found = f", {report.found} of them stored before" if report.found else ""
    skipped = frame[frame["status"] == "skipped"]
    told = f"; {len(skipped)} skipped: {skipped['reason'].iloc[0]}" if len(skipped) else ""
    points = f"{report.points} point{'s' * (report.points != 1)}"
    return f"\n{points}, {report.units} measurements{found}{told}\n"


def _table(frame: pd.DataFrame, criterion: capacity.Criterion) -> str:
    axes = axes_of(frame)
    told = [name for name in ("feature_map", "memory") if frame[name].notna().any()]
    if frame["num_pairs"].nunique() == 1:
        return tables.means_table(frame, axes or told[:1])
    column = "key_dim" if "key_dim" in axes or len(axes) < 2 else axes[-1]
    rows = [name for name in axes if name != column] or told[:1]
    return tables.summary_table(capacity.from_table(frame, criterion, [*rows, column]), rows, column)


def _cut(table: str) -> str:
    lines = table.splitlines()
    more = len(lines) - MOST_LINES
    return table if more <= 0 else "\n".join([*lines[:MOST_LINES], f"... and {more} more lines, see results.csv"])


def doubts(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each kind of number that is not to be trusted."""
    named = {
        "nonpositive_denominators": "denominators of the normalised read-out were not positive",
        "nonfinite_retrieved": "retrieved values were not finite",
    }
    for column, told in named.items():
        bad = frame[frame[column] > 0] if column in frame else frame[:0]
        if len(bad):
            count, total = int(bad[column].sum()), int(bad["num_queries"].sum())
            maps = ", ".join(sorted(set(bad["feature_map"].dropna())))
            yield f"Not to be trusted: {count} of {total} {told}, in {len(bad)} measurements ({maps})."
    if "num_scored" in frame and (frame["num_scored"] == 0).any():
        yield f"Not to be trusted: nothing could be scored in {int((frame['num_scored'] == 0).sum())} measurements."
    if "warning" in frame and frame["warning"].notna().any():
        warned = frame["warning"].dropna()
        for told in sorted(set(warned)):
            yield f"Not to be trusted: in {int((warned == told).sum())} measurements, {told}"


def _drawn(report: SweepReport, frame: pd.DataFrame, criterion: capacity.Criterion) -> list[Path]:
    folder = report.folder / "figures"
    there = sorted(folder.glob("*.png")) if folder.is_dir() else []
    if there and not report.computed:  # nothing new to show
        return there
    print("drawing figures", file=sys.stderr)
    return [*draw_all(frame, folder, criterion), *draw_ages(report.folder, folder)]


def draw_all(frame: pd.DataFrame, folder: Path, criterion: capacity.Criterion) -> Iterator[Path]:
    """Draw what the axes of the sweep allow; every further axis gets figures of its own."""
    axes, several = axes_of(frame), frame["num_pairs"].nunique() > 1
    if not several:
        return
    line = _first(LINE_ORDER, axes)
    facet = _first(FACET_ORDER, [a for a in axes if a != line])
    others = [a for a in axes if a not in (line, facet)]
    row = "key_dim" if "key_dim" in others else next(iter(others), None)
    parts = list(_split(frame, [a for a in others if a != row]))
    if len(parts) > MOST_FIGURES:
        print(
            f"Drawing the first {MOST_FIGURES} of {len(parts)} figures of each kind; capmem.figures draws any other\n"
        )
    for label, part in parts[:MOST_FIGURES]:
        curves = figures.interference_curves(part, line=line, facet=facet, facet_row=row)
        yield from figures.save(curves, folder, f"interference_curves{label}")
        if row is not None:
            grid = figures.heatmap(part, x=row, facet=facet, facet_row=line, contours=criterion)
            yield from figures.save(grid, folder, f"heatmap{label}")


def draw_ages(results_in: Path, folder: Path) -> Iterator[Path]:
    """Draw error against age, where the sweep has rows by age: a line for each N, a panel for each map."""
    frame = results.load(results_in)
    if "age_bins" not in frame or not (frame["age_bins"] > 0).any():
        return
    frame = named_choices(results.load(results_in, by_age=True))
    axes = axes_of(frame.drop(columns=["age_bin", "age_low", "age_high"]))
    facet = _first(FACET_ORDER, axes)
    others = [a for a in axes if a != facet]
    row = _first(("write_rule",), others)
    for label, part in list(_split(frame, [a for a in others if a != row]))[:MOST_FIGURES]:
        curves = figures.age_curves(part, facet=facet, facet_row=row)
        yield from figures.save(curves, folder, f"error_by_age{label}")


def _first(order: tuple[str, ...], axes: list[str]) -> str | None:
    return next((name for name in (*order, *axes) if name in axes), None)


def _split(frame: pd.DataFrame, axes: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    if not axes:
        yield "", frame
        return
    for values, part in frame.groupby(axes, dropna=False):
        label = "_".join(f"{a}={v}" for a, v in zip(axes, values, strict=True))
        yield "_" + re.sub(r"[^\w.=+-]+", "_", label), part


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table by Arrow, ten times as fast as pandas does."""
    import pyarrow as pa
    from pyarrow import csv

    mixed = {name: "string" for name, kind in frame.dtypes.items() if kind.kind == "O" and kind.name == "object"}
    table = pa.Table.from_pandas(frame.astype(mixed), preserve_index=False)
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="needed"))


def _places(folder: Path, drawn: list[Path]) -> str:
    lines = [f"In {folder}:", "  results.csv         every measurement, a row each"]
    lines += ["  parts/              the same as Parquet; the same folder again resumes"]
    lines += ["  configuration.yaml  what was run"]
    stems = sorted({path.stem for path in drawn})
    lines += [f"  figures/{stem}  .png .svg .pdf, and .csv with its numbers" for stem in stems]
    return "\n".join(lines)


def failures_told(failed: list[Failure], slabs: int) -> Iterator[str]:
    """Yield how many slabs failed, and for each its overrides and the first line of its error."""
    if not failed:
        return
    yield f"{len(failed)} of {slabs} slabs failed:"
    for failure in failed[:MOST_FAILURES]:
        yield f"  {failure}"
    if len(failed) > MOST_FAILURES:
        yield f"  and {len(failed) - MOST_FAILURES} more: rows of status failed in results.csv, with their errors"
    yield "the same command, in the same folder and with retry_failed=true, runs just these again"
