"""A made-up table of results with known answers, for the tests of what reads tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

MAPS = ("identity", "relu", "elu_plus_one", "dpfp")
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
CHECKPOINTS = (8, 16, 32, 64, 128, 256, 512, 1024)


def effective_dimension(name: str, key_dim: int, correlation: float) -> float:
    """Return a made-up 1 / E[cosine^2] of features; it falls with the correlation as 1 / (1/D + c^2)."""
    free = {"identity": key_dim, "relu": 1 / (1 / key_dim + 0.1), "elu_plus_one": 1.4, "dpfp": 1.6 * key_dim}[name]
    return 1 / (1 / free + correlation**2)


def capacity(dimension: float, error: float = 0.5) -> float:
    """Return where the scale-optimal error x / (1 + x), x = (N - 1) / D, reaches `error`."""
    return 1 + dimension * error / (1 - error)


def table(
    maps: Sequence[str] = MAPS,
    correlations: Sequence[float] = CORRELATIONS,
    key_dims: Sequence[int] = (16, 32, 64, 128),
    num_pairs: Sequence[int] = CHECKPOINTS,
    trials: int = 8,
    noise: float = 0.08,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the tidy table of a full sweep: errors x / (1 + x), noise on log x, no theory for dpfp."""
    rng = np.random.default_rng(seed)
    rows = []
    for name in maps:
        for correlation in correlations:
            for key_dim in key_dims:
                dimension = effective_dimension(name, key_dim, correlation)
                for pairs in num_pairs:
                    for trial in range(trials):
                        x = (pairs - 1) / dimension
                        noisy = x * np.exp(noise * rng.standard_normal())
                        rows.append(_row(name, correlation, key_dim, pairs, trial, x, noisy))
    return pd.DataFrame(rows)


def _row(
    name: str, correlation: float, key_dim: int, pairs: int, trial: int, x: float, noisy: float
) -> dict[str, object]:
    known = name != "dpfp"
    return {
        "point": f"{name}-{correlation}-{key_dim}",
        "status": "ok",
        "reason": None,
        "error": None,
        "memory": "linear",
        "feature_map": name,
        "feature_map.nu": np.nan if known else 1.0,
        "write_rule": "hebbian",
        "readout": "linear",
        "key_center": "none",
        "key_norm": "l2",
        "key_scale": "sqrt_dim",
        "keys": "equicorrelated",
        "keys.correlation": correlation,
        "values": "sphere",
        "key_dim": key_dim,
        "value_dim": 64,
        "feature_dim": key_dim if known else 2 * key_dim,
        "num_pairs": pairs,
        "trial": trial,
        "seed": 0,
        "query_cosine": 1.0,
        "dtype": "float32",
        "relative_squared_error": noisy,
        "scale_optimal_error": noisy / (1 + noisy),
        "cosine_similarity": (1 + noisy) ** -0.5,
        "signal_to_noise": 1 / noisy if noisy else np.inf,
        "top1_accuracy": np.exp(-((noisy / 8) ** 2)),
        "theory_relative_squared_error": x if known else np.nan,
        "theory_scale_optimal_error": x / (1 + x) if known else np.nan,
        "num_queries": pairs,
        "codebook_size": pairs,
        "nonpositive_denominators": 0,
        "state_bytes": 4 * 64 * key_dim,
        "elapsed_s": 0.01,
    }
