"""What a folder holds: its configurations, the runs that filled it, and the tables that they are of."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem import results, store, studies
from capmem.schema import construct
from capmem.studies import Computed, Study, Swept
from capmem.studies.settings import labels
from capmem.studies.sources import TABLES, table_key
from capmem.sweeps.plan import plan

if TYPE_CHECKING:
    import pandas as pd

SWEEP = "sweep"


class Configuration(NamedTuple):
    """What one command line asked for.

    Attributes
    ----------
    application : str
        The name of the analysis: "sweep" where it is no study.
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
        study = study_of({*parts[1], *parts[2]})
        found.append(
            Configuration(study.name if study else SWEEP, list(map(str, parts[0])), parts[1], parts[2], version)
        )
    return found


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
    values = itertools.product(*configuration.axes.values())
    configs = [configuration.common | dict(zip(configuration.axes, chosen, strict=True)) for chosen in values]
    for config, label in zip(configs, labels(configs), strict=True):
        frame = stored(study, construct(study.settings, config), folder)
        if frame is not None:
            yield StudyTable(study, label.removeprefix("_"), frame)


def stored(study: Study[Any], settings: Any, folder: Path) -> pd.DataFrame | None:
    """Return the table of these settings, None where the folder does not hold all of it."""
    import pandas as pd

    source = study.source
    if isinstance(source, Computed):
        path = folder / TABLES / f"table-{table_key(settings)}.parquet"
        return pd.read_parquet(path) if path.is_file() else None
    if not isinstance(source, Swept) or not store.part_files(folder):
        return None
    wanted = {(slab.key, *unit) for slab in plan(source.points(settings)) for unit in slab.units}
    frame = results.load(folder)
    units = list(zip(frame["point"], frame["trial"], frame["num_pairs"], strict=True))
    if not wanted <= set(units):
        return None
    return frame[[unit in wanted for unit in units]].reset_index(drop=True)
