"""Every number of the mathematics pages, recomputed by another route, compared with the page and with the library."""

import math
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import betainc, ndtr, stdtr

from capmem import LinearMemory, capacity
from capmem.ensembles import (
    AutoregressiveKeys,
    ClusteredKeys,
    DuplicatedKeys,
    EquicorrelatedKeys,
    GaussianKeys,
    GaussianValues,
    OneHotValues,
    PowerLawKeys,
    SphereKeys,
    TightFrameKeys,
)
from capmem.feature_maps import (
    Dpfp,
    EluPlusOne,
    Exp,
    Identity,
    Polynomial,
    PositiveRandomFeatures,
    RandomFourierFeatures,
    RandomReLU,
    ReLU,
    SiLU,
    Softplus,
    SquaredReLU,
    Taylor,
)
from capmem.memory import SoftmaxMemory
from capmem.precision import round_to
from capmem.readouts import Normalized, RMSNorm
from capmem.replications.schlag2021 import stale_floor
from capmem.theory import classical, effective_dimension, moments, predict, predict_by_age
from capmem.theory.cosformer import place_weights
from capmem.theory.cosine import crosstalk_rule
from capmem.theory.cues import cue_moments
from capmem.theory.kernels import KERNELS
from capmem.theory.sequences import unit_mean
from capmem.theory.softmax import log_0f1
from capmem.write_rules import Decay, Delta, GatedDelta, LeastSquares, Oja

DOCS = Path(__file__).parents[1] / "docs"
ROW = re.compile(r"^\| (\d+\.\d+) \| (.+) \| ([^|]+) \|$", re.MULTILINE)
STATED = re.compile(r"within ([\d.]+)%")
ERRORS = 4.0  # standard errors that an independent number may be off
ROUNDING = 2e-6  # relative, of numbers that are not drawn

PLAIN = LinearMemory(Identity())
QUARTER = LinearMemory(Identity(), key_scale=0.25)
RELU = LinearMemory(ReLU(), key_scale=0.25)
S16 = {"key_dim": 16, "value_dim": 16}
S64 = {"key_dim": 64, "value_dim": 64}


class Found(NamedTuple):
    """Numbers by an independent route, and their standard errors."""

    values: Any
    errors: Any = 0.0


class Claim(NamedTuple):
    """A row of a page: the library's numbers, or the formula's; another route; what a mistake would give."""

    formula: Callable[[], Any]
    route: Callable[[], Found]
    wrong: Any
    known: float


CLAIMS: dict[str, Claim] = {}


def claim(number: str, formula: Callable[[], Any], wrong: Any = None, known: float = 0.0) -> Any:
    """Register the route of a claim; `known` is the relative error that the page states for an approximation."""

    def register(route: Callable[[], Found]) -> Callable[[], Found]:
        assert number not in CLAIMS
        CLAIMS[number] = Claim(formula, lru_cache(route), wrong, known)
        return route

    return register


def pages() -> dict[str, str]:
    """Return the texts of the pages by their number: the first character of their first heading."""
    texts = [path.read_text() for path in sorted((DOCS / "mathematics").glob("*.md"))]
    return {text[2]: text for text in texts}


def on_pages() -> dict[str, tuple[str, list[str]]]:
    """Return what each claim is about, and its values, as they are written."""
    rows = [row for text in pages().values() for row in ROW.findall(text)]
    return {number: (what, cell.split(", ")) for number, what, cell in rows}


def agrees(written: list[str], values: Any) -> bool:
    """Return whether numbers are what is written, to half a unit of its last place."""
    values = np.atleast_1d(values)
    places = [10.0 ** (int(w.partition("e")[2] or 0) - len(w.partition("e")[0].partition(".")[2])) for w in written]
    return len(values) == len(written) and all(
        abs(float(w) - x) <= 0.5001 * place for w, x, place in zip(written, values, places, strict=True)
    )


def near(found: Found, values: Any, known: float) -> bool:
    """Return whether numbers agree with those of another route."""
    values = np.asarray(values, dtype=float)
    allowed = ERRORS * np.asarray(found.errors) + (known + ROUNDING) * np.abs(values)
    return bool(np.all(np.abs(found.values - values) <= allowed))


# ------------------------------------------------------------------------------------------------ draws and readings


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng([20, seed])


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def sphere(rng, *shape):
    return unit(rng.standard_normal(shape))


def average(samples) -> Found:
    samples = np.asarray(samples)
    return Found(samples.mean(axis=0), samples.std(axis=0) / math.sqrt(len(samples)))


def read(keys, values, cues=None):
    """Return what S = sum k v^T gives for cues (T, N, d), the stored keys by default."""
    return (keys if cues is None else cues) @ (keys.mT @ values)


def raw(read_out, values):
    return np.sum((read_out - values) ** 2, axis=(1, 2)) / np.sum(values**2, axis=(1, 2))


def optimal(read_out, values):
    product, power, total = (np.sum(x, axis=(1, 2)) for x in (read_out * values, read_out**2, values**2))
    return 1 - product**2 / (power * total)


def equicorrelated(rng, trials, n, d, c, fixed=False, norm=True):
    u = rng.standard_normal((trials, 1, d)) / math.sqrt(d)
    u = unit(u) if fixed else u
    keys = math.sqrt(c) * u + math.sqrt(1 - c) * rng.standard_normal((trials, n, d)) / math.sqrt(d)
    return unit(keys) if norm else keys


def noisy(rng, keys, c):
    """Return cues of cosine c, of the norm of their keys."""
    direction = unit(keys)
    across = rng.standard_normal(keys.shape)
    across = unit(across - np.sum(across * direction, axis=-1, keepdims=True) * direction)
    return np.linalg.norm(keys, axis=-1, keepdims=True) * (c * direction + math.sqrt(1 - c * c) * across)


def written(keys, values, step=1.0, rate=1.0):
    """Return S after S <- a (S + b k (v - S^T k)^T) with the new value not decayed, one pair after the other."""
    state = np.zeros((len(keys), keys.shape[2], values.shape[2]))
    for i in range(keys.shape[1]):
        k, v = keys[:, i, :, None], values[:, i, None, :]
        state = rate * (state - step * k @ (k.mT @ state)) + step * k @ v
    return state


# --------------------------------------------------------------------------------------------------- 1: crosstalk


@lru_cache
def crosstalk_powers():
    rng = rng_of(1)
    keys = sphere(rng, 20_000, 8, 16)
    return np.sum((keys[:, 1:] @ keys[:, 0, :, None])[..., 0] ** 2, axis=1)


@claim("1.1", lambda: crosstalk_mean(16, 8), wrong=8 / 16)
def mean_crosstalk():
    return average(crosstalk_powers())


def crosstalk_mean(d, n):
    nodes, weights = crosstalk_rule(d, n, True)
    return weights @ nodes


@claim(
    "1.2", lambda: crosstalk_rule(16, 8, True)[1] @ (crosstalk_rule(16, 8, True)[0] - 7 / 16) ** 2, wrong=7 * 2 / 256
)
def variance_of_crosstalk():
    powers = crosstalk_powers()
    return average((powers - powers.mean()) ** 2)


@lru_cache
def sphere_memory():
    rng = rng_of(2)
    keys, values = sphere(rng, 16_000, 8, 16), sphere(rng, 16_000, 8, 8)
    return read(keys, values), values


@claim("1.3", lambda: predict(PLAIN, SphereKeys(), 16, 8, 8).relative_squared_error, wrong=8 / 16)
def raw_error_of_unit_keys():
    return average(raw(*sphere_memory()))


@claim("1.4", lambda: predict(PLAIN, SphereKeys(), 16, 8, 8).scale_optimal_error, wrong=7 / 23, known=0.005)
def optimal_error_of_unit_keys():
    return average(optimal(*sphere_memory()))


@claim("1.5", lambda: predict(PLAIN, SphereKeys(), 16, 8, 8).signal_to_noise, wrong=16 / 7, known=0.02)
def signal_to_noise_of_unit_keys():
    return average(1 / optimal(*sphere_memory()) - 1)


@lru_cache
def gaussian_memory():
    rng = rng_of(3)
    keys, values = rng.standard_normal((20_000, 8, 16)) / 4, sphere(rng, 20_000, 8, 8)
    return keys, values, read(keys, values)


@claim("1.6", lambda: predict(QUARTER, GaussianKeys(), 16, 8, 8).relative_squared_error,
       wrong=7 / 16)  # fmt: skip
def raw_error_of_gaussian_keys():
    _, values, found = gaussian_memory()
    return average(raw(found, values))


@claim("1.7", lambda: (8 - 1) / (16 - 2), wrong=7 / 16)
def gaussian_keys_with_each_reading_divided_by_the_norm():
    keys, values, found = gaussian_memory()
    return average(raw(found / np.sum(keys**2, axis=2, keepdims=True), values))


@claim("1.8", lambda: predict(PLAIN, SphereKeys(), 16, 8, 8, query_cosine=0.6).relative_squared_error,
       wrong=0.4**2 + 0.6**2 * 7 / 16)  # fmt: skip
def raw_error_of_noisy_cues():
    rng = rng_of(4)
    keys, values = sphere(rng, 10_000, 8, 16), sphere(rng, 10_000, 8, 8)
    return average(raw(read(keys, values, noisy(rng, keys, 0.6)), values))


@claim("1.9", lambda: predict(RELU, GaussianKeys(), 16, 8, 8,
                              values=GaussianValues(mean=0.5)).relative_squared_error,
       wrong=lambda: predict(RELU, GaussianKeys(), 16, 8, 8).relative_squared_error)  # fmt: skip
def values_with_a_common_mean():
    rng = rng_of(5)
    features = np.maximum(rng.standard_normal((20_000, 8, 16)) / 4, 0)
    values = 0.5 + rng.standard_normal((20_000, 8, 8))
    errors = np.sum((read(features, values) - values) ** 2, axis=(1, 2))
    return average(errors / (8 * 8 * 1.25))


# --------------------------------------------------------------------------------------------- 2: keys with structure


@lru_cache
def cosines_of_correlated_pairs():
    keys = equicorrelated(rng_of(6), 60_000, 2, 16, 0.5)
    return np.sum(keys[:, 0] * keys[:, 1], axis=1)


@claim("2.1", lambda: moments(PLAIN, EquicorrelatedKeys(0.5), 16).cross_square, wrong=0.25 + 0.75**2 / 16)
def mean_square_cosine_of_correlated_keys():
    return average(cosines_of_correlated_pairs() ** 2)


@claim("2.2", lambda: unit_mean(np.array(0.5), 16), wrong=0.5)
def mean_cosine_of_correlated_keys():
    return average(cosines_of_correlated_pairs())


@claim("2.3", lambda: [predict(PLAIN, EquicorrelatedKeys(0.5, False, fixed), 16, 8, 8).relative_squared_error
                       for fixed in (False, True)],
       wrong=[2 / 16 + 7 * (0.25 + 0.75 / 16), 7 * (0.25 + 0.75 / 16)])  # fmt: skip
def correlated_keys_without_norm():
    found = []
    for seed, fixed in enumerate((False, True)):
        rng = rng_of(7 + seed)
        keys, values = equicorrelated(rng, 12_000, 8, 16, 0.5, fixed, norm=False), sphere(rng, 12_000, 8, 4)
        found.append(average(raw(read(keys, values), values)))
    return Found(*np.array(found).T)


@claim("2.4", lambda: [predict(LinearMemory(Identity(), key_center=c), EquicorrelatedKeys(0.5), 64, 64,
                               128).scale_optimal_error for c in ("none", "mean")],
       wrong=[0.6649, 0.969])  # fmt: skip
def centring_gives_back_what_a_common_key_costs():
    rng = rng_of(9)
    u = rng.standard_normal((60, 1, 64))
    draws = [unit(u + rng.standard_normal((60, n, 64))) for n in (128, 1000)]
    values = sphere(rng, 60, 128, 64)
    centred = draws[0] - draws[1].mean(axis=1, keepdims=True)
    found = [average(optimal(read(keys, values), values)) for keys in (draws[0], centred)]
    return Found(*np.array(found).T)


@claim("2.5", lambda: predict(PLAIN, AutoregressiveKeys(0.9), 16, 4, 32).relative_squared_error,
       wrong=33 / 16 + (1 + 1 / 16) * 2 * 0.81 / 0.19)  # fmt: skip
def drifting_keys():
    rng = rng_of(10)
    keys = rng.standard_normal((4000, 32, 16))
    for i in range(1, 32):
        keys[:, i] = 0.9 * keys[:, i - 1] + math.sqrt(0.19) * keys[:, i]
    values = sphere(rng, 4000, 32, 4)
    return average(raw(read(unit(keys), values), values))


@claim("2.6", lambda: predict(PLAIN, ClusteredKeys(4, 0.7), 16, 4, 32).relative_squared_error,
       wrong=31 * (0.49 / 4 + 1 / 16))  # fmt: skip
def clustered_keys():
    rng = rng_of(11)
    centres = rng.standard_normal((3000, 4, 16))
    place = rng.integers(4, size=(3000, 32))
    around = np.take_along_axis(centres, place[..., None], 1)
    keys = math.sqrt(0.7) * around + math.sqrt(0.3) * rng.standard_normal(around.shape)
    values = sphere(rng, 3000, 32, 4)
    return average(raw(read(unit(keys), values), values))


@claim("2.7", lambda: predict(PLAIN, DuplicatedKeys(0.4), 16, 4, 12).relative_squared_error,
       wrong=lambda: (12 / 7.6 - 1) + (12 - 12 / 7.6) / 16)  # fmt: skip
def repeated_keys():
    """Each pair after the first takes, with chance .4, the key of any earlier pair; the latest value is asked for."""
    rng = rng_of(12)
    found = []
    for _ in range(2000):
        fresh, name = sphere(rng, 12, 16), np.arange(12)
        for i in range(1, 12):
            if rng.random() < 0.4:
                name[i] = name[rng.integers(i)]
        last = np.array([not (name[i + 1 :] == name[i]).any() for i in range(12)])
        gram = fresh[name] @ fresh[name].T
        found.append(np.mean(np.sum(gram**2, axis=1)[last]) - 1)
    return average(found)


@claim("2.8", lambda: effective_dimension(Identity(), PowerLawKeys(1.0), 64), wrong=64.0)
def participation_ratio_of_a_power_law():
    spectrum = 1 / np.arange(1, 65)
    x = rng_of(13).standard_normal((60, 200, 64)) * np.sqrt(spectrum / spectrum.sum())
    gram = x @ x.mT
    square = (np.sum(gram**2, axis=(1, 2)) - np.sum(np.einsum("tii->ti", gram) ** 2, axis=1)) / (200 * 199)
    inverse = average(square)
    return Found(1 / inverse.values, inverse.errors / inverse.values**2)


@claim("2.9", lambda: predict(LinearMemory(Identity(), key_norm="l2"), PowerLawKeys(1.0), 16, 4,
                              2).relative_squared_error,
       wrong=lambda: 1 / effective_dimension(Identity(), PowerLawKeys(1.0), 16))  # fmt: skip
def power_law_keys_once_normed():
    x = rng_of(14).standard_normal((80_000, 2, 16)) / np.sqrt(np.arange(1, 17))
    return average(np.sum(unit(x)[:, 0] * unit(x)[:, 1], axis=1) ** 2)


@claim("2.10", lambda: [getattr(predict(PLAIN, TightFrameKeys(), 8, 4, 12, values=GaussianValues()), name)
                        for name in ("scale_optimal_error", "signal_to_noise")],
       wrong=[4 / 12 * 1.1, 8 / 4])  # fmt: skip
def tight_frames():
    rng = rng_of(15)
    basis = np.linalg.qr(rng.standard_normal((12_000, 12, 8)))[0]
    values = rng.standard_normal((12_000, 12, 4))
    errors = optimal(basis @ (basis.mT @ values), values)
    return Found(*np.array([average(errors), average(1 / errors - 1)]).T)


@claim("2.11", lambda: [classical.welch_bound(100, 16) ** 2, classical.welch_bound(1000, 64) ** 2],
       wrong=[1 / 16, 1 / 64])  # fmt: skip
def welch_bound_is_met_by_harmonic_frames():
    found = []
    for n, d in ((100, 16), (1000, 64)):
        angle = 2 * np.pi * np.outer(np.arange(n), np.arange(1, d // 2 + 1)) / n
        frame = np.sqrt(2 / d) * np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        gram = frame @ frame.T
        found.append((np.sum(gram**2) - n) / (n * (n - 1)))
    return Found(np.array(found))


# ------------------------------------------------------------------------------------------------------ 3: feature maps

FUNCTIONS: dict[type, Callable[[Any], Any]] = {  # written out again
    Identity: lambda x: x,
    ReLU: lambda x: np.maximum(x, 0),
    SquaredReLU: lambda x: np.maximum(x, 0) ** 2,
    Exp: np.exp,
    EluPlusOne: lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))),
    Softplus: lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    SiLU: lambda x: x / (1 + np.exp(-x)),
}


def gaussian_power(f, p):
    def density(x):
        return float(f(np.float64(x))) ** p * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    return quad(density, -38, 0, epsabs=1e-12)[0] + quad(density, 0, 38, epsabs=1e-12, limit=200)[0]


def powers_of(kind):
    """Return E f, E f^2, E f^4 of N(0, 1) from the library's moments at d = 3."""
    found = moments(LinearMemory(kind()), GaussianKeys(), 3)
    second = found.self_mean / 3
    return [math.sqrt(found.cross_mean / 3), second, (found.self_square - 6 * second**2) / 3]


def claim_powers(number, kind, wrong):
    @claim(number, lambda: powers_of(kind), wrong)
    def route():
        return Found(np.array([gaussian_power(FUNCTIONS[kind], p) for p in (1, 2, 4)]))


for place, kind in enumerate((ReLU, SquaredReLU, Exp, EluPlusOne, Softplus, SiLU)):
    claim_powers(f"3.{place + 1}", kind, None)


@claim("3.7", lambda: [effective_dimension(kind(), GaussianKeys(), 64) for kind in FUNCTIONS])
def effective_dimension_of_elementwise_maps():
    pairs = [(gaussian_power(f, 1), gaussian_power(f, 2)) for f in FUNCTIONS.values()]
    return Found(np.array([64 / (1 + 63 * (a * a / b) ** 2) for a, b in pairs]))


@claim("3.8", lambda: [effective_dimension(kind(), GaussianKeys(), 16) for kind in FUNCTIONS])
def effective_dimension_from_draws():
    keys = rng_of(16).standard_normal((150, 200, 16))
    found = []
    for f in FUNCTIONS.values():
        gram = f(keys) @ f(keys).mT
        own = np.einsum("tii->ti", gram)
        square = (np.sum(gram**2, axis=(1, 2)) - np.sum(own**2, axis=1)) / (200 * 199)
        m1, m2 = own.mean(), square.mean()
        found.append(average(2 * m1 * own.mean(axis=1) / m2 - m1**2 * square / m2**2))  # to first order
    return Found(*np.array(found).T)


@claim("3.9", lambda: [effective_dimension(kind(), GaussianKeys(), 10**9)
                       for kind in (ReLU, SquaredReLU, Exp, EluPlusOne, Softplus)])  # fmt: skip
def limits_of_the_effective_dimension():
    maps = [FUNCTIONS[kind] for kind in (ReLU, SquaredReLU, Exp, EluPlusOne, Softplus)]
    return Found(np.array([(gaussian_power(f, 2) / gaussian_power(f, 1) ** 2) ** 2 for f in maps]))


def dpfp_second_moments(d, nu):
    """Return G = E phi phi^T and E phi of N(0, 1) keys, feature by feature."""
    index = np.array([(p, (p - i) % (2 * d)) for i in range(1, nu + 1) for p in range(2 * d)])
    one, other = index[:, None, :, None], index[None, :, None, :]
    shared = np.sum(one == other, axis=(2, 3))
    opposite = np.any((one - other) % (2 * d) == d, axis=(2, 3))
    first, second = (2 * np.pi) ** -0.5, 0.5
    return np.where(opposite, 0, np.array([first**4, second * first**2, second**2])[shared]), first**2


def dpfp_dimensions(centred):
    found = []
    for nu in (1, 2, 3):
        G, mean = dpfp_second_moments(64, nu)
        G = G - mean**2 if centred else G
        found.append(np.trace(G) ** 2 / np.sum(G**2))
    return Found(np.array(found))


@claim("3.10", lambda: [effective_dimension(Dpfp(nu), GaussianKeys(), 64) for nu in (1, 2, 3)], wrong=[128, 256, 384])
def effective_dimension_of_dpfp():
    return dpfp_dimensions(centred=False)


@claim("3.11", lambda: [effective_dimension(Dpfp(nu), GaussianKeys(), 64, feature_center="mean") for nu in (1, 2, 3)])
def effective_dimension_of_centred_dpfp():
    return dpfp_dimensions(centred=True)


@claim("3.12", lambda: [effective_dimension(Polynomial(2), GaussianKeys(), 16),
                        effective_dimension(Taylor(), GaussianKeys(), 16)], wrong=[136, 153])  # fmt: skip
def effective_dimension_of_polynomial_kernels():
    rng = rng_of(17)
    x, y = rng.standard_normal((2, 150_000, 16))
    dot = np.sum(x * y, axis=1)
    found = []
    for own, cross in ((16 * 18, dot**2), (1 + 4 + 9, 1 + dot / 4 + dot**2 / 32)):
        square = average(cross**2)
        found.append((own**2 / square.values, own**2 * square.errors / square.values**2))
    return Found(*np.array(found).T)


@claim("3.13", lambda: [effective_dimension(RandomReLU(16), SphereKeys(), 8),
                        effective_dimension(RandomReLU(10**9), SphereKeys(), 64)], wrong=[9.36, 9.87])  # fmt: skip
def effective_dimension_of_random_relu():
    rng = rng_of(18)
    w = rng.standard_normal((30_000, 8, 16)) / 4
    phi = [np.maximum((sphere(rng, 30_000, 8)[:, None] @ w)[:, 0], 0) for _ in range(2)]
    square = average(np.sum(phi[0] * phi[1], axis=1) ** 2)
    drawn = 0.25 / square.values

    def kernel(t):
        return (math.sqrt(1 - t * t) + (math.pi - math.acos(t)) * t) / (2 * math.pi)

    def density(t):
        return (1 - t * t) ** (61 / 2)

    limit = 0.25 * quad(density, -1, 1)[0] / quad(lambda t: kernel(t) ** 2 * density(t), -1, 1)[0]
    return Found(np.array([drawn, limit]), np.array([drawn * square.errors / square.values, 0]))


X, COSINE, DIM = 0.45, 0.5, 8  # norms of x and y after the scaling, their cosine, and d = m


Z2 = 2 * X * X * (1 + COSINE)  # |x + y|^2


def relative_variance(feature_map):
    kernel = KERNELS[type(feature_map)](feature_map, DIM)
    x, t = np.full(1, X), np.full(1, COSINE)
    return float((kernel.total(x, x, t) / kernel.mean(x, x, t) ** 2 - 1)[0])


@claim("3.14", lambda: [relative_variance(PositiveRandomFeatures(DIM, orthogonal=o, hyperbolic=h))
                        for o in (False, True) for h in (False, True)],
       wrong=[math.exp(Z2) / DIM, math.expm1(Z2) / DIM / 2, math.expm1(Z2) / DIM,
              -math.expm1(-Z2) * math.expm1(Z2) / DIM / 2])  # fmt: skip
def variance_of_positive_random_features():
    rng = rng_of(48)
    w = rng.standard_normal((40_000, DIM, DIM))
    q, r = np.linalg.qr(rng.standard_normal((40_000, DIM, DIM)))
    q = q * np.sign(np.einsum("tii->ti", r))[:, None]
    turned = q.mT * np.linalg.norm(rng.standard_normal((40_000, DIM, DIM)), axis=2, keepdims=True)
    z = np.zeros(DIM)
    z[:2] = X * (1 + COSINE), X * math.sqrt(1 - COSINE**2)
    norms, mean = X * X, math.exp(X * X * COSINE)
    found = []
    for rows in (w, turned):
        for f in (np.exp, np.cosh):
            kernel = math.exp(-norms) * f(rows @ z).mean(axis=1)
            found.append(average((kernel / mean - 1) ** 2))
    return Found(*np.array(found).T)


@claim("3.15", lambda: relative_variance_fourier(), wrong=(1 - math.exp(-1)) ** 2 / 8)
def variance_of_random_fourier_features():
    w = rng_of(20).standard_normal((30_000, 8, DIM))
    kernel = np.cos(w[..., 0]).mean(axis=1)  # |x - y| = 1
    return average((kernel - math.exp(-0.5)) ** 2)


def relative_variance_fourier():
    kernel = KERNELS[RandomFourierFeatures](RandomFourierFeatures(8), DIM)
    x, t = np.ones(1), np.full(1, 0.5)
    return float((kernel.total(x, x, t) - kernel.mean(x, x, t) ** 2)[0])


@claim("3.16", lambda: [0.8, 1.2], wrong=[1, 1], known=0.002)
def kernel_from_a_qr_whose_signs_are_not_set():
    rng = rng_of(21)
    q = np.linalg.qr(rng.standard_normal((10_000, 16, 16)))[0]
    rows = q.mT * np.linalg.norm(rng.standard_normal((10_000, 16, 16)), axis=2, keepdims=True)
    along = math.sqrt(2 / 16) * rows.sum(axis=2)
    found = [average(np.exp(sign * along - 1).mean(axis=1)) for sign in (1, -1)]
    return Found(*np.array(found).T)


@claim("3.17", lambda: list(place_weights(32, 64)))
def weights_of_cosformer():
    gaps = np.subtract.outer(np.arange(32), np.arange(32))[~np.eye(32, dtype=bool)]
    weights = np.cos(np.pi * gaps / 128)
    return Found(np.array([weights.mean(), (weights**2).mean()]))


@claim("3.18", lambda: cue_moments(LinearMemory(ReLU()), GaussianKeys(), 16, 0.6).average().self_mean, wrong=8 * 0.6)
def kernel_of_a_noisy_cue_through_relu():
    rng = rng_of(22)
    keys = rng.standard_normal((40_000, 1, 16))
    return average(np.sum(np.maximum(keys, 0) * np.maximum(noisy(rng, keys, 0.6), 0), axis=(1, 2)))


@claim("3.19", lambda: 32 * 64 / (32 + 64 - 1), wrong=64)
def plug_in_participation_ratio():
    """Of unit keys: |K|_F^2 in the mean over draws."""
    gram = (keys := sphere(rng_of(23), 2000, 32, 64)) @ keys.mT
    square = average(np.sum(gram**2, axis=(1, 2)))
    return Found(32**2 / square.values, 32**2 * square.errors / square.values**2)


# --------------------------------------------------------------------------------------------------------- 4: read-outs


@claim("4.1", lambda: stdtr(8, -1.0), wrong=ndtr(-1.0))
def denominators_that_are_not_positive():
    keys = rng_of(24).standard_normal((100_000, 9, 8))
    return average(np.sum(keys[:, 0] * keys.sum(axis=1), axis=1) <= 0)


@claim("4.2", lambda: [predict(LinearMemory(ReLU(), readout=Normalized()), GaussianKeys(), 64, 16,
                               n).relative_squared_error for n in (16, 64, 256)],
       wrong=[15 / 8.67] * 3, known=0.003)  # fmt: skip
def normalised_relu():
    found = []
    for seed, n in enumerate((16, 64, 256)):
        rng = rng_of(25 + seed)
        features = np.maximum(rng.standard_normal((3200 // n, n, 64)), 0)
        kernel = features @ features.mT
        weights = kernel / kernel.sum(axis=2, keepdims=True)
        found.append(average(np.mean(np.sum((weights - np.eye(n)) ** 2, axis=2), axis=1)))
    return Found(*np.array(found).T)


@claim("4.3", lambda: predict(LinearMemory(Identity(), readout=RMSNorm()), SphereKeys(), num_pairs=64,
                              **S64).relative_squared_error, wrong=63 / 64, known=0.002)  # fmt: skip
def output_of_fixed_norm():
    rng = rng_of(28)
    keys, values = sphere(rng, 60, 64, 64), sphere(rng, 60, 64, 64)
    return average(raw(unit(read(keys, values)), values))


@claim("4.4", lambda: [predict(SoftmaxMemory(beta), SphereKeys(), 32, 8, 64).relative_squared_error
                       for beta in (2, 4, 6)],
       wrong=[63 / 32] * 3, known=0.02)  # fmt: skip
def softmax_readings():
    keys = sphere(rng_of(29), 150, 64, 32)
    found = []
    for beta in (2, 4, 6):
        weights = np.exp(beta * (keys @ keys.mT))
        weights /= weights.sum(axis=2, keepdims=True)
        found.append(average(np.mean(np.sum((weights - np.eye(64)) ** 2, axis=2), axis=1)))
    return Found(*np.array(found).T)


@claim("4.5", lambda: [math.exp(2 * b - log_0f1(64, 2 * b)) for b in (4, 8, 16, 32)],
       wrong=[math.exp(2 * b - 2 * b * b / 64) for b in (4, 8, 16, 32)])  # fmt: skip
def pairs_at_which_softmax_has_signal_to_noise_one():
    def density(t):
        return (1 - t * t) ** (61 / 2)

    whole = quad(density, -1, 1)[0]
    means = [quad(lambda t, b=b: math.exp(2 * b * (t - 1)) * density(t), -1, 1, epsabs=0)[0] for b in (4, 8, 16, 32)]
    return Found(whole / np.array(means))


@claim("4.6", lambda: [classical.ramsauer_capacity(20, 1.0, 3.0, 1e-3).base,
                       classical.ramsauer_capacity(75, 1.0, 1.0, 1e-3).base])  # fmt: skip
def base_of_the_exponential_capacity():
    found = []
    for d, k in ((20, 3.0), (75, 1.0)):
        a = 2 / (d - 1) * (1 + math.log(2 * k**2 * 1e-3 * (d - 1)))
        b = 2 * k**2 / 5
        found.append(brentq(lambda c, a=a, b=b: b / c + math.log(b / c) - a - math.log(b), 1e-3, 100, xtol=1e-12))
    return Found(np.array(found))


def test_one_softmax_update_errs_less_than_the_bound_and_that_of_another_beta_is_broken():
    rng = rng_of(30)
    patterns = math.sqrt(32) * sphere(rng, 200, 32)
    cues = patterns + 0.1 * rng.standard_normal(patterns.shape)
    overlap = patterns @ patterns.T
    separation = 32 - (overlap - 1e9 * np.eye(200)).max(axis=1)
    distance = np.linalg.norm(cues - patterns, axis=1)
    scores = 0.5 * cues @ patterns.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = np.linalg.norm(weights / weights.sum(axis=1, keepdims=True) @ patterns - patterns, axis=1)
    own, other = (
        [classical.ramsauer_error_bound(200, beta, *x) for x in zip(separation, [32**0.5] * 200, distance, strict=True)]
        for beta in (0.5, 1.5)
    )
    assert (error <= own).all()
    assert (error > other).any()


# ------------------------------------------------------------------------------------------------------- 5: write rules


@claim("5.1", lambda: predict(LinearMemory(Identity(), Decay(0.9)), SphereKeys(), 16, 4, 32).relative_squared_error,
       wrong=31 / 16)  # fmt: skip
def decayed_pairs():
    rng = rng_of(31)
    keys, values = sphere(rng, 3000, 32, 16), sphere(rng, 3000, 32, 4)
    fade = 0.9 ** np.arange(31, -1, -1)[:, None]
    return average(raw(read(keys, fade * values, None), values))


DELTA = LinearMemory(Identity(), Delta(1.0))


@claim("5.2", lambda: [predict(DELTA, SphereKeys(), 16, 4, n).relative_squared_error for n in (4, 16, 64)],
       wrong=[3 / 16, 15 / 16, 63 / 16])  # fmt: skip
def delta_rule():
    rng = rng_of(32)
    found = []
    for n, trials in ((4, 10_000), (16, 3000), (64, 600)):
        keys, values = sphere(rng, trials, n, 16), sphere(rng, trials, n, 4)
        found.append(average(raw(keys @ written(keys, values), values)))
    return Found(*np.array(found).T)


@claim("5.3", lambda: predict_by_age(DELTA, SphereKeys(), 8, 4, 16, ages=[0, 1, 5, 15]).relative_squared_error,
       wrong=[0, 2 * (1 - 7 / 8), 2 * (1 - (7 / 8) ** 5), 2 * (1 - (7 / 8) ** 15)])  # fmt: skip
def delta_rule_by_age():
    rng = rng_of(33)
    keys, values = sphere(rng, 10_000, 16, 8), sphere(rng, 10_000, 16, 4)
    errors = np.sum((keys @ written(keys, values) - values) ** 2, axis=2)
    found = average(errors[:, [15, 14, 10, 0]])
    return Found(np.where(found.values < 1e-20, 0, found.values), found.errors)


@claim("5.4", lambda: [predict(DELTA, SphereKeys(), 10**7, 4, int(n * 10**7)).relative_squared_error
                       for n in (0.25, 0.5, 1, 2, 4)])  # fmt: skip
def delta_rule_in_many_dimensions():
    """The mean over ages by quadrature of (1 - e^-x)(2 - e^-n)."""
    loads = (0.25, 0.5, 1, 2, 4)
    means = [quad(lambda x, n=n: (1 - math.exp(-x)) * (2 - math.exp(-n)) / n, 0, n)[0] for n in loads]
    return Found(np.array(means))


@claim("5.5", lambda: [predict(LinearMemory(Identity(), Delta(0.7), key_scale=0.25), GaussianKeys(), 16, 4, 9,
                               query_cosine=0.6).relative_squared_error,
                       predict(LinearMemory(Identity(), GatedDelta(1.3, 0.9)), SphereKeys(), 8, 4, 9,
                               query_cosine=0.6).relative_squared_error])  # fmt: skip
def delta_rules_with_other_steps_keys_and_cues():
    rng = rng_of(34)
    found = []
    for keys, step, rate in ((rng.standard_normal((8000, 9, 16)) / 4, 0.7, 1.0), (sphere(rng, 8000, 9, 8), 1.3, 0.9)):
        values = sphere(rng, 8000, 9, 4)
        found.append(average(raw(noisy(rng, keys, 0.6) @ written(keys, values, step, rate), values)))
    return Found(*np.array(found).T)


@claim("5.6", lambda: predict(LinearMemory(Identity(), Oja(1 / 8), key_scale="sqrt_dim"), SphereKeys(), 8, 8,
                              16).relative_squared_error, wrong=15 / 8)  # fmt: skip
def oja_rule():
    rng = rng_of(35)
    keys, values = sphere(rng, 3000, 16, 8), sphere(rng, 3000, 16, 8)
    state = np.zeros((3000, 8, 8))
    for i in range(16):
        k, v = keys[:, i, :, None], values[:, i, None, :]
        state = state - (state @ v.mT) @ v + k @ v
    return average(raw(keys @ state, values))


@claim("5.7", lambda: [predict(LinearMemory(Dpfp(1), LeastSquares()), GaussianKeys(), 16, 4, 48).relative_squared_error,
                       predict(LinearMemory(ReLU(), LeastSquares()), GaussianKeys(), 16, 4, 48).relative_squared_error],
       wrong=[1 - 16 / 48, 1 - 32 / 48])  # fmt: skip
def least_squares_of_full_rank():
    rng = rng_of(36)
    x = rng.standard_normal((48, 16))
    both = np.maximum(np.concatenate([x, -x], axis=1), 0)
    ranks = [np.linalg.matrix_rank(f) for f in (both * np.roll(both, 1, axis=1), np.maximum(x, 0))]
    return Found(1 - np.array(ranks) / 48)


PSEUDO_INVERSE = LinearMemory(Identity(), LeastSquares(), key_scale=0.25)


@claim("5.8", lambda: [predict(PSEUDO_INVERSE, GaussianKeys(), 16, 4, n, query_cosine=0.8).relative_squared_error
                       for n in (8, 12, 24, 48)], wrong=[0.04, 0.04, 1 / 3, 2 / 3])  # fmt: skip
def pseudo_inverse_asked_with_noisy_cues():
    rng = rng_of(37)
    found = []
    for n in (8, 12, 24, 48):
        keys, values = rng.standard_normal((2000, n, 16)) / 4, sphere(rng, 2000, n, 4)
        if n > 16:
            state = np.linalg.solve(keys.mT @ keys, keys.mT @ values)
        else:
            state = keys.mT @ np.linalg.solve(keys @ keys.mT, values)
        found.append(average(raw(noisy(rng, keys, 0.8) @ state, values)))
    return Found(*np.array(found).T)


def marchenko_pastur(c, level):
    """Return l^2 times the mean of 1 / (s + l)^2 over the limiting spectrum."""
    low, high = (1 - math.sqrt(c)) ** 2, (1 + math.sqrt(c)) ** 2

    def density(s):
        return math.sqrt(max((high - s) * (s - low), 0)) / (2 * math.pi * c * s) / (s + level) ** 2

    return level**2 * quad(density, low, high, limit=200)[0] + max(0, 1 - 1 / c)


@claim("5.9", lambda: [predict(LinearMemory(Identity(), LeastSquares(0.1), key_scale=1 / 8), GaussianKeys(), 64,
                               4, n).relative_squared_error for n in (32, 64, 128)],
       wrong=lambda: [marchenko_pastur(n / 64, 0.1) for n in (32, 64, 128)], known=0.002)  # fmt: skip
def ridge():
    rng = rng_of(38)
    found = []
    for n in (32, 64, 128):
        keys = rng.standard_normal((300, n, 64)) / 8
        squares = np.linalg.eigvalsh(keys @ keys.mT if n <= 64 else keys.mT @ keys)
        found.append(average((np.sum((0.1 / (squares + 0.1)) ** 2, axis=1) + max(n - 64, 0)) / n))
    return Found(*np.array(found).T)


def test_the_best_ridge_is_what_noise_there_is_over_the_squared_gain():
    def error(ridge):
        memory = LinearMemory(Identity(), LeastSquares(ridge))
        return predict(memory, SphereKeys(), num_pairs=64, query_cosine=0.8, **S64).scale_optimal_error

    best = 64 * (1 - 0.8**2) / (63 * 0.8**2)
    assert error(best) < min(error(best / 1.5), error(best * 1.5))


# ------------------------------------------------------------------------------------------------ 6: recall, capacity


@claim("6.1", lambda: [predict(PLAIN, SphereKeys(), num_pairs=n, **S64).cosine_similarity for n in (16, 64, 256)],
       wrong=[(1 + (n - 1) / 64) ** -0.5 for n in (16, 64, 256)], known=0.001)  # fmt: skip
def cosine_of_a_reading():
    rng = rng_of(39)
    found = []
    for n in (16, 64, 256):
        keys, values = sphere(rng, 12_800 // n, n, 64), sphere(rng, 12_800 // n, n, 64)
        found.append(average(np.mean(np.sum(unit(read(keys, values)) * values, axis=2), axis=1)))
    return Found(*np.array(found).T)


@claim("6.2", lambda: predict(PLAIN, SphereKeys(), num_pairs=16, values=GaussianValues(), **S16).cosine_similarity,
       wrong=lambda: predict(PLAIN, SphereKeys(), num_pairs=16, **S16).cosine_similarity, known=0.002)  # fmt: skip
def cosine_of_gaussian_values():
    rng = rng_of(40)
    keys, values = sphere(rng, 4000, 16, 16), rng.standard_normal((4000, 16, 16))
    return average(np.mean(np.sum(unit(read(keys, values)) * unit(values), axis=2), axis=1))


def normal_integral(d, v, n, m):
    """The simple form, with independent normal scores."""
    T = (n - 1) / d
    stored, other = 1 / d + (1 + T - 1 / d) / v, (1 + T) / v

    def integrand(z):
        x = 1 + z * math.sqrt(T / v)
        chance = ndtr(x / math.sqrt(stored)) ** (n - 1) * ndtr(x / math.sqrt(other)) ** (m - n)
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * chance

    return quad(integrand, -8, 8)[0]


@claim("6.3", lambda: [predict(PLAIN, SphereKeys(), num_pairs=n, codebook_size=m, **S16).top1_accuracy
                       for n, m in ((20, 20), (50, 50), (20, 200))],
       wrong=[normal_integral(16, 16, n, m) for n, m in ((20, 20), (50, 50), (20, 200))], known=0.015)  # fmt: skip
def top1_accuracy():
    rng = rng_of(41)
    found = []
    for n, m, trials in ((20, 20, 3000), (50, 50, 600), (20, 200, 1500)):
        keys, book = sphere(rng, trials, n, 16), sphere(rng, trials, m, 16)
        best = np.argmax(read(keys, book[:, :n]) @ book.mT, axis=2)
        found.append(average(np.mean(best == np.arange(n), axis=1)))
    return Found(*np.array(found).T)


@claim("6.4", lambda: [predict(PLAIN, GaussianKeys(), 4, 16, 16, values=OneHotValues()).top1_accuracy,
                       predict(PLAIN, SphereKeys(), 8, 16, 16, values=OneHotValues(), query_cosine=0.5).top1_accuracy],
       wrong=[1, 0.5])  # fmt: skip
def top1_of_one_hot_values():
    rng = rng_of(42)
    found = []
    for keys, c in ((rng.standard_normal((5000, 16, 4)), 1.0), (sphere(rng, 5000, 16, 8), 0.5)):
        scores = noisy(rng, keys, c) @ keys.mT
        found.append(average(np.mean(np.argmax(scores, axis=2) == np.arange(16), axis=1)))
    return Found(*np.array(found).T)


def share_below(a, n):
    """F_n(a), by the incomplete beta function."""
    a = np.clip(a, -1, 1)
    return 0.5 + np.sign(a) / 2 * betainc(0.5, (n - 1) / 2, a * a)


def accurate_form(d, v, n):
    """The integral of the page by plain sums, for M = N."""
    z, u, g = np.linspace(-6, 6, 49), np.linspace(-4, 4, 9), np.linspace(-4, 4, 9)
    t = min(1, 9 / math.sqrt(v)) * np.linspace(-1, 1, 103)[1:-1]
    weights = [np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum() for x in (g, u, z)]
    t_weight = (1 - t * t) ** ((v - 3) / 2)
    ratio = 2 * (d - 1) / (d + 2) / (n - 1)
    T = (n - 1) / d * (1 - ratio / 9 + g * math.sqrt(ratio) / 3)[:, None, None] ** 3
    square = (v - 1) * (1 - 2 / (9 * (v - 1)) + u * math.sqrt(2 / (9 * (v - 1))))[:, None] ** 3
    x = 1 + np.sqrt(T / v) * z
    size = np.sqrt(x**2 + T * square / v)
    level = (x[..., None] - size[..., None] * t) / (1 - (x / size)[..., None] * t)
    chance = share_below(level, d) @ (t_weight / t_weight.sum())
    return np.einsum("guz,g,u,z", chance ** (n - 1) * (x > 0), *weights)


def pairs_at_99_percent():
    return [capacity.estimate(PLAIN, SphereKeys(), d, metric="top1_accuracy", threshold=0.99).pairs for d in DIMS]


DIMS = (32, 64, 128, 256)


@claim("6.5", pairs_at_99_percent, wrong=DIMS, known=0.0005)
def crossings_of_99_percent():
    """Linear between whole numbers of pairs, as the library has it."""
    found = []
    for d, pairs in zip(DIMS, pairs_at_99_percent(), strict=True):
        low = math.floor(pairs)
        above, below = (accurate_form(d, d, n) for n in (low, low + 1))
        found.append(low + (above - 0.99) / (above - below))
    return Found(np.array(found))


@claim("6.6", lambda: [predict(PLAIN, SphereKeys(), num_pairs=n, key_dim=d, value_dim=d).top1_accuracy
                       for d, n in ((32, 28), (64, 113))], wrong=[0.98, 0.98], known=0.002)  # fmt: skip
def accuracy_there():
    rng = rng_of(43)
    found = []
    for d, n, trials in ((32, 28, 2000), (64, 113, 200)):
        keys, values = sphere(rng, trials, n, d), sphere(rng, trials, n, d)
        best = np.argmax(read(keys, values) @ values.mT, axis=2)
        found.append(average(np.mean(best == np.arange(n), axis=1)))
    return Found(*np.array(found).T)


@claim("6.7", lambda: [capacity.estimate(memory, SphereKeys(), 64, metric=metric, threshold=0.5).pairs
                       for memory, metric in ((PLAIN, "relative_squared_error"), (PLAIN, "scale_optimal_error"),
                                              (LinearMemory(Identity(), LeastSquares()), "relative_squared_error"))],
       wrong=[32, 64, 64], known=0.01)  # fmt: skip
def pairs_at_half_an_error():
    return Found(np.array([1 + 0.5 * 64, 1 + 64 * 0.5 / 0.5, 64 / 0.5]))


# ---------------------------------------------------------------------------------------------------------- 7: limits


@claim("7.1", lambda: 0.5 * classical.rank_floor(200, 64), wrong=0.5 * 199 / 263)
def rank_floor():
    keys = rng_of(44).standard_normal((200, 64))
    return Found(0.5 * np.linalg.norm(np.eye(200) - keys @ np.linalg.pinv(keys)) ** 2 / 200)


@claim("7.2", lambda: [classical.hebbian_bits(a) for a in (0.1, 0.5, 1, 2, 1e6)])
def bits_of_signs():
    def bits(load):
        wrong = quad(lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi), 1 / math.sqrt(load), 40)[0]
        return load * (1 + wrong * math.log2(wrong) + (1 - wrong) * math.log2(1 - wrong))

    return Found(np.array([*map(bits, (0.1, 0.5, 1, 2)), 1 / (math.pi * math.log(2))]), [0, 0, 0, 0, 1e-7])


@claim("7.3", lambda: [classical.hebbian_bits(a, "gaussian") for a in (0.5, 1, 2, 1e9)])
def bits_of_gaussian_values():
    """Entropy of the reading less that of the noise, each (1/2) log2 (2 pi e variance)."""
    bits = [a / 2 * (math.log2(1 + a) - math.log2(a)) for a in (0.5, 1, 2)]
    return Found(np.array([*bits, 1 / (2 * math.log(2))]))


@claim("7.4", lambda: [classical.superposition_accuracy(4.634, 27),
                       max(classical.superposition_bits(s, 27) for s in np.linspace(2, 3, 101))])  # fmt: skip
def superpositions():
    def accuracy(s):
        return quad(lambda h: math.exp(-h * h / 2) / math.sqrt(2 * math.pi) * ndtr(h + s) ** 26, -12, 12)[0]

    def bits(s):
        p = accuracy(s)
        return (p * math.log2(27 * p) + (1 - p) * math.log2(27 * (1 - p) / 26)) / s**2

    return Found(np.array([accuracy(4.634), max(map(bits, np.linspace(2, 3, 101)))]))


@claim("7.5", lambda: [*classical.hopfield_limit()], wrong=[1 / 7, 1, 0])
def hopfield():
    """The largest load at which the mean-field equations have a solution with an overlap, by iteration of them."""
    y = np.linspace(0.5, 4, 350_001)
    erf = np.cumsum(np.exp(-(np.linspace(0, 4, 400_001) ** 2))) * 1e-5 * 2 / math.sqrt(math.pi)
    erf = erf[50_000:] - 1e-5 / math.sqrt(math.pi) * (1 + np.exp(-(y**2)))
    load = (erf / y - 2 / math.sqrt(math.pi) * np.exp(-y * y)) ** 2 / 2
    best = np.argmax(load)
    return Found(np.array([load[best], erf[best], (1 - erf[best]) / 2]), [1e-7, 1e-5, 1e-5])


@claim("7.6", lambda: [classical.gardner_capacity(), classical.gardner_capacity(1.0)])
def gardner():
    def inverse(margin):
        return quad(lambda t: math.exp(-t * t / 2) / math.sqrt(2 * math.pi) * (t + margin) ** 2, -margin, 20)[0]

    return Found(np.array([1 / inverse(0), 1 / inverse(1)]))


@claim("7.7", lambda: [stale_floor(s, s) for s in (20, 100)], wrong=[0.25, 0.25])
def stale_values():
    """Sequences of S keys and S values with replacement: each key read as the mean of what was written to it."""
    rng = rng_of(45)
    found = []
    for size, trials in ((20, 6000), (100, 300)):
        errors, present = np.zeros(trials), np.zeros(trials)
        for trial in range(trials):
            asked, told = rng.integers(size, size=(2, size))
            table = np.zeros((size, size))
            np.add.at(table, (asked, told), 1)
            keys, place = np.unique(asked[::-1], return_index=True)
            mean = table[keys] / table[keys].sum(axis=1, keepdims=True)
            mean[np.arange(len(keys)), told[::-1][place]] -= 1
            errors[trial], present[trial] = 0.5 * np.sum(mean**2), len(keys)
        ratio = errors.sum() / present.sum()
        found.append((ratio, average(errors - ratio * present).errors / present.mean()))
    return Found(*np.array(found).T)


def rounded(x, bits):
    """Return x to so many significant bits."""
    part, exponent = np.frexp(x)
    return np.ldexp(np.round(part * 2**bits) / 2**bits, exponent)


SHARE = 3 / (8 * math.log(2)) / 12  # of a unit in the last place squared, over x^2


@claim("7.8", lambda: [65 / 2 * SHARE * 4.0 ** (1 - bits) for bits in (8, 11)],
       wrong=[64 * SHARE * 4.0 ** (1 - bits) for bits in (8, 11)], known=0.15)  # fmt: skip
def rounding_noise_of_a_state():
    rng = rng_of(46)
    keys, values = sphere(rng, 40, 64, 32), math.sqrt(32) * sphere(rng, 40, 64, 32)
    exact = keys.mT @ values
    found = []
    for bits in (8, 11):
        state = np.zeros((40, 32, 32))
        for i in range(64):
            state = rounded(state + keys[:, i, :, None] * values[:, i, None, :], bits)
        found.append(average(np.sum((state - exact) ** 2, axis=(1, 2)) / np.sum(exact**2, axis=(1, 2))))
    return Found(*np.array(found).T)


def test_rounding_here_is_that_of_a_narrow_state():
    x = rng_of(47).standard_normal((50, 50))
    for name, bits in (("bfloat16", 8), ("float16", 11)):
        np.testing.assert_array_equal(round_to(x, name), rounded(x, bits))


# ----------------------------------------------------------------------------------------- pages, formulas and routes


def test_every_claim_of_the_pages_is_recomputed_here_and_stands_on_its_own_page():
    numbers = [number for text in pages().values() for number, _, _ in ROW.findall(text)]
    assert sorted(numbers) == sorted(CLAIMS)
    for page, text in pages().items():
        own = [number.split(".") for number, _, _ in ROW.findall(text)]
        assert [x for x, _ in own] == [page] * len(own)
        assert [int(y) for _, y in own] == list(range(1, len(own) + 1))


@pytest.mark.parametrize("number", CLAIMS)
def test_page_states_the_number_of_the_formula(number):
    assert agrees(on_pages()[number][1], CLAIMS[number].formula())


@pytest.mark.parametrize("number", CLAIMS)
def test_page_states_how_far_off_a_formula_may_be(number):
    stated = STATED.findall(on_pages()[number][0])
    assert [float(x) / 100 for x in stated] == pytest.approx([CLAIMS[number].known] if CLAIMS[number].known else [])


@pytest.mark.parametrize("number", CLAIMS)
def test_another_route_gives_the_number_of_the_formula(number):
    told = CLAIMS[number]
    assert near(told.route(), told.formula(), told.known)


@pytest.mark.parametrize("number", [number for number, told in CLAIMS.items() if told.wrong is not None])
def test_another_route_tells_a_mistaken_formula(number):
    told = CLAIMS[number]
    assert not near(told.route(), told.wrong() if callable(told.wrong) else told.wrong, told.known)


def test_a_changed_digit_on_a_page_would_be_seen():
    assert agrees(["0.4375"], 7 / 16)
    assert not agrees(["0.4376"], 7 / 16)
    assert agrees(["1.815e3", "0.5"], [1814.77, 0.5])
    assert not agrees(["1.816e3", "0.5"], [1814.77, 0.5])
    assert not agrees(["0.5"], [0.5, 0.5])


def test_pages_are_listed_at_their_entry():
    entry = (DOCS / "mathematics.md").read_text()
    for path in (DOCS / "mathematics").glob("*.md"):
        assert f"mathematics/{path.name}" in entry
        assert f"\nmathematics/{path.stem}\n" in entry
