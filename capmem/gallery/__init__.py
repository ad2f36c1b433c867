"""The gallery: every analysis, run by its own command line, as pictures with one line of finding each."""

from capmem.gallery.entries import ENTRIES, Entry
from capmem.gallery.page import page, section, update
from capmem.gallery.pictures import shrink
from capmem.gallery.rendering import Rendered, render

__all__ = ["ENTRIES", "Entry", "Rendered", "page", "render", "section", "shrink", "update"]
