"""One key head as the analysis takes it: float64 arrays, tokens and their labels, and choices of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from capmem import heads
from capmem.ensembles import SphereValues
from capmem.ensembles.heads import Stamp, stamp
from capmem.heads_analysis.arrays import Floats
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.schema import require, unknown
from capmem.trial import VALUE_STREAM

Record = dict[str, Any]
ALL = "all"


class Task(NamedTuple):
    """Which head is to be analysed, and how; it holds no arrays, so that one head a process lies in memory."""

    settings: HeadsAnalysis
    layer: int
    head: int


class Analysed(NamedTuple):
    """A key head with the queries that share it.

    Attributes
    ----------
    layer, head : int
        The layer and the key head.
    query_heads : tuple of int
        The query heads that share its keys.
    keys, values : array (T, d), (T, v)
        Without values of its own, random ones of unit norm.
    queries : array (G, T, d) or None
        None where there are none.
    own_values : bool
        Whether the values are the head's.
    scale, causal
        Of its attention.
    tokens : tuple of str
        The text of every token, or its place.
    labels : array (T,)
        Equal tokens have equal labels.
    special : array (T,) or None
        Which tokens are none of the text; None: not known.
    """

    layer: int
    head: int
    query_heads: tuple[int, ...]
    keys: Floats
    values: Floats
    queries: Floats | None
    own_values: bool
    scale: float
    causal: bool
    tokens: tuple[str, ...]
    labels: np.ndarray[Any, np.dtype[np.int64]]
    special: np.ndarray[Any, np.dtype[np.bool_]] | None

    def columns(self) -> Record:
        """Return what every row about these keys carries."""
        return {"layer": self.layer, "head": self.head}

    def choices(self) -> Iterator[tuple[str, Any]]:
        """Yield choices of tokens as a name and a mask: all, and, if there are any, without odd ones."""
        yield ALL, np.ones(len(self.keys), bool)
        odd = heads.outliers(self.keys)
        rest = [("without special", self.special), ("without outliers", odd)]
        for name, left_out in rest:
            if left_out is not None and left_out.any() and (~left_out).sum() >= 8:
                yield name, ~left_out


def opened(settings: HeadsAnalysis) -> heads.Heads:
    """Return the heads of the file that `settings` name.

    Raises
    ------
    ValueError
        For no path, a file that cannot be read, a layer that is not there, or too few tokens.
    """
    require(settings.path is not None, "path", settings.path, "a file or folder of keys, queries and values")
    return _opened(settings, stamp(str(settings.path)))


@lru_cache(maxsize=2)
def _opened(settings: HeadsAnalysis, _: Stamp) -> heads.Heads:
    """Open a file; its stamp is there for the cache, since files change."""
    found = heads.load(str(settings.path), **settings.options())
    for index in settings.layers:
        if index not in found.layers:
            raise ValueError(unknown("layers", index, map(str, found.layers)))
    count = found.layer(found.layers[0]).keys.shape[1]
    require(count >= 8, "path", str(settings.path), f"a sequence of at least 8 tokens; it has {count}")
    return found.take(np.arange(settings.max_tokens)) if count > settings.max_tokens else found


def tasks_of(settings: HeadsAnalysis) -> list[Task]:
    """Return a task for every key head that is asked for."""
    found, tasks = opened(settings), []
    for index in settings.layers or found.layers:
        there = found.layer(index).key_heads
        for head in settings.heads:
            if head not in there:
                raise ValueError(unknown(f"heads of layer {index}:", head, map(str, there)))
        tasks += [Task(settings, index, head) for head in settings.heads or there]
    return tasks


def analysed(task: Task) -> Analysed:
    """Read the head of a task."""
    found = opened(task.settings)
    layer, held = found.layer(task.layer), found.metadata
    j = layer.key_heads.index(task.head)
    shared = slice(j * layer.group_size, (j + 1) * layer.group_size)
    keys = layer.keys[j].astype(np.float64)
    values = layer.values
    tokens = held.tokens or tuple(map(str, range(len(keys))))
    return Analysed(
        task.layer,
        task.head,
        layer.query_heads[shared],
        keys,
        _random_values(task, keys) if values is None else values[j].astype(np.float64),
        None if layer.queries is None else layer.queries[shared].astype(np.float64),
        values is not None,
        held.scale or keys.shape[1] ** -0.5,
        bool(held.causal),
        tokens,
        np.unique(held.ids if held.ids is not None else tokens, return_inverse=True)[1],
        None if held.special is None else np.array(held.special),
    )


def _random_values(task: Task, keys: Floats) -> Floats:
    return SphereValues().sample(np.random.default_rng([task.settings.seed, 0, VALUE_STREAM]), *keys.shape)
