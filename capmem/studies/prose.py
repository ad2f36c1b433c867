"""Findings for a terminal: each sentence begins a line, long ones are wrapped, tables in them stay as they are."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable

MOST_COLUMNS = 100
END = re.compile(r"(?<=[.!])\s+(?=[A-Z])")  # a question is told with its answer


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; one ends at a full stop before a capital letter, a question does not end one."""
    return END.split(text.strip())


def laid_out(paragraph: str) -> bool:
    """Return whether a paragraph is a table, or anything else of several lines whose breaks count."""
    return "\n" in paragraph or "  " in paragraph.strip()


def wrapped(text: str, columns: int | None = None) -> str:
    """Return a text with a line for each sentence, further lines of it indented; tables are left as they are.

    The lines of a paragraph, joined by spaces, are the paragraph again.

    Parameters
    ----------
    text : str
        Paragraphs, with an empty line between two.
    columns : int, optional
        Of a line, at most (default: those of the terminal, and no more than 100).
    """
    width = columns or min(MOST_COLUMNS, shutil.get_terminal_size((MOST_COLUMNS, 24)).columns)
    return "\n\n".join(p if laid_out(p) else listed(sentences(p), width) for p in text.split("\n\n"))


def listed(statements: Iterable[str], columns: int) -> str:
    """Return statements, each on a line of its own, or several where it is too long."""
    wrap = textwrap.TextWrapper(columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap.fill(statement) for statement in statements)
