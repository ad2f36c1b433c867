"""The page itself: head, what was run, a section for each table, how to repeat it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem import __version__
from capmem._version import FORMAT, NUMERICS
from capmem.report.contents import Configuration
from capmem.report.dark import darkened
from capmem.report.html import Markup, data_uri, join, table, tag
from capmem.report.section import Drawing, Listing, Section
from capmem.studies.prose import laid_out, sentences
from capmem.sweeps.folder import run_records

if TYPE_CHECKING:
    import pandas as pd

MOST_EMBEDDED = 8_000_000  # bytes of a table that the page carries; a larger one stays beside it
MOST_COLUMNS = 14
# Nothing is loaded from anywhere: a browser refuses what would be.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(folder: Path, asked: Sequence[Configuration], parts: Sequence[Section], most_rows: int) -> str:
    """Return the whole page as HTML."""
    name = folder.resolve().name
    body = tag(
        "body",
        tag("header", tag("h1", f"capmem: {name}"), tag("p", _made(), class_="quiet")),
        tag("nav", _contents(parts), aria_label="Contents"),
        tag("main", *(_section(part, i, folder, most_rows) for i, part in enumerate(parts)), _run(folder, asked),
            _repeat(asked)),
        tag("script", Markup(_own("sort.js"))),
    )  # fmt: skip
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{name} - capmem report"),
        tag("style", Markup(_own("page.css"))),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _own(name: str) -> str:
    return files("capmem.report").joinpath(name).read_text(encoding="utf-8")


def _made() -> str:
    return f"Made {_when(time.time())} by capmem {__version__} (format {FORMAT}, numerics {NUMERICS})."


def _contents(parts: Sequence[Section]) -> Markup:
    places = [(f"section-{i}", part.title) for i, part in enumerate(parts)]
    places += [("run", "What was run"), ("repeat", "How to repeat it")]
    return tag("ul", *(tag("li", tag("a", told, href=f"#{place}")) for place, told in places))


def _section(part: Section, number: int, folder: Path, most_rows: int) -> Markup:
    found = [_paragraph(told, i == 0) for i, told in enumerate(_paragraphs(part.findings))]
    return tag(
        "section",
        tag("h2", part.title, id=f"section-{number}"),
        *([tag("h3", "Findings"), *found] if found else []),
        *_doubts(part.doubts),
        *(_listing(listing, most_rows) for listing in part.listings),
        *([tag("h3", "Figures")] if part.drawings else []),
        *(_figure(drawing, number, most_rows) for drawing in part.drawings),
        tag("h3", "Every number"),
        tag("p", _download(part.frame, folder, f"{folder.resolve().name}-{number + 1}.csv")),
        *(tag("p", name, ": ", _csv(frame, f"{_size(frame)}, as CSV", name)) for name, frame in part.more.items()),
    )


def _paragraphs(findings: Sequence[str]) -> Iterator[str]:
    """Yield findings as paragraphs: each sentence, and what has line breaks as it is laid out."""
    for paragraph in (p for told in findings for p in told.split("\n\n")):
        yield from [paragraph] if laid_out(paragraph) else map(_signs, sentences(paragraph))


def _paragraph(told: str, first: bool) -> Markup:
    return tag("pre", told, class_="laid-out") if laid_out(told) else tag("p", told, class_="lead" if first else None)


def _csv(frame: pd.DataFrame, told: str, name: str) -> Markup:
    """Return a link to a table that lies in the page."""
    return tag("a", told, href=data_uri(frame.to_csv(index=False).encode(), "text/csv"), download=f"{name}.csv")


def _size(frame: pd.DataFrame) -> str:
    return f"{len(frame)} rows of {len(frame.columns)} columns"


def _signs(text: str) -> str:
    """Return a sentence of the terminal with the signs that a page can show."""
    return text.replace(" +- ", " \u00b1 ").replace("<=", "\u2264").replace(">=", "\u2265")


def _doubts(doubts: Sequence[str]) -> Iterator[Markup]:
    if doubts:
        told = tag("ul", *(tag("li", doubt) for doubt in doubts))
        yield tag("div", tag("p", tag("strong", "Not to be trusted, or missing")), told, class_="doubts", role="note")


def _listing(listing: Listing, most_rows: int) -> Markup:
    title, heads = listing.title, [head or "point" for head in listing.heads]
    return join([table(heads, listing.rows[:most_rows], title), _left_out(len(listing.rows), most_rows)])


def _figure(drawing: Drawing, number: int, most_rows: int) -> Markup:
    title = drawing.name.replace("_", " ")
    dark = data_uri(darkened(drawing.svg), "image/svg+xml")
    alt = f"Figure {title}: {drawing.shows}. Its numbers are in the table that follows."
    image = tag(
        "picture",
        tag("source", media="(prefers-color-scheme: dark)", srcset=dark),
        tag("img", src=data_uri(drawing.svg, "image/svg+xml"), alt=alt, id=f"figure-{number}-{drawing.name}"),
    )
    link = _csv(drawing.numbers, "its numbers as CSV", drawing.name)
    caption = tag("figcaption", tag("strong", title.capitalize()), ": ", drawing.shows, " (", link, ").")
    shown = tag("details", tag("summary", f"Table of {title}"), _numbers(drawing.numbers, title, most_rows))
    return join([tag("figure", image, caption), shown])


def _numbers(frame: pd.DataFrame, title: str, most_rows: int) -> Markup:
    frame = frame.dropna(axis=1, how="all")
    rows = [[_short(value) for value in row] for row in frame.iloc[:most_rows, :MOST_COLUMNS].itertuples(index=False)]
    shown = table([str(c) for c in frame.columns[:MOST_COLUMNS]], rows, f"Numbers of {title}")
    more = len(frame.columns) - MOST_COLUMNS
    columns = tag("p", f"{more} more columns are in the CSV.", class_="quiet") if more > 0 else ""
    return join([shown, _left_out(len(frame), most_rows), columns])


def _left_out(rows: int, most_rows: int) -> Markup:
    return tag("p", f"The first {most_rows} of {rows} rows.", class_="quiet") if rows > most_rows else Markup("")


def _short(value: Any) -> str:
    import pandas as pd

    if pd.isna(value):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _download(frame: pd.DataFrame, folder: Path, name: str) -> Markup:
    csv = frame.drop(columns="traceback", errors="ignore").to_csv(index=False).encode()
    told = f"The whole table, {_size(frame)}, as CSV"
    if len(csv) <= MOST_EMBEDDED:
        return tag("a", told, href=data_uri(csv, "text/csv"), download=name)
    if (folder / "results.csv").is_file():
        return join([tag("a", told, href="results.csv"), ": too large for this page, in results.csv beside it."])
    return join([f"{told} is too large for this page: read it with capmem.results.load."])


def _run(folder: Path, asked: Sequence[Configuration]) -> Markup:
    parts: list[Markup] = []
    for number, each in enumerate(asked, start=1):
        title = "Configuration" if len(asked) == 1 else f"Configuration {number}"
        rows = [[key, "each of " + ", ".join(map(_plain, values))] for key, values in each.axes.items()]
        rows += [[key, _plain(value)] for key, value in each.common.items() if value is not None]
        told = f"{title} of {each.application} ({each.version})"
        parts.append(table(["setting", "value"], rows, told))
    if not asked:
        parts.append(tag("p", "No configuration is stored: the sweep was run from Python."))
    return tag("section", tag("h2", "What was run", id="run"), *parts, _history(folder))


def _history(folder: Path) -> Markup:
    runs = [
        [_when(r.started), _when(r.ended) if r.ended else "-", r.units, r.found, r.computed, r.workers]
        for r in run_records(folder)
    ]
    heads = ["started", "ended", "measurements asked for", "stored before", "computed", "workers"]
    if runs:
        return table(heads, runs, "Runs that filled this folder")
    written = [path.stat().st_mtime for path in (folder / "parts").glob("*.parquet")]
    return tag("p", f"Computed {_when(max(written))}." if written else "")


def _repeat(asked: Sequence[Configuration]) -> Markup:
    commands = [tag("pre", shlex.join(["python", "-m", f"analyses.{c.application}", *c.arguments])) for c in asked]
    told = "The same command in the same folder computes only what is missing; give the folder as hydra.sweep.dir."
    return tag("section", tag("h2", "How to repeat it", id="repeat"), *commands, tag("p", told))


def _plain(value: Any) -> str:
    return ", ".join(map(_plain, value)) if isinstance(value, list) else "none" if value is None else str(value)


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
