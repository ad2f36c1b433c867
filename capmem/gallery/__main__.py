"""``make gallery``: render all entries, or those named, then shrink the pictures and write the pages."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from capmem.files import replace_file
from capmem.gallery.entries import ENTRIES, Entry
from capmem.gallery.page import page, section, update
from capmem.gallery.pictures import shrink
from capmem.gallery.rendering import Rendered, render, rendered
from capmem.schema import unknown

ROOT = Path(__file__).resolve().parents[2]
FOLDER, WORK = "outputs/gallery", "outputs/gallery-work"


def main(names: Sequence[str], root: Path = ROOT, entries: Sequence[Entry] = ENTRIES) -> int:
    """Render the entries named (default: all); the pages are written once every entry has been rendered.

    Returns
    -------
    int
        0 if the pages are written, else 1.
    """
    known = [entry.name for entry in entries]
    if wrong := [name for name in names if name not in known]:
        print(unknown("entry", wrong[0], known), file=sys.stderr)
        return 1
    work = root / WORK
    failed = [not _rendered(entry, work, root) for entry in entries if not names or entry.name in names]
    found = [rendered(entry, work) for entry in entries]
    if missing := [entry.name for entry, one in zip(entries, found, strict=True) if one is None]:
        print(f"The pages are left as they were; not rendered yet: {', '.join(missing)}", file=sys.stderr)
        return 1
    _publish([one for one in found if one is not None], root)
    return int(any(failed))


def _rendered(entry: Entry, work: Path, root: Path) -> bool:
    """Render one entry and say how it went."""
    began = time.monotonic()
    print(f"{entry.name}: {entry.command}", flush=True)
    try:
        one = render(entry, work, root)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return False
    print(f"  {len(one.figures)} figures, {time.monotonic() - began:.0f} s", flush=True)
    return True


def _publish(found: Sequence[Rendered], root: Path) -> None:
    """Write pictures and pages; a picture that no entry has any more is removed."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {f"{name}.png": path for one in found for name, path in one.pictures()}
    size = sum(shrink(path, folder / name) for name, path in pictures.items())
    for old in folder.glob("*.png"):
        if old.name not in pictures:
            old.unlink()
    replace_file(folder / "README.md", lambda path: path.write_text(page(found), encoding="utf-8"))
    update(root / "README.md", section(found, FOLDER))
    print(f"{FOLDER}: {len(pictures)} pictures, {size / 1e6:.2f} MB; pages: {FOLDER}/README.md, README.md")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
