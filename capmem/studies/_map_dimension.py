"""What a feature map holds: effective dimension from arrays and in closed form, rank, and capacity."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np
from scipy import linalg

from capmem import capacity, geometry
from capmem.ensembles import Ensemble
from capmem.ensembles.base import Rows
from capmem.feature_maps import FeatureMap
from capmem.feature_maps.base import OverflowWarning, UnderflowWarning
from capmem.memory import LinearMemory
from capmem.theory import TheoryUnavailable, trial_moments
from capmem.trial import CALIBRATION_STREAM, CHUNK, KEY_STREAM, MAP_STREAM, Record

ALARM = 1.2  # D_eff is never above D, so a draw this far above shows that its keys miss what decides the mean
SPARE = 64  # more keys than D where a rank is counted
CRITERION = {"metric": "scale_optimal_error", "threshold": 0.5}

Center = Literal["none", "mean"]


def digits(value: float) -> str:
    """Return a number to three digits, without an exponent from 100 on."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def redrawn(phi: FeatureMap, seed: int, trial: int) -> FeatureMap:
    """Return the map as trial `trial` of an experiment has it: a random one with directions of its own."""
    if not hasattr(phi, "seed"):
        return phi
    drawn = int(np.random.default_rng([seed, trial, MAP_STREAM, phi.seed]).integers(2**31))
    return cast(FeatureMap, replace(cast(Any, phi), seed=drawn))


def of_width(phi: FeatureMap, key_dim: int, feature_dim: int) -> tuple[FeatureMap, int]:
    """Return a map and key dimension d with the largest D <= `feature_dim`.

    A map with a number of features of its own keeps d = `key_dim`; of the others, D follows from d.
    """
    if hasattr(phi, "num_features"):
        each = phi.width(key_dim) // phi.num_features
        return cast(FeatureMap, replace(cast(Any, phi), num_features=max(1, feature_dim // each))), key_dim
    low, high = 1, feature_dim
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if phi.width(middle) <= feature_dim else (low, middle - 1)
    return phi, low


def dimensions(phi: FeatureMap, law: Ensemble, key_dim: int, num_keys: int, trials: int, seed: int) -> Record:
    """Return D_eff, as it is and centred: means over trials of unbiased estimates, standard errors, closed forms.

    Column `above_width`: whether a trial's D_eff is above D by a fifth, which no law allows, but heavy tails do.
    """
    found = np.array([_of_trial(phi, law, key_dim, num_keys, (seed, trial)) for trial in range(trials)])
    record: Record = {"above_width": bool(found[:, 0].max() > ALARM * phi.width(key_dim))}
    for name, center, values in zip(("", "centred_"), ("none", "mean"), found.T, strict=False):
        column = f"{name}effective_dimension"
        record[column] = float(values.mean())
        record[f"{column}_se"] = float(values.std(ddof=1) / trials**0.5) if trials > 1 else math.nan
        record[f"theory_{column}"] = predicted_dimension(phi, law, key_dim, num_keys, cast(Center, center))
    spread = found[:, 2]
    return record | {"largest_effective_dimension": float(found[:, 0].max()), "kernel_variation": float(spread.mean())}


def _of_trial(
    phi: FeatureMap, law: Ensemble, key_dim: int, num_keys: int, place: tuple[int, int]
) -> tuple[float, float, float]:
    """Return D_eff, centred D_eff and the variation (std / mean) of kappa(k, k); the mean is of other keys."""
    phi = redrawn(phi, *place)
    features = quiet_features(phi, law.sample(np.random.default_rng([*place, KEY_STREAM]), num_keys, key_dim))
    squares = (features**2).sum(axis=-1)
    own = float(geometry.effective_dimension(features))
    variation = float(squares.std() / squares.mean())
    if phi.positional:
        return own, math.nan, variation  # features that depend on the place have no one mean
    mean = _mean_feature(phi, law, key_dim, place if hasattr(phi, "seed") else (place[0], 0))
    return own, float(geometry.effective_dimension(features - mean)), variation


@lru_cache(maxsize=1)
def _mean_feature(phi: FeatureMap, law: Ensemble, key_dim: int, place: tuple[int, int]) -> Rows:
    """Return the mean feature of 4,096 other keys: once for all trials of a map that is not random."""
    others = law.sample(np.random.default_rng([*place, CALIBRATION_STREAM]), CHUNK, key_dim)
    return cast(Rows, quiet_features(phi, others).mean(axis=0))


def predicted_dimension(phi: FeatureMap, law: Ensemble, key_dim: int, num_keys: int, center: Center) -> float:
    """Return m1^2 / m2 in closed form, nan where there is none; places 0 to num_keys - 1 count."""
    if center == "mean" and phi.positional:
        return math.nan
    try:
        found = trial_moments(LinearMemory(phi, feature_center=center), law, key_dim, num_keys).average()
    except TheoryUnavailable:
        return math.nan
    return found.self_mean**2 / found.cross_square


def rank(phi: FeatureMap, law: Ensemble, key_dim: int, seed: int) -> int:
    """Return the rank of the features of D + 64 keys, each of unit norm, by QR with pivoting."""
    phi = redrawn(phi, seed, 0)
    count = phi.width(key_dim) + SPARE
    features = quiet_features(phi, law.sample(np.random.default_rng([seed, 0, KEY_STREAM]), count, key_dim))
    norms = np.linalg.norm(features, axis=-1, keepdims=True)
    (triangle,) = linalg.qr(features / np.where(norms > 0, norms, 1), mode="r", pivoting=True, check_finite=False)[:1]
    pivots = np.abs(np.diag(triangle))
    return int((pivots > count * np.finfo(float).eps * pivots[0]).sum())


def capacities(phi: FeatureMap, law: Ensemble, shape: tuple[int, int], trials: int, seed: int) -> Record:
    """Return N* (scale-optimal error 0.5) as simulated, with its interval, and in closed form."""
    asked: dict[str, Any] = {"memory": LinearMemory(phi), "keys": law, "key_dim": shape[0], "value_dim": shape[1]}
    asked |= CRITERION
    with warnings.catch_warnings():
        _ignore_range()
        found = capacity.estimate(**asked, method="simulation", trials=trials, precision=0.1, seed=seed)
    try:
        theory = capacity.estimate(**asked, method="theory").pairs
    except TheoryUnavailable:
        theory = math.nan
    ends = {"capacity_low": found.low, "capacity_high": found.high, "capacity_bound": found.bound}
    return {"capacity": found.pairs, **ends, "theory_capacity": theory}


def quiet_features(phi: FeatureMap, keys: Rows) -> Rows:
    """Return phi(keys) without the warnings of range: the table tells what came of it."""
    with warnings.catch_warnings():
        _ignore_range()
        return cast(Rows, phi(keys))


def _ignore_range() -> None:
    for kind in (OverflowWarning, UnderflowWarning):
        warnings.simplefilter("ignore", kind)
