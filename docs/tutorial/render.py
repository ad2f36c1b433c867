"""Run the tutorial's blocks in order; write what they print into the page, and draw its figures.

``python docs/tutorial/render.py``, from anywhere, after any change of the page's code. `tests/test_tutorial.py` runs
the same blocks, and fails where the page or a figure is not what they give.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, PngImagePlugin
from threadpoolctl import threadpool_limits

FOLDER = Path(__file__).resolve().parent
PAGE, ROOT = FOLDER.with_suffix(".md"), FOLDER.parents[1]
# A block of code; directly below it what it prints, if anything; directly below that the picture of its figure.
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?P<output>\n```text\n.*?^```\n)?(?:\n!\[[^\]]*\]\((?P<picture>[^)\s]+)\)\n)?",
    re.DOTALL | re.MULTILINE,
)
DPI, COLOURS = 130, 64
NUMBERS = "Numbers"  # the text in a picture that tells which table it was drawn from


class Block(NamedTuple):
    """A block of the page: its code, the line of the page that it begins on, and what stands below it."""

    code: str
    line: int
    output: str | None
    picture: str | None


class Ran(NamedTuple):
    """What a block did: what it printed, and the `Grid` that its last expression gives, if it is one."""

    printed: str
    grid: Any = None


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page."""
    return [
        Block(found["code"], text[: found.start("code")].count("\n") + 1, _inside(found["output"]), found["picture"])
        for found in BLOCK.finditer(text)
    ]


def run(page: list[Block]) -> Iterator[Ran]:
    """Run blocks one after the other in one namespace, as a reader would who stands in the repository."""
    names: dict[str, Any] = {"__name__": "tutorial"}
    for block in page:
        tree = ast.increment_lineno(ast.parse(block.code), block.line - 1)
        last = tree.body[-1]
        shows = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
        tree.body = tree.body[:-1] if shows else tree.body
        printed = io.StringIO()
        with contextlib.chdir(ROOT), threadpool_limits(1), contextlib.redirect_stdout(printed):
            exec(compile(tree, str(PAGE), "exec"), names)
            shown = eval(compile(shows, str(PAGE), "eval"), names) if shows else None
        yield Ran(printed.getvalue(), shown if hasattr(shown, "figure") else None)


def fault(block: Block, ran: Ran) -> str | None:
    """Return what is wrong with what stands below a block, or None."""
    place = f"line {block.line}"
    if not ran.printed and ran.grid is None:
        return f"{place}: the block shows nothing"
    if ran.printed and block.output is None:
        return f"{place}: the output is missing; the block prints:\n{ran.printed}"
    if (block.output or "") != ran.printed:
        return f"{place}: the page says\n{block.output}\nbut the block prints\n{ran.printed}"
    if (block.picture is None) != (ran.grid is None):
        return f"{place}: a figure needs a picture, and a picture a figure; picture: {block.picture}"
    return None


def unread(text: str) -> int:
    """Return how many fences of code or output are in a page that no block of it accounts for."""
    page = blocks(text)
    known = len(page) + sum(block.output is not None for block in page)
    return len(re.findall(r"^```(?:python|text)$", text, re.MULTILINE)) - known


def updated(text: str, results: list[Ran]) -> str:
    """Return the page with the outputs that its blocks gave."""
    parts, end = [], 0
    for found, ran in zip(BLOCK.finditer(text), results, strict=True):
        code_ends = found.end("code") + len("```\n")
        parts += [text[end:code_ends], f"\n```text\n{ran.printed}```\n" if ran.printed else ""]
        end = found.end("output") if found["output"] else code_ends
    return "".join([*parts, text[end:]])


def numbers(grid: Any) -> str:
    """Return the table of a figure as it is stored beside the picture."""
    return str(grid.table.to_csv(index=False, float_format="%.5g"))


def draw(grid: Any, picture: Path) -> None:
    """Store a figure as a small PNG that carries the digest of its numbers, and the numbers as CSV beside it."""
    buffer = io.BytesIO()
    grid.figure.savefig(buffer, format="png", dpi=DPI)
    table = numbers(grid).encode()
    told = PngImagePlugin.PngInfo()
    told.add_text(NUMBERS, hashlib.sha256(table).hexdigest())
    few = Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(picture, optimize=True, pnginfo=told)
    picture.with_suffix(".csv").write_bytes(table)


def _inside(fenced: str | None) -> str | None:
    return None if fenced is None else fenced.removeprefix("\n```text\n").removesuffix("```\n")


def main() -> None:
    """Bring the page and its pictures up to date."""
    text = PAGE.read_text(encoding="utf-8")
    page = blocks(text)
    results = list(run(page))
    PAGE.write_text(updated(text, results), encoding="utf-8")
    for block, ran in zip(page, results, strict=True):
        if block.picture and ran.grid is not None:
            draw(ran.grid, PAGE.parent / block.picture)


if __name__ == "__main__":
    main()
