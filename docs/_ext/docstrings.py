"""Docstrings as the reference shows them: formulas stay plain text, and names in roles are found."""

import dataclasses
import importlib
import inspect
import re
from functools import cache
from typing import Any

# Literals, roles, names in backticks, and the starred parameters of a signature stay as they are.
KEPT = re.compile(r"(``.+?``|:[\w:]+:`[^`]+`|`[^`]+`_?|^\s*\*{1,2}\w+(?= : |$))")
ROLE = re.compile(r":(class|func|meth|data|exc|attr):`~?\.?([\w.]+)`")


def escaped(line: str) -> str:
    """Return a line of text with ``*``, ``|`` and trailing ``_`` as themselves."""
    parts = KEPT.split(line)
    return "".join(part if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    bullet = re.match(r"\s*\* (?=\S)", text)
    head = bullet.group() if bullet else ""
    return head + re.sub(r"[*|\\]|(?<=\w)_(?!\w)", r"\\\g<0>", text[len(head) :])


def qualified(text: str, module: str, owner: str = "") -> str:
    """Return a docstring's text with the names in its roles in full, as its own module or class knows them."""

    def in_full(match: re.Match[str]) -> str:
        role, name = match.groups()
        for place in (f"{module}.{owner}" if owner else module, module):
            if find(f"{place}.{name}") is not None:
                return f":{role}:`{name} <{place}.{name}>`"
        return match.group()

    return ROLE.sub(in_full, text)


@cache
def find(path: str) -> Any:
    """Return the module, class, function or value of a dotted path in capmem; None if there is none."""
    parts = path.split(".")
    if parts[0] != "capmem":
        return None
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None


def field_texts(cls: type) -> dict[str, str]:
    """Return what a class says of each field that a configuration can set."""
    said: dict[str, str] = {}
    for each in reversed(cls.__mro__[:-1]):
        found = re.findall(r"(?m)^(\w[\w, ]*)(?: : .+)?\n((?: {4}.+\n?)+)", inspect.getdoc(each) or "")
        for names, text in found:
            whole = qualified(" ".join(text.split()), each.__module__, each.__name__)
            said |= dict.fromkeys(names.split(", "), whole)
    return {field.name: said.get(field.name, "") for field in dataclasses.fields(cls) if field.init}


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Prepare a docstring before numpydoc reads its sections."""
    described = inspect.unwrap(getattr(obj, "fget", obj))
    module = getattr(described, "__module__", None) or ""
    owner = getattr(described, "__qualname__", "").split(".")[0]
    lines[:] = [escaped(qualified(line, module, owner)) for line in lines]


def skip(app: Any, what: str, name: str, obj: Any, left_out: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples as members: the class says what they are."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app: Any) -> dict[str, bool]:
    """Come before numpydoc, which has the default priority, 500."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
