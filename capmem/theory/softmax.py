"""Softmax memories of independent keys, the denominator in the mean field: kappa = exp(beta q . k)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, hyp0f1, ive, ndtr

from capmem.ensembles import OrthonormalKeys, RademacherKeys, TightFrameKeys
from capmem.memory import SoftmaxMemory
from capmem.theory import top1
from capmem.theory.base import Floats, Source, TheoryUnavailable, TrialMoments
from capmem.theory.case import Case, Numbers
from capmem.theory.denominator import own_nodes, weights_of
from capmem.theory.hebbian import divided_numbers
from capmem.theory.known import Bound, Known, by_dim
from capmem.theory.laws import LAWS, reduced
from capmem.theory.meanfield import COARSE, cosine_of
from capmem.theory.quadrature import gamma_rule
from capmem.theory.values import ValueLaw, value_law

FORMULA = (
    "kappa_ii = e^(beta c |k|^2), E e^(s beta q . k') = 0F1(; d/2; s^2 beta^2/4) on the sphere, e^(s^2 beta^2 |k|^2/2) "
    "for N(0, 1) coordinates"
)
RARE = "where beta > sqrt(d) few pairs decide the mean, and a sample strays from it by tens of percent"
COSINE_ERROR = Known("0.1% at N <= 64, 1.5% at N = 400, 2.5% at d = 16 and beta = 1", 0.025)
ERRORS = (Known(f"2%; {RARE}", 0.02), Known(f"3%; {RARE}", 0.03), Known(f"6%; {RARE}", 0.06), COSINE_ERROR)


def _sizes(small: tuple[float, float, float], large: tuple[float, float, float]) -> Bound:
    """Return a bound: below d = 32 and from there on, each for N below 16, below 32, and more."""

    def at(key_dim: int, value_dim: int, num_pairs: int) -> float:
        return (large if key_dim >= 32 else small)[(num_pairs >= 16) + (num_pairs >= 32)]

    return at


def _dims(least: float, small: float, large: float) -> Bound:
    """Return a bound below d = 8, below d = 32, and from there on."""
    return lambda key_dim, value_dim, num_pairs: large if key_dim >= 32 else small if key_dim >= 8 else least


FLAT = 2.05  # standard deviations 2 beta E|k| reach: those of beta = 1/sqrt(d) are below
FLAT_ERRORS = (  # raw, optimal, odds, cosine; for Gaussian keys, N = 2 to 48, d = 2 to 48, cues of cosine 0.5 to 1
    Known(f"4%; {RARE}", 0.04),
    Known(
        f"low: 32% at N < 16, d < 32 (13% at d = 16, cosine 0.7), 12% at N = 16, 1% at N = 48; 9% at d >= 32; {RARE}",
        _sizes((0.35, 0.15, 0.05), (0.1, 0.1, 0.05)),
    ),
    Known(
        f"74% high at d = 16, N <= 16, 8% at N = 48; at d >= 32 60%, 34%, 6% at N = 8, 16, 48; {RARE}",
        _sizes((0.75, 0.75, 0.1), (0.6, 0.4, 0.17)),
    ),
    Known("high for cues of cosine 0.5: 30% at d = 8, 5% at d >= 32; 17% exact ones at d = 3", by_dim(0.3, 32, 0.05)),
)
STEEP_ERRORS = (  # the same for larger beta
    Known(f"26%, cues of cosine 0.5; {RARE}", 0.3),
    Known(f"low: 46% below d = 8, 37% below d = 32, 25% above; {RARE}", _dims(0.5, 0.4, 0.3)),
    Known(f"more than 70%; {RARE}", 0.75),
    Known("cues of cosine 0.5: 39% low below d = 8, 20% at d = 8 to 31, 12% high at d >= 32", _dims(0.4, 0.3, 0.15)),
)
TOP1_ERROR = Known(
    "12% at d = 16, or where it is below 0.01; else 1% at N <= 64, 6% at N = 400", by_dim(0.12, 32, 0.06)
)

SEEN = 3.5  # standard deviations that 2 beta E|k| may reach; at 4.7 errors are up to 80%
LARGEST = 300.0  # of a logarithm

Chance = Callable[[Floats], Floats]


class Scores(NamedTuple):
    """The law of scores beta q . k, given the norm of the own key, at nodes (A,).

    Attributes
    ----------
    weights : array (A,)
        Of the nodes.
    own : array (A,)
        beta q_i . k_i.
    growth : function of s
        log E e^(s beta q . k') (A,), for another key k'.
    below : list of A functions
        The chance that a competitor's kappa is below x kappa_ii.
    notes : tuple of Known
        What is known of the errors of e_raw, e_opt, SNR and cosine.
    """

    weights: Floats
    own: Floats
    growth: Callable[[float], Floats]
    below: list[Chance]
    notes: tuple[Known, Known, Known, Known] = ERRORS


def softmax_numbers(case: Case) -> Numbers:
    """Return the predicted metrics of softmax attention over N pairs.

    Raises
    ------
    TheoryUnavailable
        For more than one step, or keys that are not independent and isotropic.

    Notes
    -----
    SNR = 1 is at N = e^(2 beta) / 0F1(; d/2; beta^2) on the sphere: it grows as e^(d/2) where beta may too
    (Zhong, Xu, Ao, Shi 2025, arXiv 2505.19488).
    """
    memory = case.memory
    assert isinstance(memory, SoftmaxMemory)
    if memory.steps != 1:
        raise TheoryUnavailable("no formula for more than one step of a softmax memory")
    values, scores = value_law(case.values, case.value_dim), _scores(case, memory)
    others = case.num_pairs - 1
    mean, square = (np.exp(np.minimum(scores.growth(p) - p * scores.own, LARGEST)) for p in (1.0, 2.0))
    one = np.ones_like(mean)
    weights = weights_of(one, mean, np.maximum(square - mean**2, 0), scores.weights, case.num_pairs)
    moments = TrialMoments(np.ones(1), np.array(weights)[:, None], False, FORMULA)
    fourth = np.exp(np.minimum(scores.growth(4.0) - 2 * scores.growth(2.0), LARGEST))
    numbers = divided_numbers(moments, case.num_pairs, values, scores.notes[:3], fourth=_typical(scores, fourth))
    if values.common or others == 0:
        return numbers
    spread = fourth - 1
    return numbers | _angles(case, scores, others * square, spread / others, values)


def _typical(scores: Scores, values: Floats) -> float:
    """Return the geometric mean over norms: the arithmetic one is that of rare large norms, whose weights saturate."""
    return float(np.exp(scores.weights @ np.log(values)))


def _scores(case: Case, memory: SoftmaxMemory) -> Scores:
    d, c, keys = case.key_dim, case.query_cosine, reduced(case.keys)
    beta = d**-0.5 if memory.beta is None else float(memory.beta)
    if type(keys) is OrthonormalKeys or (type(keys) is TightFrameKeys and case.num_pairs <= d):
        if c != 1:
            raise TheoryUnavailable("no formula for noisy cues to orthonormal keys in a softmax memory")
        return _single(beta, lambda s: 0.0, lambda x: np.asarray(x > np.exp(-beta), np.float64))
    if type(keys) is RademacherKeys:
        if c != 1:
            raise TheoryUnavailable("no formula for noisy cues to RademacherKeys in a softmax memory")
        step = beta / d
        return _single(
            beta,
            lambda s: d * (abs(s * step) + np.log1p(np.exp(-2 * abs(s * step))) - np.log(2)),
            lambda x: np.asarray(ndtr(d**0.5 * _level(x, 1.0, beta))),
        )
    if type(keys) not in LAWS or not LAWS[type(keys)](keys, d).independent:
        raise TheoryUnavailable(f"no formula for a softmax memory of keys of the law {type(keys).__name__}")
    law = LAWS[type(keys)](keys, d)
    if law.unit:
        table = top1.sphere_table(d)
        return _single(c * beta, lambda s: log_0f1(d, s * beta), lambda x: table(_level(x, c, beta)))
    half, weights = gamma_rule(d / 2, 8)
    spread = law.scale / d**0.5
    norms = spread * np.sqrt(2 * half)
    reach = 2 * beta * float(weights @ norms) * spread
    if reach > SEEN:
        raise TheoryUnavailable(f"E kappa^2 lies beyond {SEEN:g} standard deviations of the scores, unseen")
    notes = FLAT_ERRORS if reach <= FLAT else STEEP_ERRORS
    below = [_normal_below(norm, spread, c, beta) for norm in norms]
    return Scores(weights, c * beta * norms**2, lambda s: (s * beta * spread * norms) ** 2 / 2, below, notes)


def _single(own: float, growth: Callable[[float], float], below: Chance) -> Scores:
    return Scores(np.ones(1), np.array([own]), lambda s: np.array([growth(s)]), [below])


def _level(x: Floats, own: float, beta: float) -> Floats:
    """Return the q . k' at which kappa is x kappa_ii; far below all scores where x is not positive."""
    with np.errstate(divide="ignore"):
        return np.asarray(own + np.log(np.maximum(x, 0)) / beta)


def _normal_below(norm: float, spread: float, c: float, beta: float) -> Chance:
    return lambda x: np.asarray(ndtr(_level(x, c * norm**2, beta) / (norm * spread)))


def log_0f1(dim: int, x: float) -> float:
    """Return log E e^(x t) of a coordinate t of a uniform unit vector, log 0F1(; d/2; x^2/4)."""
    x = abs(x)
    order = dim / 2 - 1
    scaled = ive(order, x)
    if x > 1 and scaled > 1e-250:
        return float(gammaln(dim / 2) + order * np.log(2 / x) + np.log(scaled) + x)
    return float(np.log(hyp0f1(dim / 2, x * x / 4)))


def _angles(case: Case, scores: Scores, noise: Floats, spread: Floats, values: ValueLaw) -> Numbers:
    """Return cosine and top-1 accuracy; a positive denominator changes neither.

    Parameters
    ----------
    case, scores, values
        What is asked.
    noise, spread : array (A,)
        Mean of T = sum_j kappa_ij^2 / kappa_ii^2, and its variance over its squared mean.
    """
    found: Numbers = {}
    rules = [own_nodes(float(s), 7) for s in spread]
    cosines = [w @ cosine_of(values, np.maximum(t * x, 1e-300)) for t, (x, w) in zip(noise, rules, strict=True)]
    cosine_mean = min(float(scores.weights @ cosines), 1.0)
    found["cosine_similarity"] = (cosine_mean, Source(f"E over T; {FORMULA}", False, scores.notes[3]))
    n, codebook = case.num_pairs, case.codebook
    if codebook is None or not (values.one_hot or (values.fixed_norm and values.dim > 1)):
        return found
    if values.one_hot:
        chances = [float(below(np.ones(()))) ** (n - 1) for below in scores.below]
    else:
        rules = [own_nodes(float(s), 3) for s in spread]
        chances = [
            float(w @ top1.win(t * x, values.dim, n, codebook, 1.0, below, COARSE))
            for t, (x, w), below in zip(noise, rules, scores.below, strict=True)
        ]
    accuracy = min(float(scores.weights @ chances), 1.0)
    found["top1_accuracy"] = (accuracy, Source(f"{top1.FORMULA}; {FORMULA}", False, TOP1_ERROR))
    return found
