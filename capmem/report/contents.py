"""What a folder holds: its configurations, the runs that filled it, and the tables that they are of."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem import studies
from capmem.report.own import each, named_analysis
from capmem.schema import construct
from capmem.studies import Study
from capmem.studies.settings import labels

if TYPE_CHECKING:
    import pandas as pd

SWEEP = "sweep"


class Configuration(NamedTuple):
    """What one command line asked for.

    Attributes
    ----------
    application : str
        The name of the analysis: "sweep" where it is no other.
    arguments : list of str
        The words as typed.
    common, axes : mapping
        Settings that all points share, and the values of those that differ.
    version : str
        Format and numerics that it was run with.
    """

    application: str
    arguments: list[str]
    common: dict[str, Any]
    axes: dict[str, list[Any]]
    version: str


class StudyTable(NamedTuple):
    """A table of a study that is stored, and what tells it from others of the same command line."""

    study: Study[Any]
    label: str
    frame: pd.DataFrame


def configurations(folder: Path) -> list[Configuration]:
    """Return what the folder's configuration files say, oldest first; those that are no such file are left out."""
    from omegaconf import OmegaConf

    found = []
    for path in sorted(folder.glob("configuration*.yaml"), key=lambda p: (len(p.name), p.name)):
        try:
            told: Any = OmegaConf.to_container(OmegaConf.load(path))
            parts = (told["overrides"], told["configuration"] or {}, told["axes"] or {})
            version = f"format {told['format']}, numerics {told['numerics']}"
        except Exception:  # not ours, or edited: what it says is not known
            continue
        found.append(Configuration(_application({*parts[1], *parts[2]}), list(map(str, parts[0])), *parts[1:], version))
    return found


def _application(keys: set[str]) -> str:
    study = study_of(keys)
    return study.name if study else named_analysis(keys) or SWEEP


def all_studies() -> list[Study[Any]]:
    """Return every analysis that is made with the frame of studies."""
    modules = [importlib.import_module(f"capmem.studies.{m.name}") for m in pkgutil.iter_modules(studies.__path__)
               if not m.name.startswith("_")]  # fmt: skip
    return [module.STUDY for module in modules if hasattr(module, "STUDY")]


def study_of(keys: set[str]) -> Study[Any] | None:
    """Return the analysis whose settings have exactly these names."""
    return next((s for s in all_studies() if {f.name for f in fields(s.settings)} == keys), None)


def study_tables(folder: Path, configuration: Configuration) -> Iterator[StudyTable]:
    """Yield the tables of a study's command line that the folder holds whole; nothing is computed."""
    study = study_of({*configuration.common, *configuration.axes})
    if study is None:
        return
    configs = each(configuration.common, configuration.axes)
    for config, label in zip(configs, labels(configs), strict=True):
        frame = study.source.stored(construct(study.settings, config), folder)
        if frame is not None:
            yield StudyTable(study, label.removeprefix("_"), frame)
