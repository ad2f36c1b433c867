"""The finding of an analysis: taken from what its command prints, or for a sweep from its table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Told = Callable[[str, Path], str]


def printed(start: str = r"\S", others: bool = True) -> Told:
    """Return a reader of the printed paragraph whose first line matches `start`, on one line.

    Parameters
    ----------
    start : str
        A regular expression.
    others : bool
        Whether the lines after the first belong to it, up to an empty one; indented ones do in any case.
    """

    def told(output: str, _: Path) -> str:
        lines = output.splitlines()
        first = next((i for i, line in enumerate(lines) if re.match(start, line)), None)
        if first is None:
            raise ValueError(f"the finding, a line that begins with {start!r}, is not in what was printed")
        ends = (i for i, line in enumerate(lines) if i > first and not (line.strip() if others else line[:1] == " "))
        return " ".join(line.strip() for line in lines[first : next(ends, len(lines))])

    return told


def capacities(across: str, words: Callable[[Any], str]) -> Told:
    """Return a reader of a sweep's table: N* of each feature map at the largest d, for each level of `across`.

    Parameters
    ----------
    across : str
        A column, such as ``keys.correlation``.
    words : callable
        level -> what it is called.
    """

    def told(_: str, folder: Path) -> str:
        from capmem import capacity, results
        from capmem.sweeps.present import axes_of, named_choices

        frame = named_choices(results.measured(results.load(folder)))
        frame = frame[frame["key_dim"] == frame["key_dim"].max()]
        table = capacity.from_table(frame, by=list(dict.fromkeys(["feature_map", across, *axes_of(frame)])))
        parts = [f"{words(level)}: {_by_map(rows)}" for level, rows in table.groupby(across, sort=False)]
        lead = f"Pairs held at d = {frame['key_dim'].iloc[0]} ({table['criterion'].iloc[0]})"
        return f"{lead}, {'; '.join(parts)}."

    return told


def _by_map(table: pd.DataFrame) -> str:
    held = {str(name): _range(rows) for name, rows in table.groupby("feature_map", sort=False)}
    if len(held) > 1 and len(set(held.values())) == 1:
        return f"all {next(iter(held.values()))}"
    return ", ".join(f"{_in_brackets(name)} {pairs}" for name, pairs in held.items())


def _in_brackets(name: str) -> str:
    """Return "dpfp (nu=1)" for "dpfp, nu=1", whose comma would read as the end of an item."""
    head, comma, fields = name.partition(", ")
    return f"{head} ({fields})" if comma else head


def _range(rows: pd.DataFrame) -> str:
    """Return N*, or its least and largest over what else varies; bounds are told as bounds."""
    ordered = rows.assign(place=rows["pairs"].fillna(rows["low"]).fillna(rows["high"])).sort_values("place")
    least, most = _cell(ordered.iloc[0]), _cell(ordered.iloc[-1])
    return least if least == most else f"{least} to {most}"


def _cell(row: Any) -> str:
    if row["bound"] in ("at least", "below"):
        return f"at least {row['low']:.0f}" if row["bound"] == "at least" else f"below {row['high']:.0f}"
    return f"{row['pairs']:.0f}" if row["pairs"] == row["pairs"] else "not known"


def first_sentences(text: str, count: int) -> str:
    """Return the first `count` sentences of a text."""
    return " ".join(re.split(r"(?<=[.!?])\s+(?=[A-Z])", text.strip())[:count])
