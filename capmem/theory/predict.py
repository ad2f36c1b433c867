"""The front door: predicted metrics of a memory, by what kind of memory it is and how pairs enter it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from capmem.ensembles import Ensemble, SphereValues
from capmem.memory import LinearMemory, Memory, SoftmaxMemory
from capmem.schema import require
from capmem.theory.base import Source, TheoryUnavailable
from capmem.theory.case import Case, Numbers
from capmem.theory.hebbian import hebbian_numbers
from capmem.theory.refusals import within_float64
from capmem.theory.rules import RULES
from capmem.theory.softmax import softmax_numbers
from capmem.write_rules import Hebbian, WriteRule

MAX_CODEBOOK = 4096  # above it, experiments compete against a sample of the stored values
LARGEST, SMALLEST = 0.5, 0.02  # a number that may be further off than this share, and this much, is not given

nan = math.nan


@dataclass(frozen=True)
class Prediction:
    """Predicted metrics; nan where there is no formula.

    Attributes
    ----------
    relative_squared_error, scale_optimal_error, cosine_similarity, signal_to_noise, top1_accuracy : float
        As in :mod:`capmem.metrics`.
    sources : mapping
        Metric name -> :class:`Source`, for every metric that has a number.
    """

    relative_squared_error: float = nan
    scale_optimal_error: float = nan
    cosine_similarity: float = nan
    signal_to_noise: float = nan
    top1_accuracy: float = nan
    sources: Mapping[str, Source] = field(default_factory=lambda: MappingProxyType({}))


def predict(
    memory: Memory,
    keys: Ensemble,
    key_dim: int,
    value_dim: int,
    num_pairs: int,
    values: Ensemble | None = None,
    query_cosine: float = 1.0,
    codebook_size: int | None = None,
) -> Prediction:
    """Predict what reading all stored pairs gives, in the mean over trials.

    Parameters
    ----------
    memory : Memory
        What is asked about.
    keys : Ensemble
        The key law.
    key_dim, value_dim, num_pairs : int
        d, v, N.
    values : Ensemble, optional
        The value law (default: :class:`SphereValues`). With a common mean only the relative squared error is predicted.
    query_cosine : float
        Cosine between a cue and its stored key.
    codebook_size : int, optional
        M, what top-1 accuracy competes against (default: N).

    Raises
    ------
    TheoryUnavailable
        Where no formula is known; the message gives the reason.
    ValueError
        For sizes out of range.

    Notes
    -----
    With kappa the kernel after all steps, m1, M2 the moments of kappa(k, k) and m2 = E kappa(k, k')^2, values
    of mean zero give E|y - v|^2 / E|v|^2 = M2 - 2 m1 + 1 + (N-1) m2.
    """
    for name, size in (("key_dim", key_dim), ("value_dim", value_dim), ("num_pairs", num_pairs)):
        require(size >= 1, name, size, "an integer of at least 1")
    for name, given, kind in (
        ("memory", memory, Memory),
        ("keys", keys, Ensemble),
        ("values", values, Ensemble | None),
    ):
        require(isinstance(given, kind), name, given, "a memory" if kind is Memory else "a law of capmem.ensembles")
    require(-1 <= query_cosine <= 1, "query_cosine", query_cosine, "a number from -1 to 1")
    if codebook_size is not None:
        require(codebook_size >= num_pairs, "codebook_size", codebook_size, f"at least num_pairs = {num_pairs}")
    elif num_pairs <= MAX_CODEBOOK:
        codebook_size = num_pairs
    values = SphereValues() if values is None else values
    case = Case(memory, keys, values, key_dim, value_dim, num_pairs, float(query_cosine), codebook_size)
    _require_room(case)
    fixed = keys.file_dim() is None and values.file_dim() is None
    numbers = _cached(case) if fixed else _numbers(case)
    if isinstance(numbers, str):
        raise TheoryUnavailable(numbers)
    found = {name: number for name, (number, _) in numbers.items()}
    return Prediction(**found, sources=MappingProxyType({name: source for name, (_, source) in numbers.items()}))


@lru_cache(maxsize=4096)
def _cached(case: Case) -> Numbers | str:
    """Return the numbers of a case without files, which change, or why there are none."""
    try:
        return _numbers(case)
    except TheoryUnavailable as error:
        return str(error)


@within_float64()
def _numbers(case: Case) -> Numbers:
    if type(case.memory) not in MEMORIES:
        raise TheoryUnavailable(f"no formula for a {type(case.memory).__name__}")
    found = MEMORIES[type(case.memory)](case)
    return {name: number for name, number in found.items() if _near(*number, case)}


def _near(value: float, source: Source, case: Case) -> bool:
    """Whether a number is one, and is not known to be far off."""
    bound = source.known_error.at(case.key_dim, case.value_dim, case.num_pairs)
    near = bound <= LARGEST or bound * value <= SMALLEST or math.isinf(bound)
    return near and not math.isnan(value)


def _linear_numbers(case: Case) -> Numbers:
    memory: Any = case.memory
    if memory.state_dtype not in (None, "float64", "float32"):
        raise TheoryUnavailable(f"no formula for a state held in {memory.state_dtype}")
    rule = type(memory.write_rule)
    if rule not in WRITE_RULES:
        raise TheoryUnavailable(f"no formula for the write rule {rule.__name__}")
    return WRITE_RULES[rule](case)


def _require_room(case: Case) -> None:
    """Raise TheoryUnavailable where keys or values run out, and ones of other dimensions are asked for."""
    for what, law, dim in (("keys", case.keys, case.key_dim), ("values", case.values, case.value_dim)):
        given, limit = law.file_dim(), law.max_pairs(dim)
        if given is not None and given != dim:
            raise TheoryUnavailable(f"the file's {what} have {given} coordinates, and {what[:-1]}_dim is {dim}")
        if limit is not None and case.num_pairs > limit:
            held = "the file" if given is not None else "the law"
            raise TheoryUnavailable(f"{held} holds {limit} {what}, and num_pairs is {case.num_pairs}")


WRITE_RULES: dict[type[WriteRule], Callable[[Case], Numbers]] = {Hebbian: hebbian_numbers, **RULES}
MEMORIES: dict[type[Memory], Callable[[Case], Numbers]] = {
    LinearMemory: _linear_numbers,
    SoftmaxMemory: softmax_numbers,
}
