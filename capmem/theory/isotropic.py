"""Isotropic features: independent keys of any radial law under the identity map, as the write rules see them."""

from __future__ import annotations

from typing import Any, NamedTuple

from capmem.ensembles import RademacherKeys
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.theory.base import Moments, TheoryUnavailable, TrialMoments, single
from capmem.theory.case import Case
from capmem.theory.laws import KeyLaw, key_law
from capmem.theory.moments import trial_moments

FORMULA = "m1 = c E|k|^2, M2 = c^2 E|k|^4, m2 = (E|k|^2)^2 / d: a cue of cosine c, isotropic keys"


class Isotropic(NamedTuple):
    """Independent keys k = |k| u with E u u^T = I/d, the direction u being independent of |k|.

    Attributes
    ----------
    dim : int
        d.
    square, fourth, sixth : float
        E|k|^2, E|k|^4, E|k|^6.
    mixed : float
        E (u_a u_b)^2 for a != b: 1 / (d (d + 2)) on the sphere, 1 / d^2 for signs.
    """

    dim: int
    square: float
    fourth: float
    sixth: float
    mixed: float

    @property
    def unit(self) -> bool:
        """Whether all keys have one norm."""
        return self.fourth == self.square**2

    @property
    def radial(self) -> bool:
        """Whether every rotation leaves the law as it is: not so for signs."""
        return self.mixed == 1 / (self.dim * (self.dim + 2))


def isotropic(case: Case) -> Isotropic:
    """Return the law of the features of a case.

    Raises
    ------
    TheoryUnavailable
        If they are not isotropic, or the cues are not.
    """
    memory: Any = case.memory
    if type(memory.feature_map) is not Identity:
        raise TheoryUnavailable(f"{_rule(case)} has a formula for the identity map only: its features are isotropic")
    if "sum" in (memory.key_norm, memory.feature_norm):
        raise TheoryUnavailable("no formula for keys divided by their sum: the sum of signed keys has no mean")
    signs = type(case.keys) is RademacherKeys
    law = _law_of_signs(memory, case.key_dim) if signs else key_law(memory, case.keys, case.key_dim)
    if not law.independent:
        raise TheoryUnavailable(f"{_rule(case)} has a formula for independent isotropic keys only")
    plain = LinearMemory(Identity())
    if case.query_cosine != 1 and not signs and not key_law(plain, case.keys, case.key_dim).independent:
        raise TheoryUnavailable("noisy cues of correlated keys are not isotropic once the keys are centred")
    if memory.feature_norm == "l2":
        law = KeyLaw(unit=True)
    return _moments_of(law, case.key_dim, signs)


def kernel_moments(case: Case) -> TrialMoments:
    """Return the moments of the kernel between cues and keys: of any map for the stored keys themselves."""
    if case.query_cosine == 1 and type(case.keys) is not RademacherKeys:
        memory: Any = case.memory
        return trial_moments(memory, case.keys, case.key_dim, case.num_pairs)
    law, c = isotropic(case), case.query_cosine
    return single(Moments(c * law.square, c * c * law.fourth, 0.0, law.square**2 / law.dim), True, FORMULA)


def _rule(case: Case) -> str:
    memory: Any = case.memory
    return f"the write rule {type(memory.write_rule).__name__}"


def _law_of_signs(memory: LinearMemory, key_dim: int) -> KeyLaw:
    return KeyLaw(unit=True, scale=key_dim**0.5 if memory.key_scale == "sqrt_dim" else float(memory.key_scale))


def _moments_of(law: KeyLaw, dim: int, signs: bool) -> Isotropic:
    square = law.scale**2
    mixed = 1 / dim**2 if signs else 1 / (dim * (dim + 2))
    if law.unit:
        return Isotropic(dim, square, square**2, square**3, mixed)
    spread = 1 + 2 / dim  # |k|^2 is chi^2_d / d in units of its mean
    return Isotropic(dim, square, spread * square**2, spread * (1 + 4 / dim) * square**3, mixed)
