"""The capacity analysis: N* of every point of a grid, the law along the key dimension, and the dimension needed."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from capmem import capacity, figures, results
from capmem.capacity.decide import LEAST_DIM
from capmem.capacity.dimension import as_row
from capmem.capacity_report import memories_of, tell
from capmem.experiment import Experiment
from capmem.schema import coerce, require, unknown
from capmem.sweeps.points import experiment_from
from capmem.sweeps.pool import results_of, usable_cores
from capmem.sweeps.present import named_choices
from capmem.theory import TheoryUnavailable

if TYPE_CHECKING:
    import pandas as pd

    from capmem.sweeps.hydra_front import Job

T = TypeVar("T")
Row = dict[str, Any]

HINTS: dict[str, Any] = {
    "method": str,
    "precision": float,
    "max_pairs": int | None,
    "max_dim": int,
    "wanted": tuple[int, ...],
}
METHODS = ("auto", "theory", "simulation")


class Asked(NamedTuple):
    """How capacities are asked for, the same at every point; see conf/capacity.yaml."""

    criterion: capacity.Criterion
    method: Any
    precision: float
    max_pairs: int | None
    max_dim: int
    wanted: tuple[int, ...]


class Point(NamedTuple):
    """One point of the grid: the experiment, and whether its value dimension is that of the keys at any d."""

    experiment: Experiment
    follows: bool
    asked: Asked

    def family(self) -> Any:
        """Return what a point shares with those that differ in the key dimension only."""
        e = self.experiment
        return (e.memory, e.keys, e.values, e.query_cosine, e.codebook_size, None if self.follows else e.value_dim)

    def options(self) -> Row:
        """Return the arguments that :func:`capacity.estimate` and :func:`capacity.required_dim` share."""
        e, criterion = self.experiment, self.asked.criterion
        own = {
            name: getattr(e, name) for name in ("values", "query_cosine", "codebook_size", "trials", "seed", "dtype")
        }
        return own | {
            "metric": criterion.metric,
            "threshold": criterion.threshold,
            "method": self.asked.method,
            "precision": self.asked.precision,
        }


class Wanted(NamedTuple):
    """One question of the inverse: pairs to hold, and a dimension to begin the search at."""

    point: Point
    num_pairs: int
    start: int | None


def show(job: Job) -> bool:
    """Run the analysis of a command line: tables, findings, figures, and their numbers in the output folder."""
    from capmem.sweeps.application import run_options  # Hydra's side; the workers import this module without it
    from capmem.sweeps.folder import check_folder
    from capmem.sweeps.record import save_configuration

    configs = copy.deepcopy(job.configs)
    options = run_options(configs)
    asked = _asked(configs, options)
    points = list(dict.fromkeys(_point(config, asked) for config in configs))
    check_folder(job.folder)
    save_configuration(job.folder, job.arguments, job.configs)
    table = named_choices(capacities(points, options["workers"]))
    needed = dimensions(points, table, options["workers"])
    needed = needed if needed.empty else named_choices(needed)
    print(tell(table, needed))
    for name, frame in (("capacity", table), ("required_dim", needed)):
        if len(frame):
            _write_csv(frame, job.folder / f"{name}.csv")
    if options["figures"]:
        for name, grid in drawings(table):
            figures.save(grid, job.folder, name)
    print(_places(job.folder, options["figures"], len(needed) > 0))
    return True


def capacities(points: Sequence[Point], workers: int | None = None) -> pd.DataFrame:
    """Return a row for each point: its settings, N* with interval and bound, the predicted N*, the state's size."""
    import pandas as pd

    frame = pd.DataFrame(_in_order(list(points), _measure, workers))
    return frame.assign(pareto=capacity.pareto(frame))


def dimensions(points: Sequence[Point], table: pd.DataFrame, workers: int | None = None) -> pd.DataFrame:
    """Return a row for each memory and wanted number of pairs: the least key dimension, and the state there.

    The searches begin where the law through the capacities of `table` (a row a point) says.
    """
    import pandas as pd

    families: dict[Any, list[int]] = {}
    for i, point in enumerate(points):
        families.setdefault(point.family(), []).append(i)
    questions = []
    for members in families.values():
        point = points[members[0]]
        if point.experiment.keys.file_dim() is None:
            law = capacity.power_law(*table[["key_dim", "pairs"]].iloc[members].to_numpy(dtype=float).T)
            questions += [Wanted(point, n, _start(law, n, point.asked.max_dim)) for n in point.asked.wanted]
    return pd.DataFrame(_in_order(questions, _require, workers))


def drawings(table: pd.DataFrame) -> Iterator[tuple[str, figures.Grid]]:
    """Yield the figures of a table by name: a line a map, a panel a rule, and a figure each for what else varies."""
    axes = memories_of(table)
    line = "feature_map" if "feature_map" in axes else axes[0]
    facet = "write_rule" if "write_rule" in axes else next((axis for axis in axes if axis != line), None)
    codes, names = results.group(table, [axis for axis in axes if axis not in (line, facet)])
    for code, row in enumerate(names.itertuples(index=False)):
        label = re.sub(r"[^\w.=+-]+", "_", "".join(f"_{a}={v}" for a, v in zip(names.columns, row, strict=True)))
        part = table[codes == code]
        yield f"capacity_curves{label}", figures.capacity_curves(part, line=line, facet=facet)
        yield f"capacity_per_byte{label}", figures.capacity_per_byte(part, line=line, facet=facet)


def _measure(point: Point) -> Row:
    e = point.experiment
    options = point.options() | {"max_pairs": point.asked.max_pairs}
    found = capacity.estimate(e.memory, e.keys, e.key_dim, e.value_dim, **options)
    predicted = math.nan
    try:
        theory = options | {"method": "theory"}
        predicted = capacity.estimate(e.memory, e.keys, e.key_dim, e.value_dim, **theory).pairs
    except TheoryUnavailable:
        pass
    held = max(1, math.floor(found.pairs if found.bracketed else found.low if found.bound == "at least" else 1))
    size = e.memory.state_size(e.key_dim, e.value_dim, held, e.dtype)
    told = ("pairs", "low", "high", "bracketed", "bound", "method", "trials", "narrow", "source")
    return e.columns() | {name: getattr(found, name) for name in told} | {
        "theory_pairs": predicted,
        "criterion": str(found.criterion),
        "state_elements": size.elements,
        "state_bytes": size.bytes,
        "pairs_per_byte": found.pairs / size.bytes,
    }  # fmt: skip


def _require(wanted: Wanted) -> Row:
    e = wanted.point.experiment
    found = capacity.required_dim(
        wanted.num_pairs,
        e.memory,
        e.keys,
        value_dim=None if wanted.point.follows else e.value_dim,
        max_dim=wanted.point.asked.max_dim,
        start=wanted.start,
        **wanted.point.options(),
    )
    return e.columns() | as_row(found)


def _in_order(tasks: list[T], work: Callable[[T], Row], workers: int | None) -> list[Row]:
    """Return work(task) of each task, in order; the largest are begun first."""
    numbered = sorted(enumerate(tasks), key=lambda task: -_weight(task[1]))
    processes = min(workers or usable_cores(), len(tasks)) or 1
    with results_of([(i, work, task) for i, task in numbered], _numbered, processes) as found:
        return [row for _, row in sorted(found, key=lambda result: result[0])]


def _numbered(task: tuple[int, Callable[[Any], Row], Any]) -> tuple[int, Row]:
    number, work, asked = task
    return number, work(asked)


def _weight(task: Any) -> float:
    return float(task.num_pairs if isinstance(task, Wanted) else task.experiment.key_dim)


def _start(law: capacity.PowerLaw, num_pairs: int, max_dim: int) -> int | None:
    if not law.exponent > 0:
        return None
    guess = float((num_pairs / law.factor) ** (1 / law.exponent))
    return round(min(max(guess, LEAST_DIM), max_dim))


def _asked(configs: list[Row], options: Row) -> Asked:
    """Take out of all configurations how capacities are asked for; it must be one for all."""
    if options["criterion"] not in results.METRICS:
        raise ValueError(unknown("criterion", options["criterion"], results.METRICS))
    criterion = capacity.Criterion(options["criterion"], options["threshold"])
    given = {key: _single(configs, key) for key in HINTS}
    if given["method"] not in METHODS:
        raise ValueError(unknown("method", given["method"], METHODS))
    require(0 < given["precision"] < math.inf, "precision", given["precision"], "a number above 0")
    most = given["max_pairs"]
    require(most is None or most >= 1, "max_pairs", most, "an integer of at least 1")
    require(given["max_dim"] >= LEAST_DIM, "max_dim", given["max_dim"], f"an integer of at least {LEAST_DIM}")
    require(min(given["wanted"], default=1) >= 1, "wanted", given["wanted"], "integers of at least 1")
    return Asked(criterion, **given)


def _single(configs: list[Row], key: str) -> Any:
    found = {repr(config[key]): config.pop(key) for config in configs}
    if len(found) > 1:
        raise ValueError(f"{key} cannot be swept, got {', '.join(found)}")
    return coerce(next(iter(found.values())), HINTS[key], key)


def _point(config: Row, asked: Asked) -> Point:
    e = experiment_from(config | {"num_pairs": 1})
    most = max(asked.wanted, default=1)
    enough = e.codebook_size is None or e.codebook_size >= most
    require(enough, "codebook_size", e.codebook_size, f"at least the wanted pairs, {most}")
    follows = config.get("value_dim") is None and e.values.file_dim() is None
    return Point(dataclasses.replace(e, value_dim=e.key_dim) if follows else e, follows, asked)


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    frame.to_csv(partial, index=False)
    os.replace(partial, path)


def _places(folder: Path, drawn: bool, needed: bool) -> str:
    def lines() -> Iterator[str]:
        yield f"In {folder}:"
        yield "  capacity.csv        N* of every point, with its settings"
        if needed:
            yield "  required_dim.csv    the least key dimension for the wanted pairs"
        yield "  configuration.yaml  what was run"
        if drawn:
            yield "  capacity_curves, capacity_per_byte  .png .svg .pdf, and .csv with their numbers"

    return "\n".join(lines())
