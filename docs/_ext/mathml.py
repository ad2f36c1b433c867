"""Mathematics as MathML, made at build: browsers draw it without a script."""

import html
import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)

ENVIRONMENTS = {"aligned": "split", "align": "align*"}  # others of the same look, that the converter knows
KNOWN = {"matrix", "pmatrix", "bmatrix", "vmatrix", "array", "cases", "split", "align*", "substack", "smallmatrix"}
# What the converter takes for letters, or would space as an operator between two terms.
FIXES = (
    ("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>"),
    ("<mi>&#x027E8;</mi>", '<mo stretchy="false">&#x027E8;</mo>'),
    ("<mi>&#x027E9;</mi>", '<mo stretchy="false">&#x027E9;</mo>'),
    ("<mo>&#x02016;</mo>", '<mo stretchy="false" lspace="0" rspace="0">&#x02016;</mo>'),
    ('<mo stretchy="false">|</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
    ('<mo stretchy="false">&#x0007C;</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
)


def visit_inline(self: Any, node: nodes.Element) -> None:
    """Write a formula in a line of text."""
    self.body.append(written(node, "inline", node.astext()))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.Element) -> None:
    """Write a formula on a line of its own, with its number at the margin if it has one."""
    ids = "".join(f' id="{html.escape(i)}"' for i in node["ids"][:1])
    latex, tag = without_tag(node.astext())
    number = node.get("number") or tag
    shown = f'<span class="eqno">({html.escape(str(number))})</span>' if number else ""
    self.body.append(f'<div class="math"{ids}>{written(node, "block", latex)}{shown}</div>\n')
    raise nodes.SkipNode


def without_tag(latex: str) -> tuple[str, str]:
    """Return a formula without its ``\\tag{...}``, and what that holds."""
    tag = re.search(r"\\tag\{([^}]*)\}", latex)
    return (latex.replace(tag.group(), ""), tag.group(1)) if tag else (latex, "")


def written(node: nodes.Element, display: str, latex: str) -> str:
    """Return the MathML of a node; LaTeX that cannot be read is a warning, so an error of the build."""
    try:
        return to_mathml(latex, display)
    except Exception as error:
        logger.warning("formula cannot be read: %s (%s)", latex, error, location=node)
        return f"<code>{html.escape(latex)}</code>"


def to_mathml(latex: str, display: str) -> str:
    """Return a formula as MathML.

    Raises
    ------
    ValueError
        For a command or an environment that the converter does not know; it would print the name.
    """
    for name, other in ENVIRONMENTS.items():
        latex = latex.replace(f"{{{name}}}", f"{{{other}}}")
    unknown = [name for name in re.findall(r"\\begin\{(.+?)\}", latex) if name not in KNOWN]
    made = str(convert(latex, display=display))
    unknown += re.findall(r"<m\w+>(\\[A-Za-z]+)</m", made)
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}")
    for given, better in FIXES:
        made = made.replace(given, better)
    return made


def setup(app: Any) -> dict[str, bool]:
    """Offer the renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
