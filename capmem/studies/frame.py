"""The frame of every analysis: read configurations, compute or reuse the table, tell the finding, draw, keep."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from capmem.figures import Grid, save
from capmem.files import replace_file
from capmem.schema import construct
from capmem.studies.prose import wrapped
from capmem.studies.settings import fold, labels
from capmem.studies.sources import Options, Source, Table

if TYPE_CHECKING:
    import pandas as pd

    from capmem.sweeps.hydra_front import Job

S = TypeVar("S")


@dataclass(frozen=True)
class Study(Generic[S]):
    """An analysis: what it may be asked, where its table comes from, what it finds and draws.

    Parameters
    ----------
    name : str
        That of its configuration, ``conf/<name>.yaml``, whose keys are the fields of `settings`.
    settings : type
        A frozen dataclass that checks itself.
    source : Source
        :class:`~capmem.studies.Computed` or :class:`~capmem.studies.Swept`.
    finding : callable
        finding(table) -> the main finding as one or more sentences; every number in it comes from the table.
    figures : mapping
        File name -> function of the table that returns a `Grid`.
    """

    name: str
    settings: type[S]
    source: Source[S]
    finding: Callable[[pd.DataFrame], str]
    figures: Mapping[str, Callable[[pd.DataFrame], Grid]]

    def show(self, job: Job) -> bool:
        """Do the whole analysis for each configuration; return whether all went well.

        Everything is checked before the first table is computed. A key that is a list joins swept values into one
        table; other swept keys give a table, finding and figures each.
        """
        from capmem.sweeps.folder import check_folder
        from capmem.sweeps.record import save_configuration

        options = take_options(job.configs)
        configs = fold(job.configs, self.settings)
        asked = [construct(self.settings, config) for config in configs]
        for settings in asked:
            self.source.check(settings)
        check_folder(job.folder)
        save_configuration(job.folder, job.arguments, configs)
        told = [
            self._show(settings, label, job.folder, options)
            for settings, label in zip(asked, labels(configs), strict=True)
        ]
        print(self._places(job.folder, labels(configs), options.figures))
        return all(told)

    def _show(self, settings: S, label: str, folder: Path, options: Options) -> bool:
        table = self.source.table(settings, folder, options)
        for error in table.failures:
            print(f"failed: {error}", file=sys.stderr)
        replace_file(folder / f"results{label}.csv", lambda path: table.frame.to_csv(path, index=False))
        if nothing_measured(table):
            return False
        told = self.finding(table.frame)
        print(wrapped(f"{label[1:]}: {told}" if label else told) + "\n")
        for name, draw in self.figures.items() if options.figures else ():
            save(draw(table.frame), folder / "figures", f"{name}{label}")
        return not table.failures

    def _places(self, folder: Path, ends: list[str], drawn: bool) -> str:
        lines = [f"In {folder}:", *(f"  results{end}.csv  every row" for end in ends), "  configuration.yaml"]
        if drawn:
            stems = [f"{name}{end}" for end in ends for name in self.figures]
            lines += [f"  figures/{stem}  .png .svg .pdf, and .csv with its numbers" for stem in stems]
        return "\n".join(lines)


def take_options(configs: list[dict[str, Any]]) -> Options:
    """Take out of all configurations what says how to run and show; it must be one for all."""
    from capmem.sweeps.application import run_options

    own = [{key: config.pop(key) for key in Options._fields if key in config} for config in configs]
    return Options(**run_options(own))


def nothing_measured(table: Table) -> bool:
    """Whether the table has no row to tell anything by."""
    frame = table.frame
    return not len(frame) or ("status" in frame and not (frame["status"] == "ok").any())
