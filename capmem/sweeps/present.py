"""What a person sees at the end of a sweep: the table of capacities, the figures, and where everything is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem import capacity, figures, results
from capmem.sweeps.engine import SweepReport

if TYPE_CHECKING:
    import pandas as pd

CRITERION = capacity.Criterion("scale_optimal_error", 0.5)
LINE_ORDER = ("keys.correlation", "key_center", "feature_center", "query_cosine", "write_rule", "readout")
FACET_ORDER = ("feature_map", "keys.name", "keys", "values")


def finish(report: SweepReport, draw: bool) -> None:
    """Print the summary of a sweep, write results.csv, and draw the figures unless told not to."""
    frame = results.load(report.folder)
    _replace_csv(frame, report.folder / "results.csv")
    print(_counts(report))
    for configuration, error in report.failed:
        print(f"failed: {_short(configuration)}: {error}", file=sys.stderr)
    ok = frame[frame["status"] == "ok"]
    if len(ok):
        print(_capacities(ok), end="\n\n")
    drawn = list(_figures(frame, report.folder / "figures")) if draw and len(ok) else []
    print(_places(report.folder, drawn))


def axes_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns that the sweep varies, without those that only follow from the others."""
    axes = [name for name in results.varying(frame) if name != "num_pairs"]
    for name in sorted(axes, key=_place_to_drop):
        others = [other for other in axes if other != name]
        if others and (frame.groupby(others, dropna=False)[name].nunique(dropna=False) == 1).all():
            axes = others
    return axes


def _place_to_drop(name: str) -> int:
    """Drop digests and widths first, then fields of a choice, then the second of two paired names."""
    if name.endswith((".sha256", ".path")) or name == "feature_dim":
        return 0
    return 1 if name.startswith("values") else 2 if "." in name and not name.startswith("keys") else 3


def _counts(report: SweepReport) -> str:
    found = f", {report.found} of them stored before" if report.found else ""
    failed = f"; {len(report.failed)} slabs FAILED" if report.failed else ""
    return f"\n{report.points} points, {report.units} measurements{found}{failed}\n"


def _capacities(frame: pd.DataFrame) -> str:
    axes = axes_of(frame)
    column = "key_dim" if "key_dim" in axes or not axes else axes[-1]
    rows = [name for name in axes if name != column] or ["feature_map"]
    return capacity.summary_table(capacity.from_table(frame, CRITERION, [*rows, column]), rows, column)


def _figures(frame: pd.DataFrame, folder: Path) -> Iterator[Path]:
    """Draw what the axes of the sweep allow; every further axis gets figures of its own."""
    axes, several = axes_of(frame), frame["num_pairs"].nunique() > 1
    if not several:
        return
    line = _first(LINE_ORDER, axes)
    facet = _first(FACET_ORDER, [a for a in axes if a != line])
    others = [a for a in axes if a not in (line, facet)]
    row = "key_dim" if "key_dim" in others else next(iter(others), None)
    for label, part in _split(frame, [a for a in others if a != row]):
        curves = figures.interference_curves(part, line=line, facet=facet, facet_row=row)
        yield from figures.save(curves, folder, f"interference_curves{label}")
        if row is not None:
            grid = figures.heatmap(part, x=row, facet=facet, facet_row=line)
            yield from figures.save(grid, folder, f"heatmap{label}")


def _first(order: tuple[str, ...], axes: list[str]) -> str | None:
    return next((name for name in (*order, *axes) if name in axes), None)


def _split(frame: pd.DataFrame, axes: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    if not axes:
        yield "", frame
        return
    for values, part in frame.groupby(axes, dropna=False):
        yield "_" + "_".join(f"{a}={v}" for a, v in zip(axes, values, strict=True)).replace("/", "-"), part


def _replace_csv(frame: pd.DataFrame, path: Path) -> None:
    partial = path.with_suffix(".partial")
    frame.drop(columns="traceback", errors="ignore").to_csv(partial, index=False)
    os.replace(partial, path)


def _places(folder: Path, drawn: list[Path]) -> str:
    lines = [f"In {folder}:", "  results.csv         every measurement, a row each"]
    lines += ["  parts/              the same as Parquet; the same folder again resumes"]
    lines += ["  configuration.yaml  what was run"]
    stems = sorted({path.stem for path in drawn})
    lines += [f"  figures/{stem}  .png .svg .pdf, and .csv with its numbers" for stem in stems]
    return "\n".join(lines)


def _short(configuration: dict[str, Any]) -> str:
    names = ("feature_map", "write_rule", "keys", "keys.correlation", "key_dim", "num_pairs", "trial")
    return ", ".join(f"{n}={configuration[n]}" for n in names if configuration.get(n) is not None)
