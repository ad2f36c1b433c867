"""The frame of every figure: a grid of panels with legend and caption, and how it is saved."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.files import replace_file

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PAGE_WIDTH = 7.2  # inches: drawn at the width of a printed page, so that the font sizes below are the printed ones
SMALL, MEDIUM = 8.0, 9.0  # points
CHARACTER = 0.066  # inches that a character of 8 points takes, on average
LEGEND_ROOM = ((1.4, 2.6), (1.0, 2.0), (0.8, 1.7))  # between columns, and for a line: tighter before a row more
_MARKUP = re.compile(r"\\[a-z]+|[${}^_\\]")
# Nothing in a file tells when or by what it was made: the same table gives the same bytes.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True, eq=False)
class Grid:
    """A figure, its axes (rows, columns) and the table of the numbers in it."""

    figure: Figure
    axes: np.ndarray[Any, Any]
    table: pd.DataFrame

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=150, metadata=_METADATA["png"])
        return buffer.getvalue()


def save(grid: Grid, folder: str | Path, name: str) -> list[Path]:
    """Write ``<name>.png`` (150 dpi), ``.svg``, ``.pdf`` and ``.csv`` (the numbers drawn) into `folder`.

    Each file is written beside its place and then renamed, so that a reader never meets half a file.
    """
    if not name or name != Path(name).name:
        raise ValueError(f"name must be a plain file name without a folder, got {name!r}")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    engine = grid.figure.get_layout_engine()
    grid.figure.draw_without_rendering()
    grid.figure.set_layout_engine("none")  # laid out once, for all formats
    try:
        paths = [replace_file(target / f"{name}.{kind}", _writer(grid.figure, kind)) for kind in _METADATA]
    finally:
        grid.figure.set_layout_engine(engine)
    return [*paths, replace_file(target / f"{name}.csv", lambda path: grid.table.to_csv(path, index=False))]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that lays itself out, without pyplot and without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_grid(rows: int, columns: int, panel_height: float) -> tuple[Figure, np.ndarray[Any, Any]]:
    """Return an empty figure that lays itself out, and its axes (rows, columns) with shared scales."""
    width = {1: 4.4, 2: 5.8}.get(columns, max(PAGE_WIDTH, 1.4 * columns + 1.2))
    # Beside the panels: titles, axis names, legend above and caption below.
    figure = new_figure(width, panel_height * rows + 1.6)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax in axes.flat:
        ax.tick_params(labelsize=SMALL)
    return figure, axes


def plain_grid(width: float, height: float, ratios: Sequence[float]) -> tuple[Figure, np.ndarray[Any, Any]]:
    """Return an empty figure with one row of panels of unequal widths, and its axes (1, panels)."""
    figure = new_figure(width, height)
    return figure, figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)


def name_axes(axes: np.ndarray[Any, Any], used: int, x: str, y: str) -> None:
    """Name the outer axes of a grid of which the first `used` panels hold something."""
    columns = axes.shape[1]
    for i, ax in enumerate(axes.flat):
        if i >= used:
            ax.set_axis_off()
            continue
        if i % columns == 0:
            ax.set_ylabel(y, fontsize=MEDIUM)
        if i + columns >= used:
            ax.set_xlabel(x, fontsize=MEDIUM)
            ax.tick_params(labelbottom=True)


def name_panels(axes: np.ndarray[Any, Any], columns: Sequence[str], rows: Sequence[str] | None) -> None:
    """Title the panels: one title a panel, or, given `rows`, one a column and one at the right of each row."""
    for ax, title in zip(axes.flat if rows is None else axes[0], columns, strict=False):
        ax.set_title(_wrap_title(title, _panel_width(axes)), fontsize=MEDIUM)
    for ax, title in zip(axes[:, -1], rows or (), strict=False):
        ax.annotate(
            title,
            (1, 0.5),
            (6, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            rotation=270,
            va="center",
            fontsize=MEDIUM,
        )


def add_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put one legend above all panels, in as few lines as fit the width; handles in a tuple share one entry."""
    from matplotlib.legend_handler import HandlerTuple

    if not handles:
        return
    ways = [(-(-len(handles) // rows), room) for rows in range(1, len(handles) + 1) for room in LEGEND_ROOM]
    for columns, (spacing, length) in ways:
        # Matplotlib fills column by column; this order reads row by row.
        rows_first = [handle for i in range(columns) for handle in handles[i::columns]]
        legend = figure.legend(
            handles=rows_first,
            labels=[(handle[0] if isinstance(handle, tuple) else handle).get_label() for handle in rows_first],
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.6)},
            loc="outside upper center",
            ncols=columns,
            fontsize=SMALL,
            columnspacing=spacing,
            frameon=False,
            handlelength=length,
        )
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def add_caption(figure: Figure, sentences: Sequence[str]) -> None:
    """Write the caption under the panels."""
    text = " ".join(s for s in sentences if s)
    for sign in "=<≤≥":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    figure.supxlabel(_wrap(figure, text.split(" ")), x=0.01, ha="left", fontsize=SMALL)


def _wrap(figure: Figure, words: Sequence[str]) -> str:
    """Break a text into lines that fit the figure, as measured."""
    ruler, room = figure.text(0, 0, "", fontsize=SMALL), 0.98 * figure.bbox.width
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        ruler.set_text(longer)
        if lines[-1] and ruler.get_window_extent().width > room:
            lines.append(word)
        else:
            lines[-1] = longer
    ruler.remove()
    return "\n".join(lines)


def wrap_scale(name: str, height: float) -> str:
    """Return the name of a colour bar, broken to fit `height` inches, its ends' meaning on a line of its own."""
    room = max(16, int(height / CHARACTER))
    if len(name) <= room:
        return name
    title, bracket, meaning = name.partition(" (")
    parts = [title, bracket[1:] + meaning.replace(": ", ":\u00a0")] if bracket else [title]
    return "\n".join(textwrap.fill(part, room) for part in parts)


def _panel_width(axes: np.ndarray[Any, Any]) -> float:
    return float((axes.flat[0].figure.get_figwidth() - 1.4) / axes.shape[1])


def _wrap_title(title: str, width: float) -> str:
    """Break a title at spaces and underscores to fit `width` inches."""
    pieces = textwrap.wrap(title.replace("_", "_ "), max(12, int(width / 0.076)))
    return "\n".join(piece.replace("_ ", "_") for piece in pieces)


def along_powers(places: Iterable[float]) -> list[str]:
    """Return the labels of places on an axis of powers of two: "2^3", or plain numbers where some are none."""
    given = list(places)
    if all(math.frexp(p)[0] == 0.5 for p in given):
        return [f"$2^{{{math.frexp(p)[1] - 1}}}$" for p in given]
    return [f"{p:g}" for p in given]


def thin_labels(labels: Sequence[str], panel_width: float) -> list[str]:
    """Return `labels` with every second, third, ... blanked until the rest fit side by side."""
    step, lengths = 1, [len(_MARKUP.sub("", label)) for label in labels]
    while step < len(labels) and sum(n + 1 for n in lengths[::step]) * CHARACTER > panel_width:
        step += 1
    return [label if i % step == 0 else "" for i, label in enumerate(labels)]


def _writer(figure: Figure, kind: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import matplotlib

        with matplotlib.rc_context({"svg.hashsalt": "capmem", "pdf.fonttype": 42}):
            figure.savefig(path, format=kind, dpi=150, metadata=_METADATA[kind])

    return write
