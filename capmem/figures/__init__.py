"""Figures from the tidy table of results: error heatmaps, interference curves, and their numbers on disk.

Each function takes the table of `capmem.results.load`, averages it itself, and returns a `Grid` (figure, axes and
the numbers drawn); given `ax`, it draws one panel there and returns that. Figures are matplotlib objects of their
own: no pyplot, no display.
"""

from capmem.figures._curves import interference_curves
from capmem.figures._grid import Grid, save
from capmem.figures._heatmap import heatmap
from capmem.figures._words import describe
from capmem.figures._worked_example import worked_example

__all__ = ["Grid", "describe", "heatmap", "interference_curves", "save", "worked_example"]
