"""Predicted errors by the age of a pair: what a rule forgets, and what it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from capmem.ensembles import Ensemble, SphereValues
from capmem.memory import Memory
from capmem.schema import require
from capmem.theory.base import Floats, Source, TheoryUnavailable
from capmem.theory.case import Case
from capmem.theory.curves import AgeCurve, Ages
from capmem.theory.rules import age_curve


class AgePrediction(NamedTuple):
    """Predicted errors by age.

    Attributes
    ----------
    ages : array (M,)
        m: 0 is the pair written last, N - 1 the first.
    relative_squared_error : array (M,)
        E|y - v|^2 / E|v|^2 of the pair of that age.
    scale_optimal_error : array (M,)
        The same under the one gain that is best for the whole read; its mean over all ages is the metric.
    source : Source
        Where the relative squared error comes from.
    """

    ages: Ages
    relative_squared_error: Floats
    scale_optimal_error: Floats
    source: Source


def predict_by_age(
    memory: Memory,
    keys: Ensemble,
    key_dim: int,
    value_dim: int,
    num_pairs: int,
    values: Ensemble | None = None,
    query_cosine: float = 1.0,
    ages: Sequence[int] | Ages | None = None,
) -> AgePrediction:
    """Predict the error of each pair after all are written, in the mean over trials.

    Parameters
    ----------
    memory : Memory
        A linear memory with the linear read-out.
    keys : Ensemble
        The key law.
    key_dim, value_dim, num_pairs : int
        d, v, N.
    values : Ensemble, optional
        The value law (default: :class:`SphereValues`), of mean zero.
    query_cosine : float
        Cosine between a cue and its stored key.
    ages : sequence of int (M,), optional
        From 0 to N - 1 (default: all).

    Raises
    ------
    TheoryUnavailable
        Where no formula is known; the message gives the reason.
    ValueError
        For sizes, or ages, out of range.
    """
    wanted = np.arange(num_pairs) if ages is None else np.asarray(ages, dtype=np.int64)
    inside = wanted.ndim == 1 and wanted.size > 0 and 0 <= wanted.min() and wanted.max() < num_pairs
    require(inside, "ages", ages, f"one or more integers from 0 to {num_pairs - 1}")
    curve = _curve(memory, keys, (key_dim, value_dim, num_pairs), values, query_cosine)
    raw, optimal = curve.errors(wanted)
    return AgePrediction(wanted, raw, optimal, curve.source)


def mean_by_age(
    memory: Memory,
    keys: Ensemble,
    key_dim: int,
    value_dim: int,
    num_pairs: int,
    bins: Sequence[tuple[int, int]],
    values: Ensemble | None = None,
    query_cosine: float = 1.0,
) -> list[float]:
    """Return the means of :func:`predict_by_age` over runs of ages (low, high), both included: relative errors."""
    curve = _curve(memory, keys, (key_dim, value_dim, num_pairs), values, query_cosine)
    return [curve.mean_error(low, high) for low, high in bins]


def _curve(
    memory: Memory, keys: Ensemble, sizes: tuple[int, int, int], values: Ensemble | None, query_cosine: float
) -> AgeCurve:
    for name, size in zip(("key_dim", "value_dim", "num_pairs"), sizes, strict=True):
        require(size >= 1, name, size, "an integer of at least 1")
    require(-1 <= query_cosine <= 1, "query_cosine", query_cosine, "a number from -1 to 1")
    law = SphereValues() if values is None else values
    case = Case(memory, keys, law, *sizes, query_cosine, None)
    found = _cached(case) if keys.file_dim() is None else age_curve(case)
    if isinstance(found, str):
        raise TheoryUnavailable(found)
    return found


@lru_cache(maxsize=1024)
def _cached(case: Case) -> AgeCurve | str:
    """Return the curve of a case without files, which change, or why there is none."""
    try:
        return age_curve(case)
    except TheoryUnavailable as error:
        return str(error)
