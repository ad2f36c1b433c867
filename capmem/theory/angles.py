"""Cosine and top-1 accuracy of a Hebbian reading: the accurate forms for isotropic keys, else the mean field."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from capmem.ensembles import DuplicatedKeys, Ensemble
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory
from capmem.theory import cosine, meanfield, top1
from capmem.theory.base import Source, TrialMoments
from capmem.theory.case import Case, Numbers
from capmem.theory.known import NONE, Known, by_size
from capmem.theory.laws import LAWS, KeyLaw, key_law, reduced
from capmem.theory.measured import measured
from capmem.theory.quadrature import gamma_rule
from capmem.theory.sequences import copies
from capmem.theory.structured import linear_memory
from capmem.theory.values import ValueLaw

COSINE_ERROR = Known(
    "within 0.2% for d, v >= 32, 0.6% at 16, 4% at d = 2, v = 4", by_size({32: 0.002, 16: 0.006, 2: 0.04})
)
TOP1_ERROR = Known("up to 1.5% low at d, v >= 16, 5% at d, v = 8, 15% at v = 4", by_size({16: 0.015, 8: 0.05, 4: 0.15}))
NOISY_TOP1_ERROR = Known(
    "cues of cosine 0.7: up to 4% low at d, v >= 16; of 0.3 8% low, at right angles up to 25% high",
    by_size({16: 0.04}),
)
REPEATED = "E cos over how often a key was written, a geometric number, and over kappa_ii"
NEAREST = "one-hot values: E F^(N-1), F the chance that a competitor's key scores below the own key"


def angle_numbers(case: Case, moments: TrialMoments, values: ValueLaw) -> Numbers:
    """Return cosine and top-1 accuracy, as far as there are formulas for these values and this codebook."""
    law = isotropic_law(linear_memory(case), reduced(case.keys), case.key_dim)
    found = {"cosine_similarity": _cosine(case, moments, values, law)}
    plain = law is not None or type(linear_memory(case).feature_map) is Identity
    decodable = plain if values.one_hot else values.fixed_norm and values.dim > 1 and case.key_dim > 1
    if case.codebook is not None and decodable and not isinstance(reduced(case.keys), DuplicatedKeys):
        if law is not None or np.all(moments.columns[0] != 0):  # else what competitors score decides
            found["top1_accuracy"] = _top1(case, moments, values, law, case.codebook)
    return found


def isotropic_law(memory: LinearMemory, keys: Ensemble, key_dim: int) -> KeyLaw | None:
    """Return the law of independent isotropic keys under the identity map, else None."""
    if type(memory.feature_map) is not Identity or type(keys) not in LAWS or memory.feature_norm == "sum":
        return None
    law = key_law(memory, keys, key_dim)
    if law.independent and memory.feature_norm == "l2":
        return KeyLaw(unit=True)
    return law if law.independent else None


def _cosine(case: Case, moments: TrialMoments, values: ValueLaw, law: KeyLaw | None) -> tuple[float, Source]:
    keys, n = reduced(case.keys), case.num_pairs
    if isinstance(keys, DuplicatedKeys):
        return _repeated_cosine(case, moments, values, keys)
    if law is None or values.one_hot:
        found = meanfield.expected_cosine(moments, n, values)
        error = COSINE_ERROR if law is not None else measured("cosine", case)
        return found, Source(f"{meanfield.FORMULA}; {moments.formula}", False, error)
    formula = cosine.FIXED_NORM if values.fixed_norm else cosine.GAUSSIAN
    if n == 1:
        return float(np.sign(case.query_cosine)), Source(formula, False, COSINE_ERROR)
    noise, weights = cosine.crosstalk_rule(case.key_dim, n, law.unit)
    expected = cosine.fixed_norm_cosine if values.fixed_norm else cosine.gaussian_cosine
    found = float(np.clip(weights @ expected(values.dim, noise, case.query_cosine), -1, 1))
    return found, Source(formula, False, COSINE_ERROR)


def _repeated_cosine(case: Case, moments: TrialMoments, values: ValueLaw, keys: DuplicatedKeys) -> tuple[float, Source]:
    """Return the mean over how often a key was written: all but one have its kappa_ii, the rest those of new keys."""
    n = case.num_pairs
    m1, square, _, mixed = map(float, moments.columns[:, 0])
    source = Source(REPEATED, False, measured("cosine", case))
    if n == 1 or m1 == 0:
        return float(np.sign(m1)), source
    count, chances = copies(keys, n)
    same = float(count @ chances) - 1
    far = max((n - 1) * mixed - same * square, 0.0) / max(n - 1 - same, 1e-9)
    own, own_weights = meanfield.own_share(tuple(map(float, moments.columns[:, 0])), 5)
    noise = (count - 1) * square / m1**2 + (n - count) * far / m1**2 / own[:, None]
    found = meanfield.cosine_of(values, np.maximum(noise, 1e-300))
    return float(np.sign(m1) * (own_weights @ found @ chances)), source


def _top1(
    case: Case, moments: TrialMoments, values: ValueLaw, law: KeyLaw | None, codebook: int
) -> tuple[float, Source]:
    n, c = case.num_pairs, float(case.query_cosine)
    if law is None:
        found = meanfield.expected_top1(moments, n, codebook, values)
        error = measured("nearest" if values.one_hot else "top1", case)
        return found, Source(f"{meanfield.FORMULA}; {moments.formula}", False, error)
    if values.one_hot:
        return _nearest(case, law.unit, codebook), Source(NEAREST, True, NONE)
    accuracy = float(c > 0 or codebook == 1)
    if n > 1:
        accuracy = top1.top1_accuracy(case.key_dim, values.dim, n, codebook, law.unit, c)
    return accuracy, Source(top1.FORMULA, False, TOP1_ERROR if abs(c) == 1 else NOISY_TOP1_ERROR)


def _nearest(case: Case, unit: bool, codebook: int) -> float:
    """Return the chance that no stored key scores higher than the own one; others of the codebook score 0."""
    n, d, c = case.num_pairs, case.key_dim, float(case.query_cosine)
    if codebook > n and c <= 0:
        return 0.0 if c < 0 else 0.5 ** (n - 1) / (codebook - n + 1)
    if n == 1 or (unit and c == 1):
        return 1.0
    if unit:
        return float(top1.sphere_table(d)(np.array(c)) ** (n - 1))
    half, weights = gamma_rule(d / 2, 24)
    return float(weights @ ndtr(c * np.sqrt(2 * half)) ** (n - 1))
