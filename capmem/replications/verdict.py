"""Verdicts: a number of a paper beside ours, how far apart they may be, and what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from capmem.replications.measurement import Estimate
from capmem.schema import require, unknown

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["published", "derived from the paper", "our own"]
KINDS = get_args(Kind)
AGREES, DIFFERS, NOT_COMPARABLE = "agrees", "differs", "not comparable"
ROUNDING = 1e-12
HEADS = ("quantity", "kind", "published", "ours", "95% interval", "tolerance", "verdict")


@dataclass(frozen=True)
class Verdict:
    """One row of the table.

    Parameters
    ----------
    quantity : str
        What is compared.
    kind : {"published", "derived from the paper", "our own"}
        Whether the other number stands in the paper (or its authors' code and logs), follows from what stands
        there, or is a formula of ours that the paper does not have.
    published : float
        That number; nan where there is none.
    ours, low, high : float
        What this library measures, and its 95% interval over seeds (both ends equal where no draw enters).
    tolerance : float
        How far apart both may be, in the units of the quantity.
    verdict : str
        "agrees", "differs", or "not comparable".
    note : str
        Why it is not comparable, and what could not be checked.
    """

    quantity: str
    kind: str
    published: float
    ours: float
    low: float
    high: float
    tolerance: float
    verdict: str
    note: str = ""


def compare(quantity: str, kind: Kind, published: float, ours: Estimate, tolerance: float, note: str = "") -> Verdict:
    """Judge one number: it agrees where |ours - published| is at most the tolerance plus half our interval.

    Where it would agree by an interval that is wider than the tolerance, nothing is judged, and that is said. A nan
    differs.

    Raises
    ------
    ValueError
        For a kind that does not exist or a tolerance that is not a finite number of at least 0.
    """
    if kind not in KINDS:
        raise ValueError(unknown("kind", kind, KINDS))
    require(0 <= tolerance < math.inf, "tolerance", tolerance, "a number of at least 0")
    value, low, high = ours
    own = (published, value, low, high, tolerance)
    half, distance = (high - low) / 2, abs(value - published)
    if math.isfinite(distance) and not half <= tolerance and not distance > tolerance + half:
        told = "one seed has no interval" if math.isnan(half) else "our interval is wider than the tolerance"
        return Verdict(quantity, kind, *own, NOT_COMPARABLE, _joined(f"{told}: more trials", note))
    return Verdict(quantity, kind, *own, AGREES if distance <= tolerance + half else DIFFERS, note)


def not_comparable(quantity: str, kind: Kind, published: float, why: str, ours: Estimate | None = None) -> Verdict:
    """Return the row of a number that ours cannot be held against, with the reason."""
    value, low, high = ours or (math.nan,) * 3
    return Verdict(quantity, kind, published, value, low, high, math.nan, NOT_COMPARABLE, why)


def differing(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of verdicts that differ."""
    return table[table["verdict"] == DIFFERS]


def as_text(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a table of plain text, its notes numbered below."""
    notes = list(dict.fromkeys(v.note for v in verdicts if v.note))
    rows = [HEADS, *(_cells(v, notes) for v in verdicts)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    right = {"published", "ours", "tolerance"}
    lines = [
        "  ".join(
            cell.rjust(width) if head in right else cell.ljust(width)
            for cell, width, head in zip(row, widths, HEADS, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join([*lines, *(f"  [{i}] {note}" for i, note in enumerate(notes, start=1))])


def count(verdicts: Iterable[str]) -> str:
    """Return how many verdicts there are of each kind: "12 agree, 1 differs, 2 are not comparable"."""
    given = list(verdicts)
    agree, differ, rest = (given.count(name) for name in (AGREES, DIFFERS, NOT_COMPARABLE))
    parts = [f"{agree} agree{'s' * (agree == 1)}", f"{differ} differ{'s' * (differ == 1)}"]
    return ", ".join([*parts, f"{rest} {'is' if rest == 1 else 'are'} not comparable"])


def _cells(verdict: Verdict, notes: list[str]) -> tuple[str, ...]:
    told = f"{verdict.verdict} [{notes.index(verdict.note) + 1}]" if verdict.note else verdict.verdict
    numbers = (_number(verdict.published), _number(verdict.ours), _interval(verdict), _number(verdict.tolerance))
    return (verdict.quantity, verdict.kind, *numbers, told)


def _interval(verdict: Verdict) -> str:
    if math.isnan(verdict.low):
        return "-"
    if verdict.high - verdict.low < ROUNDING:
        return "exact"
    return f"{_number(verdict.low)} to {_number(verdict.high)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _joined(*sentences: str) -> str:
    return "; ".join(s for s in sentences if s)
