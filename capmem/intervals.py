"""Means over trials with their standard errors and bootstrap intervals: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]

_GATHER_LIMIT = 4_000_000  # numbers that one bootstrap step holds in memory


def check_resampling(confidence: float, resamples: int) -> None:
    """Raise ValueError for a confidence or a number of resamples that means nothing."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")


def resampling(trials: int, resamples: int, seed: int) -> Numbers:
    """Return bootstrap indices (resamples, trials); they depend on nothing but the arguments."""
    return np.random.default_rng(seed).integers(trials, size=(resamples, trials))


def tail_of(confidence: float, trials: int) -> float:
    """Return the share of resampled means to leave out at each end.

    Percentiles of n resampled values are too narrow by sqrt((n - 1) / n), and a normal's where a t is due; the
    expanded percentile interval puts both right: at n = 8 a nominal 95% covers about 94%, not 89%. Below 6 trials no
    resampling can (88% at 4).

    References
    ----------
    Hesterberg 2015, The American Statistician 69:371.
    """
    from scipy.special import ndtr, stdtrit

    t = stdtrit(trials - 1, (1 - confidence) / 2)
    return float(ndtr(t * (trials / (trials - 1)) ** 0.5))


def means(values: Numbers, codes: Numbers, groups: int) -> Numbers:
    """Return the mean of the finite values of each group (groups,), nan where there is none."""
    finite = np.isfinite(values)
    count = np.bincount(codes[finite], minlength=groups)
    total = np.bincount(codes[finite], weights=values[finite], minlength=groups)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def statistics(
    values: Numbers, codes: Numbers, groups: int, confidence: float, resamples: int, seed: int
) -> dict[str, Numbers]:
    """Return mean, standard error, interval and left-out count of every group, by column suffix."""
    finite = np.isfinite(values)
    order = np.argsort(codes[finite], kind="stable")
    ordered = values[finite][order]
    counts = np.bincount(codes[finite], minlength=groups)
    starts = np.cumsum(counts) - counts
    out = {suffix: np.full(groups, np.nan) for suffix in ("", "_se", "_low", "_high")}
    for trials in np.unique(counts[counts > 0]):
        members = np.flatnonzero(counts == trials)
        samples = ordered[starts[members][:, None] + np.arange(trials)]
        out[""][members] = samples.mean(axis=1)
        if trials > 1:
            out["_se"][members] = samples.std(axis=1, ddof=1) / np.sqrt(trials)
            limits = _interval(samples, confidence, resampling(trials, resamples, seed))
            out["_low"][members], out["_high"][members] = limits
    nonfinite = np.bincount(codes[~finite], minlength=groups)
    return out | {"_nonfinite": nonfinite}


def _interval(samples: Numbers, confidence: float, indices: Numbers) -> Numbers:
    """Return the percentile bootstrap interval (2, groups) of the means of `samples` (groups, trials)."""
    tail = tail_of(confidence, indices.shape[1])
    step = max(1, _GATHER_LIMIT // indices.size)
    chunks = [
        np.quantile(samples[i : i + step][:, indices].mean(axis=2), [tail, 1 - tail], axis=1)
        for i in range(0, len(samples), step)
    ]
    return np.concatenate(chunks, axis=1)
