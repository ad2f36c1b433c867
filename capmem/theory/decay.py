"""Rules that forget without looking: decay, and Oja's along values; for every map whose kernel moments are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capmem.ensembles import GaussianValues, RademacherValues, SphereValues
from capmem.theory.base import Source, TheoryUnavailable
from capmem.theory.case import Case
from capmem.theory.curves import AgeCurve, Term, powers
from capmem.theory.isotropic import kernel_moments
from capmem.theory.known import Known, together

DECAY = "e(m) = 1 - 2 m1 a^m + M2 a^(2m) + m2 [(1 - a^(2N))/(1 - a^2) - a^(2m)]"
OJA = (
    "e(m) = 1 - 2 b m1 R1^m + b^2 [M2 R2^m + m2 ((1 - R2^N)/(1 - R2) - R2^m)], R1 = 1 - b V1/v, "
    "R2 = 1 - b (2 V1 - b V2)/v, Vj = E|v|^2j"
)
FOURTH: dict[type, Callable[[int], float]] = {  # E|v|^4
    SphereValues: lambda v: float(v * v),
    RademacherValues: lambda v: float(v * v),
    GaussianValues: lambda v: float(v * (v + 2)),
}
RANDOM_NORM = Known("values of random norm: a trial's ratio is taken as the ratio of its means", 0.02)


def decay_curve(case: Case, rate: float = 1.0) -> AgeCurve:
    """Return gain and power by age of S <- a S + k v^T; the Hebbian rule at a = 1.

    Parameters
    ----------
    case : Case
        A kernel with known moments; values of mean zero.
    rate : float
        a, in (0, 1].
    """
    found = kernel_moments(case)
    m1, M2, _, m2 = found.columns
    square = rate * rate
    rest = m2 * powers(square, case.num_pairs)
    source = Source(f"{DECAY}; {found.formula}", found.exact, found.known_error)
    crosstalk = (Term(rest), Term(-m2, square))
    return AgeCurve(case, Term(m1, rate), (Term(M2, square),), crosstalk, source, found.weights)


def oja_curve(case: Case, step_size: float) -> AgeCurve:
    """Return gain and power by age of S <- S (I - b v v^T) + b k v^T.

    Parameters
    ----------
    case : Case
        A kernel with known moments; isotropic values.
    step_size : float
        b.

    Raises
    ------
    TheoryUnavailable
        For a step at which the mean square of the state grows without limit: b E|v|^4 >= 2 E|v|^2.

    Notes
    -----
    y = b sum_j kappa_j Q_j v_j with Q_j the product of the factors I - b v v^T of newer pairs. Of two pairs the older
    value occurs once, and has mean zero: no two pairs interfere, so any kernel will do.
    """
    found, values = kernel_moments(case), case.value_dim
    square, fourth = float(values), FOURTH[type(case.values)](values)
    b = step_size
    if b * fourth >= 2 * square:
        raise TheoryUnavailable(
            f"step_size |v|^2 = {b * fourth / square:.3g} is not below 2: the rule diverges, and the mean error, which "
            "rare trials rule, says nothing of one trial"
        )
    m1, M2, _, m2 = found.columns
    kept, left = 1 - b * square / values, 1 - b * (2 * square - b * fourth) / values
    rest = b * b * m2 * powers(left, case.num_pairs)
    # of what the own value leaves, only the part along it is signal
    own = Term(b * b * M2, kept * kept)
    crosstalk = (Term(rest), Term(b * b * (M2 - m2), left), own._replace(weight=-own.weight))
    fixed = fourth == square**2
    error = found.known_error if fixed else together(RANDOM_NORM, found.known_error)
    source = Source(f"{OJA}; {found.formula}", found.exact and fixed, error)
    return AgeCurve(case, Term(b * m1, kept), (own,), crosstalk, source, found.weights)


def refuse_gated_decay(case: Case) -> AgeCurve:
    """Refuse: there is no formula."""
    rule: Any = case.memory
    raise TheoryUnavailable(
        f"no formula for the write rule {type(rule.write_rule).__name__}: its gates depend on the stored features"
    )
