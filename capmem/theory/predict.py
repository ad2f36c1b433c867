"""Predicted metrics of a memory, from the kernel moments of its keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from capmem.ensembles import ArrayValues, Ensemble, GaussianValues, SphereValues
from capmem.feature_maps import Identity
from capmem.memory import LinearMemory, Memory
from capmem.readouts import Linear, Normalized
from capmem.schema import require
from capmem.theory import cosine, top1
from capmem.theory.base import Floats, Source, TheoryUnavailable, TrialMoments
from capmem.theory.laws import LAWS, KeyLaw, key_law
from capmem.theory.moments import trial_moments
from capmem.write_rules import Hebbian

MAX_CODEBOOK = 4096  # above it, experiments compete against a sample of the stored values

RAW = "e_raw = M2 - 2 m1 + 1 + (N-1) m2"
OPTIMAL = "e_opt = 1 - m1^2 / (M2 + (N-1) m2), averaged over trials"
RATIO = "SNR = m1^2 / (M2 - m1^2 + (N-1) m2), averaged over trials"

NORMALIZED_ERROR = (
    "at d >= 16, N = 8 and 64: 1.4%, 0.4% (ReLU, ELU+1); unit keys 0.1% at N = 64; DPFP 8%, 2% low for unit keys, "
    "20%, 4% low for Gaussian ones, squared ReLU and exp 6-13% low at N = 8"
)
MEAN_FIELD = "e_raw = (((N-1) mu)^2 + (N-1) m2) / (m1 + (N-1) mu)^2: the denominator by its mean"

RATIO_ERROR = (
    "a trial's ratio is taken as the ratio of its means, too high where N is small, more so where v is; at v = 64: "
    "identity, ReLU 15-20% at N = 4, 3-7% at N = 8, below 1% from N = 64; DPFP, squared ReLU, "
    "exp 50%, 9-25%, 1-6%; at v = 4 twice that"
)
ODDS_ERROR = (
    "that of the scale-optimal error e, as it moves 1/e - 1, too low: at v = 64 and N = 8 by 4-10% (identity, "
    "ReLU) or 15-27% (DPFP, squared ReLU, exp), by 85% and more below N = 4"
)
COSINE_ERROR = "within 0.2% for d, v >= 32, 0.6% at 16, 4% at d = 2, v = 4"
TOP1_ERROR = (
    "up to 1.5% low at d, v >= 16, 4% with noisy cues; at d, v = 8 up to 5%, at v = 4 up to 15%; for cues at "
    "right angles to the key up to 3% high"
)

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
        A :class:`LinearMemory` with the Hebbian write rule. With a normalised read-out only the relative
        squared error is predicted.
    keys : Ensemble
        The key law.
    key_dim, value_dim, num_pairs : int
        d, v, N.
    values : Ensemble, optional
        The value law (default: :class:`SphereValues`), of mean zero.
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
    require(-1 <= query_cosine <= 1, "query_cosine", query_cosine, "a number from -1 to 1")
    values = SphereValues() if values is None else values
    memory = _covered(memory, values)
    moments = _with_cue(memory, keys, key_dim, query_cosine, trial_moments(memory, keys, key_dim, num_pairs))
    numbers: dict[str, float] = {}
    sources: dict[str, Source] = {}
    if isinstance(memory.readout, Linear):
        _errors(moments, num_pairs, numbers, sources)
    elif memory.readout == Normalized():
        _normalized_error(moments, num_pairs, numbers, sources)
    codebook = codebook_size
    if codebook is None and num_pairs <= MAX_CODEBOOK:
        codebook = num_pairs
    _angles(memory, keys, values, (key_dim, value_dim, num_pairs), query_cosine, codebook, numbers, sources)
    if not numbers:
        raise TheoryUnavailable("no formula for a normalised read-out with an epsilon")
    return Prediction(**numbers, sources=MappingProxyType(sources))


def _covered(memory: Memory, values: Ensemble) -> LinearMemory:
    if not isinstance(memory, LinearMemory):
        raise TheoryUnavailable(f"no formula for a {type(memory).__name__}")
    if type(memory.write_rule) is not Hebbian:
        raise TheoryUnavailable(f"no formula for the write rule {type(memory.write_rule).__name__}")
    if memory.feature_map.positional:
        raise TheoryUnavailable("no formula for a map that depends on the place of a key")
    if hasattr(memory.feature_map, "seed"):
        raise TheoryUnavailable("no formula for a random map: its draw differs from trial to trial")
    if type(memory.readout) not in (Linear, Normalized):
        raise TheoryUnavailable(f"no formula for the read-out {type(memory.readout).__name__}")
    centred = memory.feature_center == "mean"
    if isinstance(memory.readout, Normalized) and (centred or not memory.feature_map.positive_kernel):
        raise TheoryUnavailable("no formula for a normalised read-out of a kernel that can be negative")
    if isinstance(values, ArrayValues):
        raise TheoryUnavailable("values of a file are not independent of one another and of the keys")
    if type(values) not in (SphereValues, GaussianValues):
        raise TheoryUnavailable(f"no formula for values of the law {type(values).__name__}")
    if getattr(values, "mean", 0.0) not in (0, 0.0, None):
        raise TheoryUnavailable("no formula for values with a common mean")
    if memory.state_dtype not in (None, "float64", "float32"):
        raise TheoryUnavailable(f"no formula for a state held in {memory.state_dtype}")
    return memory


def _isotropic_law(memory: LinearMemory, keys: Ensemble, key_dim: int) -> KeyLaw | None:
    """Return the law of independent isotropic keys under the identity map, else None."""
    if type(memory.feature_map) is not Identity or type(keys) not in LAWS or memory.feature_norm == "sum":
        return None
    law = key_law(memory, keys, key_dim)
    if law.independent and memory.feature_norm == "l2":
        return KeyLaw(unit=True)
    return law if law.independent else None


def _with_cue(
    memory: LinearMemory, keys: Ensemble, key_dim: int, query_cosine: float, moments: TrialMoments
) -> TrialMoments:
    """Return the moments for q = |k| (c k/|k| + sqrt(1 - c^2) w), w a unit vector across k."""
    if query_cosine == 1:
        return moments
    raw = _isotropic_law(memory, keys, key_dim)
    if raw is None or not key_law(LinearMemory(Identity()), keys, key_dim).independent:
        raise TheoryUnavailable(
            f"cues of cosine {query_cosine} are covered for the identity map on independent isotropic keys only"
        )
    c = query_cosine
    factors = np.array([[c], [c * c], [1.0], [1.0]])
    return moments._replace(columns=factors * moments.columns, formula=f"q.k = c |k|^2; {moments.formula}")


def _errors(moments: TrialMoments, num_pairs: int, numbers: dict[str, float], sources: dict[str, Source]) -> None:
    """Fill in the metrics that are ratios of moments."""
    m1, M2, _, m2 = moments.columns
    weights = moments.weights
    power = M2 + (num_pairs - 1) * m2
    # keys without a feature (ReLU of negative keys) read as 0, which explains nothing
    explained = np.divide(m1**2, power, out=np.zeros_like(power), where=power > 0).clip(max=1)
    numbers["relative_squared_error"] = float(weights @ (power - 2 * m1 + 1))
    numbers["scale_optimal_error"] = float(weights @ (1 - explained))
    numbers["signal_to_noise"] = _odds(weights, explained)
    note = RATIO_ERROR
    error = note if moments.exact else f"{moments.known_error}; {note}"
    sources["relative_squared_error"] = Source(f"{RAW}; {moments.formula}", moments.exact, moments.known_error)
    sources["scale_optimal_error"] = Source(f"{OPTIMAL}; {moments.formula}", False, error)
    odds = ODDS_ERROR if moments.exact else f"{moments.known_error}; {ODDS_ERROR}"
    sources["signal_to_noise"] = Source(f"{RATIO}; {moments.formula}", False, odds)


def _normalized_error(
    moments: TrialMoments, num_pairs: int, numbers: dict[str, float], sources: dict[str, Source]
) -> None:
    """Fill in the error of a weighted mean of values, weights kappa_j / sum kappa."""
    m1, _, mu, m2 = moments.columns
    others = num_pairs - 1
    total = m1 + others * mu
    error = np.ones_like(total)  # what reading 0 gives, where no key has a feature
    np.divide((others * mu) ** 2 + others * m2, total**2, out=error, where=total > 0)
    numbers["relative_squared_error"] = float(moments.weights @ error)
    note = f"{NORMALIZED_ERROR}; moments: {moments.known_error}"
    sources["relative_squared_error"] = Source(f"{MEAN_FIELD}; {moments.formula}", False, note)


def _odds(weights: Floats, explained: Floats) -> float:
    """Return the mean of explained / (1 - explained), infinite where nothing is left to explain."""
    rest = np.where(explained > 1 - 1e-14, 0.0, 1 - explained)
    with np.errstate(divide="ignore"):
        return float(weights @ (explained / rest))


def _angles(
    memory: LinearMemory,
    keys: Ensemble,
    values: Ensemble,
    sizes: tuple[int, int, int],
    query_cosine: float,
    codebook: int | None,
    numbers: dict[str, float],
    sources: dict[str, Source],
) -> None:
    """Fill in cosine and top-1 accuracy, where keys are isotropic and the map is the identity."""
    law = _isotropic_law(memory, keys, sizes[0])
    if law is None:
        return
    key_dim, value_dim, num_pairs = sizes
    fixed = type(values) is SphereValues
    numbers["cosine_similarity"] = _cosine(law.unit, fixed, sizes, query_cosine)
    formula = cosine.FIXED_NORM if fixed else cosine.GAUSSIAN
    sources["cosine_similarity"] = Source(formula, False, COSINE_ERROR)
    if fixed and codebook is not None and value_dim > 1 and key_dim > 1:
        if codebook < num_pairs:
            raise ValueError(f"codebook_size must be at least num_pairs = {num_pairs}, got {codebook}")
        accuracy = float(query_cosine > 0 or codebook == 1)
        if num_pairs > 1:
            accuracy = top1.top1_accuracy(key_dim, value_dim, num_pairs, codebook, law.unit, float(query_cosine))
        numbers["top1_accuracy"] = accuracy
        sources["top1_accuracy"] = Source(top1.FORMULA, False, TOP1_ERROR)


def _cosine(unit: bool, fixed: bool, sizes: tuple[int, int, int], gain: float) -> float:
    key_dim, value_dim, num_pairs = sizes
    if num_pairs == 1:
        return float(np.sign(gain))
    noise, weights = cosine.crosstalk_rule(key_dim, num_pairs, unit)
    expected = cosine.fixed_norm_cosine if fixed else cosine.gaussian_cosine
    return float(weights @ expected(value_dim, noise, gain))
