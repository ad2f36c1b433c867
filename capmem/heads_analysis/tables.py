"""The tables of the analysis: computed one head a task in a pool of processes, kept as Parquet, read back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem._version import FORMAT, NUMERICS
from capmem.files import replace_file
from capmem.heads_analysis.conversion import overview
from capmem.heads_analysis.dimensions import dimensions, spectrum
from capmem.heads_analysis.fit import fits
from capmem.heads_analysis.pairs import gram, token_errors, worst_pairs
from capmem.heads_analysis.recall import recall
from capmem.heads_analysis.rules import write_rules
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.task import Record, Task, analysed, tasks_of
from capmem.studies.sources import TABLES, read_table
from capmem.sweeps.pool import results_of, usable_cores

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 2**20  # bytes hashed at once


class Tables(NamedTuple):
    """What was found, a table for each question; rows carry layer and key head.

    Attributes
    ----------
    heads : DataFrame
        A row a query head: what decides whether it is worth converting.
    capacity, curves : DataFrame
        N* by each criterion, and the curves behind it.
    dimensions, spectrum : DataFrame
        How many directions the keys use.
    fit : DataFrame
        Error of each feature map against the head's own attention.
    rules : DataFrame
        What each write rule gives, all tokens stored.
    pairs, tokens, gram : DataFrame
        Which pairs interfere.
    """

    heads: pd.DataFrame
    capacity: pd.DataFrame
    curves: pd.DataFrame
    dimensions: pd.DataFrame
    spectrum: pd.DataFrame
    fit: pd.DataFrame
    rules: pd.DataFrame
    pairs: pd.DataFrame
    tokens: pd.DataFrame
    gram: pd.DataFrame


STORED = "{name}-{key}.parquet"
COMPUTED = tuple(name for name in Tables._fields if name != "heads")


def analyse(settings: HeadsAnalysis, folder: Path | None = None, workers: int | None = None) -> Tables:
    """Return the tables of the heads that `settings` name; with a folder, those stored there are not computed again.

    Parameters
    ----------
    settings : HeadsAnalysis
        What is asked.
    folder : Path, optional
        Tables are kept in its ``parts``, under a key of the settings and of what the file holds.
    workers : int, optional
        Processes (default: the cores that this one may use); no more than heads.

    Raises
    ------
    ValueError
        For a file that cannot be used, before anything is computed.
    StoreError
        For a stored table that is damaged.
    """
    tasks = tasks_of(settings)
    paths = {} if folder is None else _paths(folder, table_key(settings))
    if paths and all(path.exists() for path in paths.values()):
        return Tables(**{name: read_table(path) for name, path in paths.items()})
    found = _computed(tasks, min(workers or usable_cores(), len(tasks)))
    for name, path in paths.items():
        replace_file(path, partial(getattr(found, name).to_parquet, index=False))
    return found


def stored(settings: HeadsAnalysis, folder: Path) -> Tables | None:
    """Return the tables of these settings, None where `folder` does not hold all of them; nothing is computed.

    Where the file of heads is gone, the newest tables of the folder count.
    """
    try:
        key = table_key(settings)
    except OSError:
        written = sorted((folder / TABLES).glob(STORED.format(name="heads", key="*")), key=lambda p: p.stat().st_mtime)
        key = written[-1].stem.partition("-")[2] if written else ""
    paths = _paths(folder, key)
    if not all(path.exists() for path in paths.values()):
        return None
    return Tables(**{name: read_table(path) for name, path in paths.items()})


def _paths(folder: Path, key: str) -> dict[str, Path]:
    return {name: folder / TABLES / STORED.format(name=name, key=key) for name in Tables._fields}


def one_head(task: Task) -> dict[str, Any]:
    """Return every table's rows of one key head, and the place that they belong to."""
    head = analysed(task)
    settings = task.settings
    curves, capacities = recall(head, settings)
    errors, attended = fits(head, settings)
    found: dict[str, Iterable[Record]] = {
        "capacity": capacities,
        "curves": curves,
        "dimensions": dimensions(head, settings.seed),
        "spectrum": spectrum(head),
        "fit": errors,
        "attended": attended,
        "rules": write_rules(head, settings),
        "pairs": worst_pairs(head, settings),
        "tokens": token_errors(head, settings),
        "gram": gram(head, settings),
    }
    return {"place": (head.layer, head.head)} | {name: list(rows) for name, rows in found.items()}


def table_key(settings: HeadsAnalysis) -> str:
    """Return what tables are stored under: a hash of the settings and of the file's bytes, wherever it lies."""
    told = {"format": FORMAT, "numerics": NUMERICS, "bytes": _digest(Path(str(settings.path)))}
    text = json.dumps(told | dataclasses.asdict(settings) | {"path": None}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _computed(tasks: list[Task], workers: int) -> Tables:
    import pandas as pd

    with results_of(tasks, one_head, workers) as done:
        parts = sorted(done, key=lambda part: part["place"])
    frames = {
        name: pd.DataFrame.from_records([row for part in parts for row in part[name]])
        for name in (*COMPUTED, "attended")
    }
    attended = frames.pop("attended")
    return Tables(heads=overview(frames, attended), **frames)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names."""
    files: Mapping[str, Path] = {"": path}
    if path.is_dir():
        files = {p.relative_to(path).as_posix(): p for p in sorted(path.rglob("*")) if p.is_file()}
    total = hashlib.sha256()
    for name, file in files.items():
        total.update(f"{name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as held:
            while block := held.read(BLOCK):
                total.update(block)
    return total.hexdigest()
