"""From the tidy table to the numbers of a figure: which panels there are, and what each cell holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import results
from capmem.figures._grid import name_panels, new_grid
from capmem.figures._words import describe, heading, step

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 4  # panels side by side before a single row of facets wraps


@dataclass(frozen=True, eq=False)
class Levels:
    """The values that one role of a figure (x, y, line, facet) takes, in order, and each row's place in them."""

    column: str | None
    table: pd.DataFrame  # one row a level, the columns that define it
    codes: np.ndarray[Any, Any]  # one number a row of the frame
    labels: list[str]
    titles: list[str]  # the labels with what they are of: "correlation 0.3"

    def __len__(self) -> int:
        return len(self.labels)

    def numbers(self) -> np.ndarray[Any, Any] | None:
        """Return the levels as numbers, or None where one is no finite number."""
        try:
            values = results.numbers(self.table, str(self.column))
        except ValueError:
            return None
        return values if np.isfinite(values).all() else None

    @property
    def ordered(self) -> bool:
        """Return whether the levels are numbers, a missing one aside."""
        try:
            results.numbers(self.table, str(self.column))
        except ValueError:
            return False
        return len(self.table.columns) == 1


def levels(frame: pd.DataFrame, column: str | None, others: Sequence[str | None] = ()) -> Levels:
    """Return the levels of `column`; a choice (feature_map) takes its fields along (feature_map.nu).

    Fields that another role of the figure shows are in `others`.
    """
    if column is None:
        codes, table = results.group(frame, [])
        return Levels(None, table, codes, [""], [""])
    fields = [c for c in frame.columns if str(c).startswith(f"{column}.") and c not in others]
    codes, table = results.group(frame, [column, *sorted(map(str, fields))])
    labels = [step(column, describe(row, table)) for row in table.itertuples(index=False)]
    titles = [heading(column, label) for label in labels]
    parent = column.rpartition(".")[0]
    if "none" in labels and parent in frame.columns:
        # gaussian keys have no correlation: their name says more than "none".
        missing = labels.index("none")
        names = sorted(map(str, frame.loc[codes == missing, parent].unique()))
        labels[missing] = titles[missing] = ", ".join(names)
    return Levels(column, table, codes, labels, titles)


def arrange(frame: pd.DataFrame, value: str, roles: Mapping[str, str | None], one_panel: bool) -> dict[str, Levels]:
    """Return the levels of every role, after checks that a cell averages over trials and nothing else.

    Where one setting is left that no role shows, and there are no facet rows yet, it becomes the facet rows.
    """
    shown = [column for column in roles.values() if column is not None]
    results.require_columns(frame, [*shown, value])
    if len(set(shown)) < len(shown):
        raise ValueError(f"each column can have one role in a figure, got {dict(roles)}")
    arranged = {role: levels(frame, column, shown) for role, column in roles.items()}
    hidden = _hidden(frame, arranged)
    if len({c.partition(".")[0] for c in hidden}) == 1 and roles["facet_row"] is None and not one_panel:
        column = hidden[0] if len(hidden) == 1 else hidden[0].partition(".")[0]
        return arrange(frame, value, {**roles, "facet_row": column}, one_panel)
    if hidden:
        raise ValueError(
            f"one cell would average over different {', '.join(hidden)}: select one value, or give it a role "
            f"(now {', '.join(f'{role}={column}' for role, column in roles.items())})"
        )
    for role in ("facet", "facet_row"):
        if one_panel and len(arranged[role]) > 1:
            found = ", ".join(arranged[role].labels)
            raise ValueError(f"ax is one panel, but {roles[role]} has {len(arranged[role])} values: {found}")
    return arranged


def cells(
    frame: pd.DataFrame,
    arranged: Mapping[str, Levels],
    value: str,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a row for each cell that has any row in `frame`: level numbers by role, state and statistics.

    `state` is "ok", "not finite", "failed" or "skipped"; `failed` and `skipped` count rows beside the ones used.
    """
    frame = coded(frame, arranged)
    by = list(arranged)
    codes, table = results.group(frame, by)
    status = frame["status"].to_numpy() if "status" in frame.columns else np.full(len(frame), "ok")
    counts = {s: np.bincount(codes[status == s], minlength=len(table)) for s in ("ok", "failed", "skipped")}
    means = results.aggregate(frame, by, [value], confidence, resamples, seed)
    table = table.merge(means, on=by, how="left")
    table["failed"], table["skipped"] = counts["failed"], counts["skipped"]
    table["trials"] = counts["ok"]
    finite = np.isfinite(results.numbers(table, value))
    conditions = [finite, counts["ok"] > 0, counts["failed"] > 0, counts["skipped"] > 0]
    table["state"] = np.select(conditions, ["ok", "not finite", "failed", "skipped"], "not run")
    return table


def coded(frame: pd.DataFrame, arranged: Mapping[str, Levels]) -> pd.DataFrame:
    """Return `frame` with the level number of every role as a column named as the role."""
    return frame.assign(**{role: found.codes for role, found in arranged.items()})


def readable(table: pd.DataFrame, arranged: Mapping[str, Levels]) -> pd.DataFrame:
    """Return `table` with the real values in place of level numbers: what is saved beside a figure."""
    import pandas as pd

    parts = []
    for role, found in arranged.items():
        if found.column is not None:
            parts.append(found.table.iloc[table[role].to_numpy()].reset_index(drop=True))
    return pd.concat([*parts, table.drop(columns=list(arranged)).reset_index(drop=True)], axis=1)


def panel_grid(
    arranged: Mapping[str, Levels], table: pd.DataFrame, panel_height: float
) -> tuple[Figure, np.ndarray[Any, Any], list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure with titled panels, its axes, and each panel with its rows of `table`."""
    rows, facets = arranged["facet_row"], arranged["facet"]
    places = [(r, f) for r in range(len(rows)) for f in range(len(facets))]
    lines = len(rows) if len(rows) > 1 else -(-len(facets) // _MOST_COLUMNS)
    width = -(-len(places) // lines)
    figure, axes = new_grid(lines, width, panel_height)
    name_panels(axes, facets.titles, rows.titles if len(rows) > 1 else None)
    parts = [table[(table["facet_row"] == r) & (table["facet"] == f)] for r, f in places]
    return figure, axes, list(zip(axes.flat, parts, strict=False))


def left_out(table: pd.DataFrame, value: str) -> str:
    """Return the sentence that says how many trials are missing from the means, "" if none is."""
    counts = {
        "failed": table["failed"].sum(),
        "skipped": table["skipped"].sum(),
        "not finite": np.nansum(results.numbers(table, f"{value}_nonfinite")),
    }
    found = [f"{count:.0f} {name}" for name, count in counts.items() if count]
    return f"Trials left out: {', '.join(found)}." if found else ""


def _hidden(frame: pd.DataFrame, arranged: Mapping[str, Levels]) -> list[str]:
    return results.mixed(results.measured(coded(frame, arranged)), list(arranged))
