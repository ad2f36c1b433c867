"""What attention costs: both association orders and the causal forms, counted and measured, against N."""

from __future__ import annotations

import functools
import timeit
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from capmem import figures
from capmem.attention import causal_attention, cost, crossing_point, linear_attention, softmax_attention
from capmem.attention.cost import CAUSAL
from capmem.schema import check_fields, require
from capmem.studies import Computed, Study, at_least
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

FORMS: dict[str, Callable[..., Any]] = {
    "softmax": softmax_attention,
    "left": functools.partial(linear_attention, order="left"),
    "right": functools.partial(linear_attention, order="right"),
    "quadratic": functools.partial(causal_attention, form="quadratic"),
    "recurrent": functools.partial(causal_attention, form="recurrent"),
    "chunked": causal_attention,
}
REFERENCE = {"left": "right", "right": "right", "quadratic": "chunked", "recurrent": "chunked", "chunked": "chunked"}
MEASURES = ["flops", "seconds", "peak_bytes"]
LEAST_SECONDS = 2e-3  # that one timing takes; a shorter call is repeated within it


@dataclass(frozen=True)
class Complexity:
    """What is timed.

    Parameters
    ----------
    key_dim, value_dim : int
        d = D (the map is the identity) and v.
    num_pairs : tuple of int
        N, of keys and of queries.
    chunk_size : int
        C of the chunked form.
    repetitions : int
        The best of so many timings counts: what else runs on a machine only adds time.
    dtype : {"float32", "float64"}
        Of all arrays.
    seed : int
        Of the arrays.
    """

    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    chunk_size: int = 64
    repetitions: int = 7
    dtype: Literal["float32", "float64"] = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "key_dim", "value_dim", "num_pairs", "chunk_size", "repetitions")
        at_least(self, 0, "seed")
        require(len(set(self.num_pairs)) > 1, "num_pairs", list(self.num_pairs), "at least two different numbers")


def rows(settings: Complexity) -> Iterator[Record]:
    """Yield a row for each N and form: counted flops, bytes and state, measured time and peak memory."""
    sizes = settings.key_dim, settings.value_dim
    told: Record = {"key_dim": sizes[0], "value_dim": sizes[1], "chunk_size": settings.chunk_size}
    told |= {"crossing": crossing_point(*sizes), "causal_crossing": crossing_point(*sizes) + settings.chunk_size}
    for n in sorted(set(settings.num_pairs)):
        calls = _calls(settings, n)
        seconds = best_times(calls, settings.repetitions)
        results = {form: call() for form, call in calls.items()}
        for form, call in calls.items():
            counted = cost(n, *sizes, form=form, chunk_size=settings.chunk_size, dtype=settings.dtype)  # type: ignore[arg-type]
            same = results[REFERENCE.get(form, form)]
            measured: Record = {"seconds": seconds[form], "peak_bytes": peak_bytes(call)}
            measured["difference"] = float(np.linalg.norm(results[form] - same) / np.linalg.norm(same))
            own = {"form": form, "causal": form in CAUSAL, "num_pairs": n}
            yield told | own | counted._asdict() | measured


def _calls(settings: Complexity, num_pairs: int) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng([settings.seed, num_pairs])
    shapes = [(num_pairs, settings.key_dim)] * 2 + [(num_pairs, settings.value_dim)]
    arrays = [rng.standard_normal(shape).astype(settings.dtype) for shape in shapes]
    given = {"chunked": {"chunk_size": settings.chunk_size}}
    return {form: functools.partial(run, *arrays, **given.get(form, {})) for form, run in FORMS.items()}


def best_times(calls: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Return the best time of each call, in seconds; they take turns, so that a slow spell meets all of them."""
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    first = {name: timer.timeit(1) for name, timer in timers.items()}
    counts = {name: max(1, round(LEAST_SECONDS / max(seconds, 1e-9))) for name, seconds in first.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repetitions):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(counts[name]) / counts[name])
    return best


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most that a call has allocated at a time, its result among it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured_crossing(table: pd.DataFrame, slow: str, fast: str) -> float:
    """Return the N from which `fast` takes less time than `slow` at every N that was measured.

    Times between two N are interpolated as powers of N. 0 if that is so from the smallest N on, inf if it is not so
    at the largest.
    """
    wide = table.pivot(index="num_pairs", columns="form", values="seconds")
    gain = np.log(wide[slow].to_numpy() / wide[fast].to_numpy())
    places = np.log(wide.index.to_numpy(dtype=float))
    behind = np.flatnonzero(gain <= 0)
    if not behind.size:
        return 0.0
    i = int(behind[-1])
    if i == gain.size - 1:
        return float("inf")
    share = -gain[i] / (gain[i + 1] - gain[i])
    return float(np.exp(places[i] + share * (places[i + 1] - places[i])))


def finding(table: pd.DataFrame) -> str:
    """Return where the forms cross, counted and measured, and what they differ by at the largest N."""
    most, first = table["num_pairs"].max(), table.iloc[0]
    last = table[table["num_pairs"] == most].set_index("form")
    pairs = {"left": "right", "quadratic": "chunked"}
    gain = {slow: (last.loc[slow, MEASURES] / last.loc[fast, MEASURES]).map(_times) for slow, fast in pairs.items()}
    left, masked = gain["left"], gain["quadratic"]
    return (
        f"Q (K^T V) takes fewer flops than (Q K^T) V from N = {first['crossing']:.0f} (d = {first['key_dim']}, v = "
        f"{first['value_dim']}); measured, it {_in_words(measured_crossing(table, 'left', 'right'))}. At N = {most} "
        f"it takes {left['flops']} times fewer flops, {left['seconds']} times less time and {left['peak_bytes']} times "
        f"less memory. Causal: chunks of {first['chunk_size']} take fewer flops than the masked product from N = "
        f"{first['causal_crossing']:.0f}; measured, the form "
        f"{_in_words(measured_crossing(table, 'quadratic', 'chunked'))}. At N = {most} it takes {masked['flops']} "
        f"times fewer flops, {masked['seconds']} times less time and {masked['peak_bytes']} times less memory. The "
        f"forms agree to {table['difference'].max():.0e}."
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _in_words(crossing: float) -> str:
    if crossing == 0:
        return "is faster at every N"
    return "is not faster up to there" if crossing == float("inf") else f"is faster from N = {crossing:.0f}"


STUDY = Study("complexity", Complexity, Computed(rows), finding, {"complexity": figures.complexity})
