"""How the documentation is built: ``make docs``. Nothing is fetched, and the pages load nothing from elsewhere."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from capmem import __version__  # noqa: E402

project = "capmem"
author = "the capmem authors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "generated_pages",
    "mathml",
    "object_links",
    "docstrings",
    "repository_pages",
]
exclude_patterns = ["_build", "_ext"]
nitpicky = True
default_role = "py:obj"  # `name`: a link where there is an entry of that name, else code; see object_links
smartquotes = False  # (..., N, D) keeps its dots

autodoc_typehints = "none"  # types, with shapes, stand beside each parameter
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 100

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"capmem {version}"
html_static_path = ["_static"]
html_css_files = ["capmem.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
