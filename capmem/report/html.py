"""HTML by functions: every text is escaped unless it was made here."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

VOID = {"meta", "img", "source"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element; children that are not :class:`Markup` are escaped, attributes always.

    ``class_`` stands for class; an attribute that is None is left out; True has no value.
    """
    told = [_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
            if value is not None]  # fmt: skip
    opening = " ".join([name, *told])
    return Markup(f"<{opening}>" if name in VOID else f"<{opening}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Markup:
    """Return children as one piece of HTML."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(str(child)) for child in children))


def data_uri(content: bytes, kind: str) -> str:
    """Return a data URI of this media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], caption: str) -> Markup:
    """Return a table whose first column names the rows; columns of nothing but numbers are set to the right."""
    kinds = ["number" if rows and all(map(_is_number, column)) else None for column in zip(*rows, strict=True)]
    kinds = kinds or [None] * len(heads)
    head = tag("thead", tag("tr", *(tag("th", h, scope="col", class_=k) for h, k in zip(heads, kinds, strict=True))))
    body = [
        tag("tr", tag("th", row[0], scope="row", class_=kinds[0]),
            *(tag("td", value, class_=kind) for value, kind in zip(row[1:], kinds[1:], strict=True)))
        for row in rows
    ]  # fmt: skip
    inner = tag("table", tag("caption", caption), head, tag("tbody", *body))
    return tag("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption)


def _is_number(value: object) -> bool:
    """Return whether a cell is a number, or the dash that stands for a missing one."""
    try:
        float(str(value))
    except ValueError:
        return value == "-"
    return True


def _attribute(name: str, value: object) -> str:
    return name if value is True else f'{name}="{html.escape(str(value))}"'
