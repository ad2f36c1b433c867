"""Cross references that Sphinx does not find: public names under another path, and names that have no entry."""

import inspect
from typing import Any

from docstrings import find
from docutils import nodes
from sphinx.util.nodes import make_refnode


def resolve(app: Any, env: Any, node: Any, contnode: Any) -> nodes.Node | None:
    """Link a class or function to its entry, wherever its name was imported from.

    What exists and has no entry, an inner function say, stays code; so does a name in single backticks that is no
    object. All else is left to Sphinx, which warns.
    """
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].lstrip("~.")
    found = find(name)
    if inspect.isclass(found) or inspect.isroutine(found):
        for entry, (docname, anchor) in entries(env).items():
            if find(entry) is found:
                return make_refnode(app.builder, node["refdoc"], docname, anchor, contnode, entry)
    return contnode if found is not None or node["reftype"] == "obj" else None


def entries(env: Any) -> dict[str, tuple[str, str]]:
    """Return where each object is described."""
    found = env.get_domain("py").objects
    return {name: (o.docname, o.node_id) for name, o in found.items() if o.objtype != "module"}


def setup(app: Any) -> dict[str, bool]:
    """Look after Sphinx has."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
