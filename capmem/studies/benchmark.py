"""How fast is the sweep: against a plain NumPy loop nest, and against its own products of matrices."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem.backends import BACKENDS
from capmem.schema import check_fields, require, unknown
from capmem.studies import Computed, Study, at_least
from capmem.studies._plain_loop import MAPS
from capmem.studies._timings import (
    Found,
    Timing,
    largest_differences,
    time_loop,
    time_products,
    time_slabs,
    time_sweep,
)
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

LOOP, LOOP32, PRODUCTS, SLABS, SWEEP, TORCH = (
    "plain loop, float64",
    "plain loop, float32",
    "products alone",
    "slabs alone",
    "sweep command",
    "slabs on PyTorch, ",
)


@dataclass(frozen=True)
class Benchmark:
    """The sweep that is timed: Hebbian, linear read-out, keys of norm sqrt(d), every stored pair read.

    Parameters
    ----------
    key_dims, num_pairs : tuple of int
        d and N.
    feature_maps : tuple of str
        Names in :data:`capmem.studies._plain_loop.MAPS`.
    correlations : tuple of float
        Of keys that share a direction.
    value_dim : int
        v.
    trials : int
        Of each configuration.
    loop_trials : int
        Trials of the plain loops, which are slow; at most `trials`. Times are told a row.
    processes : tuple of int
        Workers of the sweep's command; slabs and products run in the largest number of these at once.
    torch_devices : tuple of str
        Where the same slabs are run by PyTorch too; those that are not there are left out.
    seed : int
        Of all draws.
    """

    key_dims: tuple[int, ...] = (16, 32, 64, 128)
    num_pairs: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512, 1024)
    feature_maps: tuple[str, ...] = ("identity", "relu", "elu_plus_one", "dpfp", "positive_random_features")
    correlations: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)
    value_dim: int = 64
    trials: int = 64
    loop_trials: int = 8
    processes: tuple[int, ...] = (1, 2)
    torch_devices: tuple[str, ...] = ("cpu", "cuda")
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "key_dims", "num_pairs", "value_dim", "trials", "loop_trials", "processes")
        at_least(self, 0, "correlations", "seed")
        require(max(self.correlations) <= 1, "correlations", list(self.correlations), "numbers from 0 to 1")
        require(max(self.num_pairs) <= 4096, "num_pairs", list(self.num_pairs), "at most 4096: all pairs are read")
        require(self.loop_trials <= self.trials, "loop_trials", self.loop_trials, f"at most trials = {self.trials}")
        for name in self.feature_maps:
            if name not in MAPS:
                raise ValueError(unknown("feature map", name, MAPS))
        require(bool(self.feature_maps), "feature_maps", [], "a list, not empty")


def points(settings: Benchmark, **backend: str) -> list[dict[str, Any]]:
    """Return the slabs of the sweep as plain mappings."""
    return [
        {
            "feature_map": name, "keys": {"name": "equicorrelated", "correlation": c}, "key_dim": d,
            "value_dim": settings.value_dim, "num_pairs": settings.num_pairs, "trials": settings.trials,
            "seed": settings.seed, "key_scale": "sqrt_dim", **backend,
        }
        for d in settings.key_dims for name in settings.feature_maps for c in settings.correlations
    ]  # fmt: skip


def has_torch(device: str) -> bool:
    """Whether PyTorch is installed, and has this device."""
    try:
        BACKENDS["torch"](device)
    except ValueError:
        return False
    return True


def overrides(settings: Benchmark) -> list[str]:
    """Return the same sweep as the arguments of its command."""
    swept = {
        "key_dim": settings.key_dims,
        "feature_map": settings.feature_maps,
        "keys.correlation": settings.correlations,
    }
    lists = [f"{key}={','.join(map(str, values))}" for key, values in swept.items()]
    return [
        *lists, f"num_pairs=[{','.join(map(str, settings.num_pairs))}]", f"value_dim={settings.value_dim}",
        f"trials={settings.trials}", f"seed={settings.seed}", "key_scale=sqrt_dim", "figures=false",
    ]  # fmt: skip


def rows(settings: Benchmark) -> Iterator[Record]:
    """Yield one row for each thing that is timed; results are compared on the way.

    Raises
    ------
    RuntimeError
        If what is compared does not give the same numbers.
    """
    axes = {f.name: getattr(settings, f.name) for f in fields(settings)}
    axes = {name: axes[name] for name in ("key_dims", "feature_maps", "correlations", "num_pairs", "value_dim", "seed")}
    few, most = settings.loop_trials, max(settings.processes)
    whole = points(settings)
    timing, expected = time_loop("float64", trials=few, **axes)
    yield _row(LOOP, timing, len(expected))
    timing, found = time_loop("float32", trials=few, **axes)
    yield _row(LOOP32, timing, len(found)) | _compared(found, expected)
    count = len(whole) * len(settings.num_pairs) * settings.trials
    yield _row(PRODUCTS, time_products(whole, most), count, most)
    timing, found = time_slabs(whole, most, few)
    yield _row(SLABS, timing, count, most) | _compared(found, expected)
    for workers in settings.processes:
        with tempfile.TemporaryDirectory() as folder:
            timing = time_sweep(overrides(settings), str(Path(folder) / "sweep"), workers)
        yield _row(SWEEP, timing, count, workers)
    for device in filter(has_torch, settings.torch_devices):
        timing, found = time_slabs(points(settings, backend="torch", device=device), 1, few)
        yield _row(TORCH + device, timing, count) | _compared(found, expected)


def _row(what: str, timing: Timing, count: int, processes: int = 1) -> Record:
    return {
        "timed": what, "processes": processes, "rows": count, "seconds": timing.seconds,
        "cpu_seconds": timing.cpu_seconds, "ms_per_row": 1e3 * timing.seconds / count,
        "cpu_ms_per_row": 1e3 * timing.cpu_seconds / count, "rows_per_s": count / timing.seconds,
    }  # fmt: skip


def _compared(found: Found, expected: Found) -> Record:
    return {f"difference_{name}": value for name, value in largest_differences(found, expected)._asdict().items()}


def finding(table: pd.DataFrame) -> str:
    """Return how much faster the sweep is than the loop, how near slabs are to their products, and every row."""
    by_name = {(row["timed"], row["processes"]): row for _, row in table.iterrows()}
    loop = by_name[LOOP, 1]["ms_per_row"]
    floor = next(row for (name, _), row in by_name.items() if name == PRODUCTS)["ms_per_row"]
    slabs = next(row for (name, _), row in by_name.items() if name == SLABS)["ms_per_row"]
    sweeps = [row for (name, _), row in by_name.items() if name == SWEEP]
    told = ", ".join(f"{loop / row['ms_per_row']:.2f} with {row['processes']} workers" for row in sweeps)
    lines = [
        f"The sweep, start to end, is as many times as fast as the plain NumPy loop: {told}. Its slabs (one "
        f"combination of settings each, with all its N and trials) take {slabs / floor:.2f} times as long as their "
        f"products of matrices alone.",
        "",
        f"{'':28}{'processes':>10}{'rows/s':>9}{'ms/row':>8}{'CPU ms':>8}{'loop/it':>9}{'it/products':>13}",
    ]
    for (name, processes), row in by_name.items():
        each, cpu = row["ms_per_row"], row["cpu_ms_per_row"]
        ratios = f"{loop / each:>9.2f}{each / floor:>13.2f}"
        lines.append(f"{name:28}{processes:>10}{row['rows_per_s']:>9.0f}{each:>8.3f}{cpu:>8.3f}{ratios}")
    return "\n".join(lines)


STUDY = Study("benchmark", Benchmark, Computed(rows), finding, {})
