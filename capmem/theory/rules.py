"""Predictions for each write rule: one registry of curves by age, and the metrics of a whole read from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capmem.ensembles import ArrayKeys
from capmem.memory import LinearMemory
from capmem.readouts import Linear
from capmem.theory.base import TheoryUnavailable
from capmem.theory.case import Case, Numbers
from capmem.theory.curves import AgeCurve
from capmem.theory.decay import FOURTH, decay_curve, oja_curve, refuse_gated_decay
from capmem.theory.delta import delta_curve
from capmem.theory.least_squares import least_squares
from capmem.theory.refusals import within_float64
from capmem.write_rules import Decay, Delta, GatedDecay, GatedDelta, Hebbian, LeastSquares, Oja, WriteRule

Curve = Callable[[Case], AgeCurve]


def _rule(case: Case) -> Any:
    memory: Any = case.memory
    return memory.write_rule


CURVES: dict[type[WriteRule], Curve] = {
    Hebbian: decay_curve,
    Decay: lambda case: decay_curve(case, _rule(case).rate),
    GatedDecay: refuse_gated_decay,
    Delta: lambda case: delta_curve(case, _rule(case).step_size),
    GatedDelta: lambda case: delta_curve(case, _rule(case).step_size, _rule(case).rate),
    Oja: lambda case: oja_curve(case, _rule(case).step_size),
    LeastSquares: least_squares,
}


@within_float64()
def age_curve(case: Case) -> AgeCurve:
    """Return gain and power by age of the memory of a case.

    Raises
    ------
    TheoryUnavailable
        Where no formula is known.
    """
    memory = case.memory
    if not isinstance(memory, LinearMemory):
        raise TheoryUnavailable(f"no formula for a {type(memory).__name__}")
    _check(memory, case)
    kind = type(memory.write_rule)
    if kind not in CURVES:
        raise TheoryUnavailable(f"no formula for the write rule {kind.__name__}")
    return CURVES[kind](case)


def rule_numbers(case: Case) -> Numbers:
    """Return the predicted metrics of a read of all pairs; see :func:`age_curve`."""
    return age_curve(case).numbers()


RULES: dict[type[WriteRule], Callable[[Case], Numbers]] = {rule: rule_numbers for rule in CURVES if rule is not Hebbian}


def _check(memory: LinearMemory, case: Case) -> None:
    """Refuse what makes no formula by age hold, whatever the rule."""
    if memory.feature_map.positional:
        raise TheoryUnavailable("no formula for a map that depends on the place of a key")
    if hasattr(memory.feature_map, "seed") and isinstance(case.keys, ArrayKeys):
        raise TheoryUnavailable("no formula for a random map of keys of a file: its draw differs from trial to trial")
    if type(memory.readout) is not Linear:
        name = type(memory.readout).__name__
        raise TheoryUnavailable(f"no formula by age, or for this write rule, with the read-out {name}")
    if memory.state_dtype not in (None, "float64", "float32"):
        raise TheoryUnavailable(f"no formula for a state held in {memory.state_dtype}")
    if type(case.values) not in FOURTH or getattr(case.values, "mean", None):
        raise TheoryUnavailable("no formula for values that are not independent, isotropic and of mean zero")
    if isinstance(case.keys, ArrayKeys) and case.keys.order != "random":
        raise TheoryUnavailable("no formula by age for keys of a file in its own order")
    if abs(case.query_cosine) < 1 and case.key_dim == 1:
        raise TheoryUnavailable("there are no noisy cues in one dimension")
