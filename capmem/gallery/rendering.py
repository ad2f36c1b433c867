"""One entry rendered: its command is run in a folder of its own, which a second run reuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from capmem.files import replace_file
from capmem.gallery.entries import Entry

OUTPUT = "printed.txt"  # beside the work folder of an entry: what it printed, once all went well


@dataclass(frozen=True)
class Rendered:
    """An entry, its finding, and where its figures are.

    Parameters
    ----------
    entry : Entry
    finding : str
        On one line.
    figures : tuple of Path
        A PNG for each picture of the entry, in its order.
    """

    entry: Entry
    finding: str
    figures: tuple[Path, ...]

    def pictures(self) -> Iterator[tuple[str, Path]]:
        """Yield the name of each picture in the gallery, and its figure."""
        yield from zip(self.entry.pictures, self.figures, strict=True)


def render(entry: Entry, work: Path, root: Path) -> Rendered:
    """Run the command of `entry`, started in `root`, with its results in ``work/<name>``.

    Raises
    ------
    RuntimeError
        If it fails, or if the finding or a figure is not there.
    """
    folder, printed = work / entry.name, _printed(entry, work)
    printed.unlink(missing_ok=True)  # what an earlier version printed is not what this one finds
    outdated = folder / "figures" if entry.resumes else folder  # a sweep with nothing new draws nothing new
    shutil.rmtree(outdated, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", f"analyses.{entry.analysis}", *entry.overrides, f"hydra.sweep.dir={folder}"]
    run = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True)  # its progress stays in sight
    if run.returncode not in entry.fine:
        raise RuntimeError(f"{entry.command} ended with exit code {run.returncode}")
    found = _read(entry, run.stdout, folder)
    replace_file(printed, lambda path: path.write_text(run.stdout, encoding="utf-8"))
    return found


def rendered(entry: Entry, work: Path) -> Rendered | None:
    """Return what an earlier :func:`render` left, or None where not all of it is there."""
    printed = _printed(entry, work)
    try:
        return _read(entry, printed.read_text(encoding="utf-8"), work / entry.name)
    except (FileNotFoundError, RuntimeError):
        return None


def _printed(entry: Entry, work: Path) -> Path:
    return work / f"{entry.name}.{OUTPUT}"


def _read(entry: Entry, output: str, folder: Path) -> Rendered:
    try:
        finding = entry.told(output, folder)
    except ValueError as error:
        raise RuntimeError(f"{entry.command}: {error}") from None
    found = tuple(_figure(folder, figure) for figure in entry.pictures.values())
    return Rendered(entry, finding, found)


def _figure(folder: Path, name: str) -> Path:
    for path in (folder / "figures" / f"{name}.png", folder / f"{name}.png"):
        if path.exists():
            return path
    raise RuntimeError(f"there is no figure {name}.png in {folder}")
