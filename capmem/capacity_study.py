"""The capacity application: N* of every point of a grid, the law along the key dimension, the dimension needed."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from capmem import figures, results
from capmem.capacity_points import asked_of, point_of
from capmem.capacity_report import memories_of, tell
from capmem.capacity_tables import Tables, tables
from capmem.files import replace_file
from capmem.sweeps.present import named_choices

if TYPE_CHECKING:
    import pandas as pd

    from capmem.sweeps.hydra_front import Job


def show(job: Job) -> bool:
    """Run the analysis of a command line: tables, findings, figures, and their numbers in the output folder."""
    from capmem.sweeps.application import run_options
    from capmem.sweeps.folder import check_folder
    from capmem.sweeps.record import save_configuration

    configs = copy.deepcopy(job.configs)
    options = run_options(configs)
    asked = asked_of(configs, options)
    points = list(dict.fromkeys(point_of(config, asked) for config in configs))
    check_folder(job.folder)
    save_configuration(job.folder, job.arguments, job.configs)
    found = named(tables(points, job.folder, options["workers"]))
    print(tell(*found))
    for name, frame in (("capacity", found.capacities), ("required_dim", found.needed)):
        if len(frame):
            replace_file(job.folder / f"{name}.csv", partial(frame.to_csv, index=False))
    drawn = drawings(found.capacities) if options["figures"] else ()
    stems = [figures.save(grid, job.folder / "figures", name)[0].stem for name, grid in drawn]
    print(_places(job.folder, stems, len(found.needed) > 0))
    return True


def named(found: Tables) -> Tables:
    """Return the tables with the fields of each choice in its name, as people read them."""
    return Tables(*(frame if frame.empty else named_choices(frame) for frame in found))


def drawings(table: pd.DataFrame) -> Iterator[tuple[str, figures.Grid]]:
    """Yield the figures of a table by name: a line a map, a panel a rule, and a figure each for what else varies."""
    axes = memories_of(table)
    line = "feature_map" if "feature_map" in axes else axes[0]
    others = [axis for axis in axes if axis != line]
    facet = "write_rule" if "write_rule" in others else next(iter(others), None)
    codes, names = results.group(table, [axis for axis in axes if axis not in (line, facet)])
    for code, row in enumerate(names.itertuples(index=False)):
        label = re.sub(r"[^\w.=+-]+", "_", "".join(f"_{a}={v}" for a, v in zip(names.columns, row, strict=True)))
        part = table[codes == code]
        yield f"capacity_curves{label}", figures.capacity_curves(part, line=line, facet=facet)
        yield f"capacity_per_byte{label}", figures.capacity_per_byte(part, line=line, facet=facet)


def _places(folder: Path, drawn: list[str], needed: bool) -> str:
    lines = [f"In {folder}:", "  capacity.csv        N* of every point, with its settings"]
    lines += ["  required_dim.csv    the least key dimension for the wanted pairs"] if needed else []
    lines += ["  parts/              the same, stored; the same folder again redraws without computing"]
    lines += ["  configuration.yaml  what was run"]
    lines += [f"  figures/{stem}  .png .svg .pdf, and .csv with its numbers" for stem in drawn]
    return "\n".join(lines)
