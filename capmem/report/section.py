"""A section of a page: what is told of one table, with the figures as they are embedded."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem import figures

if TYPE_CHECKING:
    import pandas as pd


class Listing(NamedTuple):
    """A table for people: its title, heads and rows."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Drawing(NamedTuple):
    """A figure: its file name's stem, what it shows, its SVG, and the table of the numbers in it."""

    name: str
    shows: str
    svg: bytes
    numbers: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Section:
    """What is told of one table.

    Parameters
    ----------
    title : str
    frame : DataFrame
        The whole table, for download.
    findings : sequence of str
        Sentences; paragraphs of several lines are shown as they are laid out.
    doubts : sequence of str
        What is not to be trusted, or missing.
    listings, drawings : sequence
        Tables for people, and figures.
    more : mapping of str to DataFrame
        Further tables, by name, for download.
    """

    title: str
    frame: pd.DataFrame
    findings: Sequence[str] = ()
    doubts: Sequence[str] = ()
    listings: Sequence[Listing] = ()
    drawings: Sequence[Drawing] = ()
    more: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def drawn(grids: Iterable[tuple[str, figures.Grid]]) -> list[Drawing]:
    """Return figures, by name, as a page embeds them."""
    return [_drawing(grid, name) for name, grid in grids]


def alone(svg: bytes) -> bytes:
    """Return an SVG without its document type and metadata, which name addresses."""
    root = svg[svg.index(b"<svg") :]
    return re.sub(rb"<metadata>.*?</metadata>\s*", b"", root, flags=re.DOTALL)


def _drawing(grid: figures.Grid, name: str) -> Drawing:
    axes = [ax for ax in grid.axes.flat if ax.get_visible()]
    names = [[(ax.get_ylabel(), ax.get_xlabel()) for ax in axes], [ax.get_title() for ax in axes]]
    pairs = dict.fromkeys(" against ".join(filter(None, pair)) for pair in names[0] if any(pair))
    both = [pair for pair in pairs if " against " in pair] or list(pairs)
    titles = ", ".join(dict.fromkeys(str(title) for title in names[1] if title))
    shows = "; ".join([*both, *([f"panels: {titles}"] if titles else [])])
    return Drawing(name, _plain(shows), alone(_svg(grid)), grid.table)


def _svg(grid: figures.Grid) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "capmem"}):
        grid.figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def _plain(text: str) -> str:
    """Return a label without line breaks and without the marks of mathematics."""
    return " ".join(text.replace("$", "").replace("\\", "").split())
