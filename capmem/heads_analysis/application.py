"""The heads application: analyse what the command line names, tell it, draw it, and keep every number."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem import figures
from capmem.files import replace_file
from capmem.heads_analysis.drawings import drawings, shown_head
from capmem.heads_analysis.listing import listing
from capmem.heads_analysis.page import page
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.tables import Tables, analyse
from capmem.heads_analysis.task import opened, tasks_of
from capmem.heads_analysis.told import sentences
from capmem.schema import coerce, construct
from capmem.studies.prose import wrapped
from capmem.studies.settings import fold, labels

if TYPE_CHECKING:
    from capmem.sweeps.hydra_front import Job


class Showing(NamedTuple):
    """How it is run and shown: part of no table."""

    workers: int | None
    figures: bool
    head: tuple[int, ...] | None


def show(job: Job) -> bool:
    """Analyse each configuration of a command line; everything is checked before the first table is computed."""
    from capmem.sweeps.folder import check_folder
    from capmem.sweeps.record import save_configuration

    configs = copy.deepcopy(job.configs)
    how = _showing(configs)
    configs = fold(configs, HeadsAnalysis)
    asked = [construct(HeadsAnalysis, config) for config in configs]
    for settings in asked:
        shown_head([(task.layer, task.head) for task in tasks_of(settings)], how.head)
    check_folder(job.folder)
    save_configuration(job.folder, job.arguments, configs)
    for settings, label in zip(asked, labels(configs), strict=True):
        _show(settings, label, job.folder, how)
    return True


def _show(settings: HeadsAnalysis, label: str, folder: Path, how: Showing) -> None:
    tables = analyse(settings, folder, how.workers)
    head = shown_head(list(zip(tables.heads["layer"], tables.heads["head"], strict=True)), how.head, tables.heads)
    lead, told = f"{opened(settings)}\n", sentences(tables)
    print(lead, *map(wrapped, told), "", listing(tables.heads), "", sep="\n")
    for name, frame in tables._asdict().items():
        replace_file(folder / "tables" / f"{name}{label}.csv", partial(frame.to_csv, index=False))
    drawn = []
    for name, grid in drawings(tables, head).items() if how.figures else ():
        figures.save(grid, folder / "figures", f"{name}{label}")
        drawn.append(f"{name}{label}")
    if drawn:
        text = page(str(settings.path), [*lead.splitlines(), *told], drawn)
        replace_file(folder / f"index{label}.html", lambda path: path.write_text(text, encoding="utf-8"))
    print(_places(folder, label, tables, drawn, head))


def _showing(configs: list[dict[str, Any]]) -> Showing:
    """Take out of all configurations what says how to run and show; it must be one for all."""
    from capmem.sweeps.application import run_options

    options = run_options(configs)
    heads = [coerce(config.pop("show", None), tuple[int, ...] | None, "show") for config in configs]
    if len(set(heads)) > 1 or (heads[0] is not None and len(heads[0]) != 2):
        raise ValueError(f"show must be one [layer, key head], or null, got {heads[0] if len(heads) == 1 else heads}")
    return Showing(options.get("workers"), bool(options.get("figures", True)), heads[0])


def _places(folder: Path, label: str, tables: Tables, drawn: list[str], head: tuple[int, int]) -> str:
    lines = [f"In {folder}:"]
    lines += [f"  tables/{name}{label}.csv  {len(frame)} rows" for name, frame in tables._asdict().items()]
    lines += ["  parts/  the same as Parquet; the same folder again computes nothing"]
    if drawn:
        lines += [f"  index{label}.html  the answers with all figures; those of one head show layer {head[0]}, "]
        lines[-1] += f"key head {head[1]} (show=[layer,head] for another)"
        lines += [f"  figures/{name}  .png .svg .pdf, and .csv with its numbers" for name in drawn]
    return "\n".join(lines)
