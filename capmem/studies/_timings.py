"""What the benchmark times: the plain loop, the products of matrices alone, slabs alone, and whole sweeps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from capmem.schema import require
from capmem.studies._plain_loop import NUM_FEATURES, Cell, Measured, plain_loop
from capmem.sweeps.plan import Slab, plan
from capmem.sweeps.pool import results_of
from capmem.sweeps.slab import run_slab

Point = dict[str, Any]
Found = dict[Cell, Measured]

SWEEP = """
from capmem.sweeps.application import sweep
from capmem.sweeps.hydra_front import launch
launch("sweep", sweep)
"""


class Timing(NamedTuple):
    """Seconds by the clock, and of CPU time in all processes together."""

    seconds: float
    cpu_seconds: float


def time_loop(dtype: str, **axes: Any) -> tuple[Timing, Found]:
    """Run the loop nest in this process."""
    return _timed(lambda: dict(plain_loop(dtype=dtype, **axes)))


def time_products(points: list[Point], processes: int) -> Timing:
    """Run the products alone, in float32, in several processes at once: each takes its share of the slabs."""
    return _at_once(_products_of, [points[i::processes] for i in range(processes)])[0]


def time_slabs(points: list[Point], processes: int, compared_trials: int) -> tuple[Timing, Found]:
    """Run slabs that are planned and imported already, in several processes at once; return some of their rows."""
    timing, parts = _at_once(_slabs_of, [points[i::processes] for i in range(processes)], compared_trials)
    return timing, {cell: row for part in parts for cell, row in part.items()}


def time_sweep(overrides: list[str], folder: str, workers: int) -> Timing:
    """Run the sweep's command in a fresh interpreter: start-up, checks, workers, storing and tables included."""
    command = [sys.executable, "-c", SWEEP, *overrides, f"workers={workers}", f"hydra.sweep.dir={folder}"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    timing, done = _timed(lambda: subprocess.run(command, env=environment, capture_output=True, text=True, check=False))
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"the sweep that was to be timed failed: {''.join(last)}")
    return timing


def largest_differences(found: Found, expected: Found) -> Measured:
    """Return the largest difference of each metric over the rows that both have, relative to numbers above 1.

    Raises
    ------
    RuntimeError
        If there is no such row, or numbers differ by more than rounding, and near-ties for top-1, explains.
    """
    common = [(found[cell], expected[cell]) for cell in found.keys() & expected.keys()]
    require(bool(common), "rows to compare", 0, "at least 1")
    a, b = (np.array(some) for some in zip(*common, strict=True))
    pairs = np.array([cell.num_pairs for cell in found.keys() & expected.keys()])
    allowed = 2e-3 * np.abs(b) + 2e-5
    allowed[:, -1] = np.maximum(2 / pairs, 0.01)  # two queries that are nearly tied
    if not (np.abs(a - b) <= allowed).all():
        row, column = np.argwhere(~(np.abs(a - b) <= allowed))[0]
        name = Measured._fields[column]
        raise RuntimeError(f"what is compared differs: {name} is {a[row, column]:.6g} here, {b[row, column]:.6g} there")
    return Measured(*(np.abs(a - b) / np.maximum(1, np.abs(b))).max(axis=0).tolist())


def _timed(work: Callable[[], Any]) -> tuple[Timing, Any]:
    before, started = os.times(), time.perf_counter()
    result = work()
    after, ended = os.times(), time.perf_counter()
    return Timing(ended - started, sum(after[:4]) - sum(before[:4])), result


def _at_once(work: Callable[[Any], Any], shares: list[list[Point]], *rest: Any) -> tuple[Timing, list[Any]]:
    """Give each process its share; the time is that of the slowest, without its start."""
    with results_of([(share, *rest) for share in shares], work, len(shares)) as results:
        timings, found = zip(*results, strict=True)
    return Timing(max(t.seconds for t in timings), sum(t.cpu_seconds for t in timings)), list(found)


def _slabs_of(task: tuple[list[Point], int]) -> tuple[Timing, Found]:
    points, compared_trials = task
    slabs = plan(points)
    run_slab(Slab(slabs[0].key, slabs[0].experiment, slabs[0].units[:1]))  # what is imported late is not timed
    timing, done = _timed(lambda: [run_slab(slab).records for slab in slabs])
    return timing, dict(_measured(done, compared_trials))


def _measured(done: Iterable[list[dict[str, Any]]], trials: int) -> Iterator[tuple[Cell, Measured]]:
    for records in done:
        for r in records:
            if r["status"] != "ok":
                raise RuntimeError(f"a slab that was to be timed failed: {r['error']}")
            if r["trial"] < trials:
                cell = Cell(r["key_dim"], r["feature_map"], r["keys.correlation"], r["num_pairs"], r["trial"])
                yield cell, Measured(*(r[name] for name in Measured._fields))


def _products_of(task: tuple[list[Point]]) -> tuple[Timing, None]:
    slabs = plan(task[0])
    for slab in slabs[:1]:
        _products(slab, 1)

    def work() -> None:
        for slab in slabs:
            _products(slab, slab.experiment.trials)

    return _timed(work)[0], None


def _products(slab: Slab, trials: int) -> None:
    """Do the products that each row of a slab needs, on arrays of its shapes: project, write, read, score."""
    asked, rng = slab.experiment, np.random.default_rng(0)
    d, v, most = asked.key_dim, asked.value_dim, asked.num_pairs[-1]
    width = asked.memory.feature_dim(d) or d
    keys, features, values = (rng.standard_normal((most, k), dtype=np.float32) for k in (d, width, v))
    projection = rng.standard_normal((width, d), dtype=np.float32)
    projected, retrieved = np.empty_like(features), np.empty_like(values)
    state, scores = np.empty((width, v), np.float32), np.empty((most, most), np.float32)
    random_map = width == NUM_FEATURES and hasattr(asked.memory.feature_map, "num_features")
    for _ in range(trials):
        for n in asked.num_pairs:
            if random_map:
                np.matmul(keys[:n], projection.T, out=projected[:n])
            np.matmul(features[:n].T, values[:n], out=state)
            np.matmul(features[:n], state, out=retrieved[:n])
            np.matmul(retrieved[:n], values[:n].T, out=scores[:n, :n])
