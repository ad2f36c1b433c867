"""Writing the page of a folder: gather, draw, put together, and rename into place."""

from __future__ import annotations

from pathlib import Path

from capmem.capacity import Criterion
from capmem.files import replace_file
from capmem.report.contents import configurations
from capmem.report.page import page
from capmem.report.sections import sections
from capmem.schema import require
from capmem.store import StoreError

NAME = "report.html"
HALF = Criterion()


def write(folder: str | Path, criterion: Criterion = HALF, most_rows: int = 100) -> Path:
    """Write ``report.html`` into a folder of results, and return its path.

    The page needs no other file and no network: figures, numbers and script lie in it. Figures are drawn anew from
    what is stored, so they are never older than the numbers.

    Parameters
    ----------
    folder : path
        Of a sweep, or of an analysis.
    criterion : Criterion
        By which capacities of a sweep are told.
    most_rows : int
        Of each table on the page; the downloads hold every row.

    Raises
    ------
    StoreError
        If the folder holds nothing to report, is damaged, or is of another version.
    ValueError
        For a number of rows below 1.
    """
    folder = Path(folder)
    require(most_rows >= 1, "rows", most_rows, "an integer of at least 1")
    if not folder.is_dir():
        raise StoreError(f"there is no folder {folder}")
    asked = configurations(folder)
    text = page(folder, asked, sections(folder, asked, criterion), most_rows)
    replace_file(folder / NAME, lambda partial: partial.write_text(text, encoding="utf-8"))
    return folder / NAME
