"""The gallery's own page, and its section of README."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from capmem.gallery.rendering import Rendered
from capmem.gallery.told import first_sentences

BEGIN, END = "<!-- gallery: begin (make gallery) -->", "<!-- gallery: end -->"


def page(found: Sequence[Rendered]) -> str:
    """Return the page: for each entry its command, all that it found, and its pictures."""
    lead = (
        "# Gallery\n\nEvery analysis with its defaults, as `make gallery` renders it: the command, what it finds "
        "(each number comes from the table of the run), and its figures. A command also writes SVG, PDF, and the "
        "numbers under each figure as CSV. Times are those of one machine.\n"
    )
    return "\n".join([lead, *map(_chapter, found)])


def section(found: Sequence[Rendered], folder: str) -> str:
    """Return README's table: a picture and the finding in a line, by entry; pictures lie in `folder`."""
    lines = ["| | |", "|---|---|"]
    for one in found:
        entry = one.entry
        first = next(iter(entry.pictures), None)
        alt = html.escape(entry.title)
        shown = f'<a href="{folder}/{first}.png"><img src="{folder}/{first}.png" width="360" alt="{alt}"></a>'
        told = _in_cell(first_sentences(one.finding, entry.sentences))
        lines.append(f"| {shown if first else ''} | **{entry.title}.** {told} `{entry.command}` |")
    return "\n".join(lines)


def update(readme: Path, table: str) -> bool:
    """Write the table into README between its marks; return whether it changed.

    Raises
    ------
    ValueError
        If the marks are not there once each.
    """
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{readme} must hold the marks {BEGIN!r} and {END!r}, once each")
    head, rest = text.split(BEGIN)
    new = f"{head}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}"
    if new != text:
        readme.write_text(new, encoding="utf-8")
    return new != text


def _chapter(one: Rendered) -> str:
    entry = one.entry
    parts = [f"## {entry.title}", f"`{entry.command}`", _in_text(one.finding)]
    parts += [f"![{entry.title}: {figure.replace('_', ' ')}]({name}.png)" for name, figure in entry.pictures.items()]
    return "\n\n".join(parts) + "\n"


def _in_text(told: str) -> str:
    """Return plain text that Markdown shows as it stands."""
    return told.replace("\\", "\\\\").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")


def _in_cell(told: str) -> str:
    return _in_text(told).replace("|", "\\|")
