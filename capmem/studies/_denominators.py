"""Denominators that are not positive, and what they do to errors: normalised read-out against output norm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import stdtr

from capmem import metrics
from capmem.ensembles import GaussianKeys, SphereValues
from capmem.ensembles.base import Rows
from capmem.feature_maps import FEATURE_MAPS, FeatureMap, Identity
from capmem.memory import LinearMemory
from capmem.readouts import READOUTS, Normalized
from capmem.trial import KEY_STREAM, VALUE_STREAM, Record

READ = {"normalized": Normalized(), "rms_norm": READOUTS.build("rms_norm")}


def nonpositive_fraction(key_dim: int, num_pairs: int) -> float:
    """Return P(phi(k).z <= 0) for a stored key: identity map, keys from N(0, I).

    phi(k).z = |k|^2 + |k| sqrt(N - 1) g with g from N(0, 1), so it is P(t > sqrt(d / (N - 1))), Student's t with
    d degrees of freedom: exact.
    """
    return float(stdtr(key_dim, -((key_dim / (num_pairs - 1)) ** 0.5))) if num_pairs > 1 else 0.0


def denominator_rows(
    names: Sequence[str], key_dim: int, value_dim: int, counts: Sequence[int], least_queries: int, seed: int
) -> Iterator[Record]:
    """Yield a row for each map, N and read-out: share of denominators <= 0, median, mean and largest error.

    Keys are from N(0, I), every stored key is read, in so many trials that `least_queries` are.
    """
    for n in sorted(set(counts)):
        trials = max(2, -(-least_queries // n))
        draws = [np.random.default_rng([seed, n, stream]) for stream in (KEY_STREAM, VALUE_STREAM)]
        keys = GaussianKeys().sample(draws[0], trials * n, key_dim).reshape(trials, n, key_dim)
        values = SphereValues().sample(draws[1], trials * n, value_dim).reshape(trials, n, value_dim)
        for name in names:
            phi = FEATURE_MAPS.build(name)
            told = {"part": "denominator", "feature_map": name, "num_pairs": n, "num_queries": trials * n}
            told |= _fractions(phi, keys, key_dim)
            for readout, read in READ.items():
                memory = LinearMemory(phi, readout=read)
                state = memory.write(memory.init(key_dim, value_dim, (trials,)), keys, values)
                errors = metrics.relative_squared_error(memory.read(state, keys), values, per_pair=True)
                yield told | {"readout": readout} | _spread(errors)


def _fractions(phi: FeatureMap, keys: Rows, key_dim: int) -> Record:
    features = phi(keys)
    denominators = np.einsum("tnf,tf->tn", features, features.sum(axis=1))
    of_trials = (denominators <= 0).mean(axis=1)
    theory = nonpositive_fraction(key_dim, keys.shape[1]) if phi == Identity() else float("nan") if phi.signed else 0.0
    return {
        "nonpositive_fraction": float(of_trials.mean()),
        "nonpositive_fraction_se": float(of_trials.std(ddof=1) / len(of_trials) ** 0.5),
        "theory_nonpositive_fraction": theory,
    }


def _spread(errors: Rows) -> Record:
    return {
        "median_error": float(np.median(errors)),
        "mean_error": float(errors.mean()),
        "largest_error": float(errors.max()),
    }
