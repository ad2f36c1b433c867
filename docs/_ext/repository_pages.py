"""README and the gallery as pages: their text from where it lies, links turned to the pages of this site."""

import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"readme": "README.md", "readme_zh": "README.zh.md", "gallery": "outputs/gallery/README.md"}
TITLES = {"readme": "README"}  # in place of its own, which is that of the whole site
PICTURES = "outputs/gallery"
TO_PAGES = {
    "docs/guides": "guides/index.md",
    "outputs/gallery/README.md": "gallery.md",
    "README.md": "readme.md",
    "README.zh.md": "readme_zh.md",
}


def show(app: Any, docname: str, source: list[str]) -> None:
    """Put the text of a page's file in its place, and its links."""
    if docname in PAGES:
        file = ROOT / PAGES[docname]
        app.env.note_dependency(str(file))
        text = _from_here(file.read_text(), file.parent)
        head = re.match(r"---\n.*?\n---\n", source[0], re.DOTALL)  # what the stub says to Sphinx
        titled = re.sub(r"\A# .*", f"# {TITLES[docname]}", text) if docname in TITLES else text
        source[0] = (head.group() if head else "") + titled
        return
    up = "../" * (docname.count("/") + 1)
    for path, page in TO_PAGES.items():
        source[0] = source[0].replace(f"]({up}{path}", f"]({up.removeprefix('../')}{page}")


def _from_here(text: str, folder: Path) -> str:
    """Return the text with links as seen from docs/; what has no page here is told as code."""

    def turned(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        if re.match(r"\w+:|#", target):
            return match.group()
        path = (folder / target.partition("#")[0]).resolve().relative_to(ROOT).as_posix()
        if mark or path.endswith(".png"):
            return f"{mark}[{label}](../{path})"
        page = TO_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if page:
            return f"[{label}]({page})"
        return f"`{path}`" if label.strip("`/") == path else f"{label} (`{path}`)"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", turned, text)


def copy_pictures(app: Any, error: Exception | None) -> None:
    """Put the gallery's pictures where the HTML in README looks for them."""
    if error is None and app.builder.format == "html":
        shutil.copytree(ROOT / PICTURES, Path(app.outdir) / PICTURES, dirs_exist_ok=True)


def setup(app: Any) -> dict[str, bool]:
    """Work on sources as they are read."""
    app.connect("source-read", show)
    app.connect("build-finished", copy_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
