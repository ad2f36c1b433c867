"""Delta rule and gated delta rule on isotropic keys: one pass, any step, exact in finite d and N."""

from __future__ import annotations

from capmem.theory.base import Source, TheoryUnavailable
from capmem.theory.case import Case
from capmem.theory.curves import AgeCurve, Term
from capmem.theory.isotropic import Isotropic, isotropic
from capmem.theory.known import NONE

FORMULA = (
    "e(m) = 1 - 2 b p1 c (a r1)^m + b^2 p2 g(m) + b^2 p1/d [p1 G(m) + a^2 (p1 q^m - b (2 p2 - b p3) g(m)) G(N-1-m)], "
    "g(m) = q^m/d + (c^2 - 1/d) (a^2 A)^m, G(n) = (1 - q^n)/(1 - q), r1 = 1 - b p1/d, q = a^2 (1 - b (2 p1 - b p2)/d), "
    "A = 1 - 2 b p1/d + 2 b^2 p2/(d(d+2)), pj = E|k|^2j; signs have d^2 in place of d(d+2)"
)


def delta_curve(case: Case, step_size: float, rate: float = 1.0) -> AgeCurve:
    """Return gain and power by age of S <- a (I - b k k^T) S + b k v^T, read with cues of cosine c.

    Parameters
    ----------
    case : Case
        Identity map on independent isotropic keys; values of mean zero.
    step_size, rate : float
        b and a.

    Raises
    ------
    TheoryUnavailable
        For features that are not isotropic, or a step at which the mean square of the state grows without limit:
        b E|k|^4 >= 2 E|k|^2, which is b |k|^2 >= 2 at one norm.

    Notes
    -----
    The pair of age m is read as b q^T P_m k v + crosstalk, P_m the product of m factors a (I - b k k^T). Averaged
    over one isotropic key, such a factor on both sides of a symmetric matrix scales its trace by q and the rest by
    a^2 A. A newer pair adds b^2 p1^2/d q^j, j its age; an older one the same after the pair's own erasure.
    """
    law = isotropic(case)
    b, c, d = step_size, case.query_cosine, law.dim
    p1, p2, p3 = law.square, law.fourth, law.sixth
    _refuse_unstable(b, law)
    kept = rate * (1 - b * p1 / d)
    q = rate**2 * (1 - b * (2 * p1 - b * p2) / d)
    A = rate**2 * (1 - 2 * b * p1 / d + 2 * b * b * p2 * law.mixed)
    aside = c * c - 1 / d
    newer = b * b * p1 * p1 / (d * (1 - q))
    older = rate**2 * b * b * p1 / (d * (1 - q))
    erased = b * (2 * p2 - b * p3)
    along, across = older * (p1 - erased / d), -older * erased * aside
    own = (Term(b * b * p2 / d, q), Term(b * b * p2 * aside, A))
    crosstalk = (
        Term(newer),
        Term(-newer, q),
        Term(along, q),
        Term(-along, q, q),
        Term(across, A),
        Term(-across, A, q),
    )
    return AgeCurve(case, Term(b * c * p1, kept), own, crosstalk, Source(FORMULA, True, NONE))


def _refuse_unstable(step_size: float, law: Isotropic) -> None:
    if step_size * law.fourth >= 2 * law.square:
        power = step_size * law.fourth / law.square
        raise TheoryUnavailable(
            f"step_size |k|^2 = {power:.3g} is not below 2: the rule diverges, and the mean error, which rare trials "
            "rule, says nothing of one trial"
        )
