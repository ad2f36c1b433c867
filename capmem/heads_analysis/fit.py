"""Which feature map fits a head: linear attention against the head's own softmax output, by state size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from capmem.feature_maps import FeatureMap
from capmem.heads_analysis.arrays import Floats, both_ways
from capmem.heads_analysis.attention import Own, attended_tokens, own_attention
from capmem.heads_analysis.halves import about, halves
from capmem.heads_analysis.maps import MAPS
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.task import Analysed, Record
from capmem.readouts import Normalized
from capmem.trial import MAP_STREAM

UNIFORM, CONSTANT = "uniform", "mean output"
BASELINES = (UNIFORM, CONSTANT)


class Made(NamedTuple):
    """What stands in for the head's output (T, v), and how many denominators were not positive."""

    output: Floats
    nonpositive: int = 0


def fits(head: Analysed, settings: HeadsAnalysis) -> tuple[list[Record], list[Record]]:
    """Return fit errors (a row a query head, choice of keys and map), and the attended tokens of every query head.

    error = |made - output| / |output| (Frobenius norm) over all tokens, made = phi(q) S / phi(q) . z. Centred means
    that one vector is taken from the keys and none from the queries: softmax does not see that. The interval is over
    random halves of the queries and, for a random map, over its draws. `floats` = m (v + 1): S and z.
    """
    if head.queries is None or not head.own_values:
        return [], []
    found: list[Record] = []
    attended: list[Record] = []
    for number, queries in zip(head.query_heads, head.queries, strict=True):
        own = own_attention(queries, head.keys, head.values, head.scale, head.causal)
        told = head.columns() | {"query_head": number}
        attended.append(told | attended_tokens(own.attended, settings.seed).columns("attended"))
        found += [told | row for row in _rows(head, queries, own, settings)]
    return found, attended


def linear_output(phi: FeatureMap, queries: Floats, keys: Floats, values: Floats, causal: bool) -> Made:
    """Return sum_j w_ij v_j / sum_j w_ij with w_ij = phi(q_i) . phi(k_j), over all j, or j <= i where causal.

    What a Hebbian memory with the normalised read-out gives; row i of a causal one is read after pair i is written.
    """
    weights = phi(queries) @ phi(keys).T
    weights = np.tril(weights) if causal else weights
    reading = Normalized()(values, np.ones(len(values)), weights)
    return Made(reading.retrieved, int(reading.nonpositive))


def input_factor(scale: float, dim: int) -> float:
    """Return what queries and keys are multiplied by, for a map whose kernel takes 1 / sqrt(d) as scale."""
    return float((scale * dim**0.5) ** 0.5)


def _rows(head: Analysed, queries: Floats, own: Own, settings: HeadsAnalysis) -> Iterator[Record]:
    floats = {UNIFORM: head.values.shape[1] + 1, CONSTANT: head.values.shape[1]}
    for name, made in _baselines(head, own).items():
        errors = [_error(made, own, settings.seed)]
        yield {"keys": "any", "map": name, "features": 0, "floats": floats[name]} | _summed(
            errors, [made], len(queries)
        )
    factor = input_factor(head.scale, queries.shape[1])
    for way, keys in both_ways(head.keys):
        for name in settings.maps:
            phis = _draws(MAPS[name], settings)
            mades = [linear_output(phi, factor * queries, factor * keys, head.values, head.causal) for phi in phis]
            width = phis[0].width(queries.shape[1])
            size = {"features": width, "floats": width * (head.values.shape[1] + 1)}
            errors = [_error(made, own, settings.seed) for made in mades]
            yield {"keys": way, "map": name} | size | _summed(errors, mades, len(queries))


def _baselines(head: Analysed, own: Own) -> dict[str, Made]:
    """Return the mean of the values that each query sees, and the best constant: the mean of the outputs."""
    mean = head.values.mean(axis=0, keepdims=True).repeat(len(head.values), axis=0)
    if head.causal:
        mean = head.values.cumsum(axis=0) / np.arange(1, len(head.values) + 1)[:, None]
    return {UNIFORM: Made(mean), CONSTANT: Made(own.output.mean(axis=0, keepdims=True).repeat(len(mean), axis=0))}


def _draws(phi: Any, settings: HeadsAnalysis) -> list[FeatureMap]:
    if not hasattr(phi, "seed"):
        return [phi]
    rngs = [np.random.default_rng([settings.seed, t, MAP_STREAM, phi.seed]) for t in range(settings.random_draws)]
    return [replace(phi, seed=int(rng.integers(2**31))) for rng in rngs]


def _error(made: Made, own: Own, seed: int) -> Floats:
    """Return the error over all queries, then over each random half of them."""
    wrong, power = ((rows**2).sum(axis=1) for rows in (made.output - own.output, own.output))
    chosen = halves(len(power), seed)
    parts = [(wrong.sum(), power.sum()), *zip(wrong[chosen].sum(axis=1), power[chosen].sum(axis=1), strict=True)]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.sqrt([w / p if p > 0 else np.nan for w, p in parts])


def _summed(errors: list[Floats], mades: list[Made], queries: int) -> Record:
    """Return the mean over draws with its interval, and how many denominators were not positive."""
    means = np.mean(errors, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log([error[0] for error in errors])
    extra = float(logs.var(ddof=1) / len(errors)) if len(errors) > 1 and np.isfinite(logs).all() else 0.0
    told = about(float(means[0]), means[1:], extra=extra).columns("error")
    share = sum(made.nonpositive for made in mades) / (len(mades) * queries)
    return told | {"draws": len(errors), "nonpositive_share": share}
