"""Every figure of the analysis by its file name; those of one head show the one asked for, or a middling one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from capmem import figures
from capmem.heads_analysis.conversion import key_sets, swap_ratios
from capmem.heads_analysis.tables import Tables
from capmem.schema import unknown

if TYPE_CHECKING:
    import pandas as pd

Place = tuple[int, int]


def shown_head(there: Sequence[Place], wanted: Sequence[int] | None, heads: pd.DataFrame | None = None) -> Place:
    """Return layer and key head that is shown: the one wanted, or that of middling effective dimension.

    Raises
    ------
    ValueError
        If the wanted one is not there.
    """
    if wanted is not None:
        if tuple(wanted) not in there:
            raise ValueError(unknown("show", list(wanted), (str(list(place)) for place in dict.fromkeys(there))))
        return int(wanted[0]), int(wanted[1])
    if heads is None:
        return there[0]
    middle = heads.iloc[int(np.argsort(heads["effective_dim"].to_numpy(), kind="stable")[(len(heads) - 1) // 2])]
    return int(middle["layer"]), int(middle["head"])


def drawings(tables: Tables, head: Place) -> dict[str, figures.Grid]:
    """Return the figures that these tables allow."""
    made: dict[str, Callable[[], figures.Grid]] = {
        "head_maps": partial(figures.head_maps, tables.heads),
        "head_dimensions": partial(figures.head_dimensions, key_sets(tables.heads)),
        "head_swaps": partial(figures.head_swaps, swap_ratios(tables.capacity)),
        "head_fit": partial(figures.head_fit, tables.fit),
        "head_rules": partial(figures.head_rules, tables.rules),
        "head_recall": partial(figures.head_recall, *(_of(t, head) for t in (tables.curves, tables.dimensions))),
        "head_spectrum": partial(figures.head_spectrum, *(_of(t, head) for t in (tables.spectrum, tables.dimensions))),
        "head_gram": partial(figures.head_gram, _of(tables.gram, head)),
        "head_tokens": partial(figures.head_tokens, _of(tables.tokens, head)),
    }
    left_out = [name for name, table in (("head_fit", tables.fit), ("head_swaps", tables.fit)) if not len(table)]
    return {name: draw() for name, draw in made.items() if name not in left_out}


def _of(table: pd.DataFrame, head: Place) -> pd.DataFrame:
    return table[(table["layer"] == head[0]) & (table["head"] == head[1])].reset_index(drop=True)
