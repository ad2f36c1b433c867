"""README's tables, written from the registries: choices with their fields and sources, and what the theory covers."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

from capmem.configuration import PARTS, STEPS
from capmem.ensembles import KEYS, VALUES
from capmem.memory import MEMORIES
from capmem.registry import Registry
from capmem.theory.coverage import coverage

BEGIN, END = "<!-- tables of choices: begin (make tables) -->", "<!-- tables of choices: end -->"
COVER_BEGIN, COVER_END = "<!-- what the theory covers: begin (make tables) -->", "<!-- what the theory covers: end -->"
GROUPS: dict[str, Registry[Any]] = {**PARTS, "keys": KEYS, "values": VALUES, "memory": MEMORIES}
TITLES = {
    "feature_map": "Feature maps",
    "write_rule": "Write rules",
    "readout": "Read-outs",
    "keys": "Key laws",
    "values": "Value laws",
    "memory": "Memories",
}


def tables() -> str:
    """Return one Markdown table a group: choice, what it is, fields with defaults, source."""
    return "\n\n".join(_table(group, registry) for group, registry in GROUPS.items())


def covered() -> str:
    """Return the Markdown table of what :mod:`capmem.theory` covers, with its heading."""
    told = (
        "Of the relative squared error of a Hebbian memory, read linearly, unless the row says otherwise: `exact` in "
        "finite d and N, `appr.` with the known error in `sources` of each prediction. Keys of a file are covered by "
        "the moments of the file."
    )
    return f"**What the theory covers** (`capmem.theory.predict`)\n\n{told}\n\n{coverage()}"


def update(readme: Path) -> bool:
    """Write the tables into README between their marks; return whether it changed.

    Raises
    ------
    ValueError
        If the marks are not there.
    """
    text = new = readme.read_text()
    for begin, end, table in ((BEGIN, END, tables), (COVER_BEGIN, COVER_END, covered)):
        if begin not in text or end not in text:
            raise ValueError(f"{readme} must hold the marks {begin!r} and {end!r}")
        head, rest = new.split(begin)
        new = f"{head}{begin}\n\n{table()}\n\n{end}{rest.split(end)[1]}"
    readme.write_text(new)
    return new != text


def _table(group: str, registry: Registry[Any]) -> str:
    lines = [f"**{TITLES[group]}** (`{group}=`)", "", "| choice | what it is | fields | source |", "|---|---|---|---|"]
    lines += [_row(name, registry[name]) for name in registry.names()]
    return "\n".join(lines)


def _row(name: str, cls: type) -> str:
    doc = inspect.getdoc(cls) or ""
    what = " ".join(doc.split("\n\n")[0].split())
    cells = [f"`{name}`", _in_cell(what), _in_cell(_fields(cls)), _in_cell(_source(doc))]
    return f"| {' | '.join(cells)} |"


def _fields(cls: type) -> str:
    hidden = {*PARTS, *STEPS}
    told = []
    for field in dataclasses.fields(cls):
        if field.init and field.name not in hidden:
            default = "" if field.default is dataclasses.MISSING else f" = {_plain(field.default)}"
            told.append(f"`{field.name}{default}`")
    return ", ".join(told)


def _plain(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _source(doc: str) -> str:
    found = re.search(r"References\n-+\n(.*?)(?:\n\n|\Z)", doc, re.DOTALL)
    return " ".join(found.group(1).split()) if found else ""


def _in_cell(text: str) -> str:
    return re.sub(r"; see :class:`\w+`", "", text).replace("|", "\\|").replace("<-", "&larr;")


if __name__ == "__main__":
    changed = update(Path(__file__).resolve().parents[1] / "README.md")
    print("README.md: tables of choices", "updated" if changed else "are current")
