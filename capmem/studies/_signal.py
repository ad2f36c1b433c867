"""Signal and crosstalk apart: the powers of what a read owes to its own pair and to all others, and their sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from capmem import metrics, theory
from capmem.ensembles.base import Rows
from capmem.experiment import Experiment
from capmem.theory.case import Case
from capmem.theory.curves import AgeCurve, Term
from capmem.theory.rules import age_curve
from capmem.trial import CALIBRATION_STREAM, CHUNK, KEY_STREAM, VALUE_STREAM, Record

CLOSED = 1e-6  # of the largest value read; a rule that is not linear in the values misses it by far
POWERS = ("signal", "crosstalk", "cross_term", "retrieved")


class Split(NamedTuple):
    """Powers of one trial at one N, in units of the mean |v|^2.

    Attributes
    ----------
    signal, crosstalk, cross_term, retrieved : float
        Mean |s|^2, |c|^2, 2 s.c and |y|^2, where y = s + c is what the memory itself returns.
    alone : float
        Mean |kappa_ii v_i|^2: what a pair reads that is alone in a Hebbian memory.
    closure : float
        The largest entry of s + c - y, by the largest of y.
    """

    signal: float
    crosstalk: float
    cross_term: float
    retrieved: float
    alone: float
    closure: float


def signal_rows(asked: Experiment, num_pairs: Sequence[int]) -> Iterator[Record]:
    """Yield a row for each N and trial: powers in units of what a pair alone would read, and their closed forms.

    Any write rule that is linear in the values reads y_i = sum_j w_ij v_j with weights that only the keys decide:
    signal w_ii v_i, crosstalk the rest. The weights come from a state that was written with the unit vectors of R^N
    in place of values. Rules that are not linear in the values (Oja's) have no rows.

    Parameters
    ----------
    asked : Experiment
        Its memory reads linearly; exact cues.
    num_pairs : sequence of int
        N.
    """
    for n in num_pairs:
        splits = [split(asked, trial, n) for trial in range(asked.trials)]
        if max(found.closure for found in splits) > CLOSED:
            return
        unit = float(np.mean([found.alone for found in splits]))
        predicted = predicted_powers(asked, n)
        for trial, found in enumerate(splits):
            powers = {name: getattr(found, name) / unit for name in POWERS}
            yield {"num_pairs": n, "trial": trial, "closure": found.closure} | powers | predicted


def split(asked: Experiment, trial: int, num_pairs: int) -> Split:
    """Return the powers of one trial: the draws are those that the experiment itself makes."""
    memory: Any = asked.memory
    streams = (KEY_STREAM, VALUE_STREAM, CALIBRATION_STREAM)
    rng = {s: np.random.default_rng([asked.seed, trial, s]) for s in streams}
    stream = asked.keys.start(rng[KEY_STREAM], asked.key_dim)
    keys, values = stream.draw(num_pairs), asked.values.sample(rng[VALUE_STREAM], num_pairs, asked.value_dim)
    means = memory.calibrate(stream.fork(rng[CALIBRATION_STREAM]).draw(CHUNK)) if memory.centers else {}
    state = memory.write(memory.init(asked.key_dim, asked.value_dim, **means), keys, values)
    weights = memory.write(memory.init(asked.key_dim, num_pairs, **means), keys, np.eye(num_pairs))
    features = memory.features(state, keys)
    parts = metrics.interference(np.asarray(memory.write_rule.matrix(weights.rule)).T, values, features)
    return _powers(parts, memory.read(state, keys), features, values)


def _powers(parts: metrics.Interference, retrieved: Rows, features: Rows, values: Rows) -> Split:
    signal, crosstalk = parts
    unit = np.mean((values**2).sum(axis=1))
    own = (features**2).sum(axis=1)[:, None] * values

    def power(a: Rows, b: Rows) -> float:
        return float((a * b).sum(axis=1).mean() / unit)

    closure = float(np.abs(signal + crosstalk - retrieved).max() / np.abs(retrieved).max())
    cross = 2 * power(signal, crosstalk)
    return Split(power(signal, signal), power(crosstalk, crosstalk), cross, power(retrieved, retrieved),
                 power(own, own), closure)  # fmt: skip


def predicted_powers(asked: Experiment, num_pairs: int) -> Record:
    """Return theory_signal and theory_crosstalk in the same unit, nan where there is no formula."""
    memory: Any = asked.memory
    case = Case(memory, asked.keys, asked.values, asked.key_dim, asked.value_dim, num_pairs, 1.0, None)
    try:
        alone, curve = theory.moments(memory, asked.keys, asked.key_dim).self_square, age_curve(case)
    except theory.TheoryUnavailable:
        return {"theory_signal": np.nan, "theory_crosstalk": np.nan}
    return {f"theory_{name}": _mean(getattr(curve, part), curve) / alone
            for name, part in (("signal", "own"), ("crosstalk", "crosstalk"))}  # fmt: skip


def _mean(terms: tuple[Term, ...], curve: AgeCurve) -> float:
    """Return the mean over all ages, and over trials."""
    ages = np.arange(curve.case.num_pairs, dtype=float)
    at = sum(np.multiply.outer(np.asarray(t.weight), t.x**ages * t.y ** ages[::-1]) for t in terms)
    over_ages = np.broadcast_to(np.mean(at, axis=-1), curve.weights.shape)
    return float(curve.weights @ over_ages)
