"""Directives that write pages from the code: the API, the analyses, the commands, the columns of the table."""

import importlib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import commands
import glossary
import public_names
from docstrings import escaped
from docutils import nodes
from docutils.parsers.rst import directives
from public_names import at, listed, summary
from sphinx.util.docutils import SphinxDirective

PAGES = {
    "memory": "memory",
    "feature_map": "feature_maps",
    "write_rule": "write_rules",
    "readout": "readouts",
    "keys": "ensembles",
    "values": "ensembles",
}


class Written(SphinxDirective):
    """A directive that writes reStructuredText, and parses it."""

    def run(self) -> list[nodes.Node]:
        """Parse what `lines` writes."""
        return self.parse_text_to_nodes("\n".join(self.lines()), allow_section_headings=True)

    def lines(self) -> Iterator[str]:
        """Yield the text."""
        raise NotImplementedError

    def here(self, module: str) -> str:
        """Return the directive that says which module is described, and where it is, the first time."""
        known = module in self.env.domains.python_domain.modules
        return f".. py:{'current' if known else ''}module:: {module}"


class Api(Written):
    """``.. api:: capmem.feature_maps`` describes the public names of a module: a table of them, then an entry each.

    With ``:choices:`` the classes of a registry come first, under the names that configurations use. ``:names:``
    picks names, ``:without:`` leaves some out, ``:intro:`` begins with the module's docstring.
    """

    required_arguments = 1
    option_spec = {
        "choices": directives.unchanged,
        "names": directives.unchanged,
        "without": directives.unchanged,
        "intro": directives.flag,
    }

    def lines(self) -> Iterator[str]:
        """Yield the table and the entries."""
        module, options = self.arguments[0], self.options
        yield from (self.here(module), "")
        found = listed(module, options.get("choices"), options.get("names", ""), options.get("without", ""))
        if "intro" in options:
            yield from map(escaped, (inspect.getdoc(importlib.import_module(module)) or "").splitlines())
        if found.choices:
            rows = [(f"``{name}``", link(path), summary(path)) for name, path in found.choices.items()]
            yield from table(("choice", "class", "what it is"), rows)
        if found.names:
            yield from table(("name", "what it is"), [(link(path), summary(path)) for path in found.names])
        for path in [*found.choices.values(), *found.names]:
            yield from entry(path)


class Studies(Written):
    """``.. studies::`` describes every analysis: its command, its settings."""

    def lines(self) -> Iterator[str]:
        """Yield the table and the entries."""
        modules = public_names.studies()
        settings = {module: f"{module.__name__}.{module.STUDY.settings.__name__}" for module in modules}
        rows = [
            (f"``{m.__name__}``", link(settings[m]), public_names.first_paragraph(inspect.getdoc(m) or ""))
            for m in modules
        ]
        yield from table(("module", "settings", "what it is"), rows)
        for module, path in settings.items():
            yield from ("", self.here(module.__name__), "")
            yield from entry(path)


class Commands(Written):
    """``.. commands::`` describes every console command."""

    def lines(self) -> Iterator[str]:
        """Yield a table of all, and a section each."""
        found = commands.commands()
        yield from table(("command", "what it answers"), [(f":ref:`{c.name}`", escaped(c.question)) for c in found])
        for command in found:
            yield from (
                "",
                f".. _{command.name}:",
                "",
                command.name,
                "-" * len(command.name),
                "",
                escaped(command.question),
                "",
            )
            yield from _keys(command)
            yield from _literal(command.examples)


def _keys(command: commands.Command) -> Iterator[str]:
    if command.groups:
        rows = [(f"``{group}``", f"``{choice}``", f":doc:`{PAGES[group]}`") for group, choice in command.groups]
        yield from table(("group", "default", "choices, and their fields"), rows)
    yield from table(
        ("key", "default", "what it sets"),
        [(f"``{key.name}``", f"``{key.default}``", escaped(key.meaning)) for key in command.keys],
    )
    if command.swept:
        yield "Swept unless the command line says otherwise:"
        yield from _literal("\n".join(f"{key}={value}" for key, value in command.swept.items()))
    if command.presets:
        yield from table(("preset", "what it is"), [(f"``{word}``", escaped(told)) for word, told in command.presets])
    for title, body in command.sections.items():
        yield f"{title}:"
        yield from _literal(body)


class Columns(Written):
    """``.. columns::`` describes the columns of the table of results."""

    def lines(self) -> Iterator[str]:
        """Yield a table a section."""
        for title, columns in glossary.sections().items():
            yield from ("", title, "-" * len(title), "")
            rows = [(f"``{c.name}``", escaped(c.meaning), escaped(c.unit)) for c in columns]
            with_unit = any(c.unit for c in columns)
            head = ("column", "what it means", "unit")
            yield from table(head if with_unit else head[:2], rows if with_unit else [row[:2] for row in rows])


def link(path: str) -> str:
    """Return a cross reference that shows the last part of the path."""
    return f":py:obj:`~{path}`"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a list-table."""
    yield from ("", ".. list-table::", f"   :class: summary columns-{len(head)}", "   :header-rows: 1", "")
    for row in (head, *rows):
        yield from (f"   {'* ' if i == 0 else '  '}- {cell}" for i, cell in enumerate(row))
    yield ""


def entry(path: str) -> Iterator[str]:
    """Yield the directive that describes one object."""
    obj = at(path)
    yield ""
    if inspect.isclass(obj):
        yield from (f".. auto{'exception' if issubclass(obj, Exception) else 'class'}:: {path}", "   :members:")
    else:
        yield f".. auto{'function' if inspect.isroutine(obj) else 'data'}:: {path}"
    yield ""


def _literal(text: str) -> Iterator[str]:
    yield from ("", ".. code-block:: text", "", *(f"   {line}" for line in text.splitlines()), "")


def setup(app: Any) -> dict[str, bool]:
    """Offer the directives."""
    for name, directive in (("api", Api), ("studies", Studies), ("commands", Commands), ("columns", Columns)):
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
