"""Figures from the tidy table of results: error heatmaps, interference curves, and their numbers on disk.

Each function takes the table of `capmem.results.load`, averages it itself, and returns a `Grid` (figure, axes and
the numbers drawn); given `ax`, it draws one panel there and returns that. Figures are matplotlib objects of their
own: no pyplot, no display.
"""

from capmem.figures._ages import age_curves, error_by_age
from capmem.figures._capacity import capacity_curves, capacity_per_byte
from capmem.figures._complexity import complexity
from capmem.figures._correlation import correlation, mean_feature
from capmem.figures._curves import interference_curves
from capmem.figures._feature_maps import feature_maps, softmax_fit
from capmem.figures._gram import gram_heatmap
from capmem.figures._grid import Grid, save
from capmem.figures._growth import effective_rank, spectrum
from capmem.figures._heads_fit import head_fit, head_rules
from capmem.figures._heads_keys import head_gram, head_spectrum, head_tokens
from capmem.figures._heads_maps import head_maps
from capmem.figures._heads_recall import head_dimensions, head_recall, head_swaps
from capmem.figures._heatmap import heatmap
from capmem.figures._signal import measured_by_pairs, signal_and_crosstalk
from capmem.figures._softmax_vs_linear import softmax_vs_linear
from capmem.figures._stability import kernel_variance, precision, stability
from capmem.figures._theory_check import theory_check
from capmem.figures._words import describe
from capmem.figures._worked_example import worked_example
from capmem.figures._write_rules import double_descent, error_by_load, overwriting

__all__ = [
    "Grid",
    "age_curves",
    "capacity_curves",
    "capacity_per_byte",
    "complexity",
    "correlation",
    "describe",
    "double_descent",
    "effective_rank",
    "error_by_age",
    "error_by_load",
    "feature_maps",
    "gram_heatmap",
    "head_dimensions",
    "head_fit",
    "head_gram",
    "head_maps",
    "head_recall",
    "head_rules",
    "head_spectrum",
    "head_swaps",
    "head_tokens",
    "heatmap",
    "interference_curves",
    "kernel_variance",
    "mean_feature",
    "measured_by_pairs",
    "overwriting",
    "precision",
    "save",
    "signal_and_crosstalk",
    "softmax_fit",
    "softmax_vs_linear",
    "spectrum",
    "stability",
    "theory_check",
    "worked_example",
]
