"""What a replication is: tasks that measure, points that are quoted, verdicts and a figure that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem.figures import Grid
from capmem.replications.measurement import Measurement
from capmem.replications.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd


class Task(NamedTuple):
    """A piece of a replication that is computed in one go: work(*arguments), both picklable."""

    work: Callable[..., Iterable[Measurement]]
    arguments: tuple[Any, ...]

    def run(self) -> list[Measurement]:
        """Return what it measures."""
        return list(self.work(*self.arguments))


@dataclass(frozen=True)
class Replication:
    """A published study, regenerated without training.

    Parameters
    ----------
    name : str
        Its name on the command line and of its figure.
    source : str
        Authors, year, title, arXiv id.
    checked : str
        What of it was read: text, code, logs; and what was not.
    trials : int
        Repetitions unless others are asked for.
    tasks : callable
        tasks(seed, trials) -> list of :class:`Task`. What they measure depends on seed and trials alone.
    quoted : callable
        quoted() -> published points and closed forms, as measurements: drawn and compared, but never stored.
    judge : callable
        judge(table) -> verdicts; every number of ours in them comes from the table.
    draw : callable
        draw(table) -> the figure.
    """

    name: str
    source: str
    checked: str
    trials: int
    tasks: Callable[[int, int], list[Task]]
    quoted: Callable[[], Iterable[Measurement]]
    judge: Callable[[pd.DataFrame], Iterable[Verdict]]
    draw: Callable[[pd.DataFrame], Grid]
