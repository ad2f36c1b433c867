"""A page that needs nothing else: the answers, and every figure with its name."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
img{max-width:100%;height:auto}figure{margin:2rem 0}figcaption{color:#555}"""


def page(title: str, paragraphs: Sequence[str], figures: Sequence[str]) -> str:
    """Return an HTML page for the folder above ``figures``, which holds ``<name>.png``, ``.pdf`` and ``.csv``."""
    body = [f"<p>{escape(text)}</p>" for text in paragraphs if text]
    body += [_figure(name) for name in figures]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><h1>Attention heads: {escape(title)}</h1>\n'
        + ("\n".join(body) + "\n</body></html>\n")
    )


def _figure(name: str) -> str:
    stem = escape(f"figures/{name}", quote=True)
    links = " ".join(f'<a href="{stem}.{kind}">{kind}</a>' for kind in ("pdf", "svg", "csv"))
    text = escape(name.replace("_", " "))
    return f'<figure><img src="{stem}.png" alt="{text}"><figcaption>{text} ({links})</figcaption></figure>'
