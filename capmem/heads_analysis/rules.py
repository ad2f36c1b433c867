"""What an error-correcting or forgetting write rule gives, and how much of the gap to least squares it closes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from capmem import metrics
from capmem.ensembles.base import Places
from capmem.heads_analysis.arrays import Floats, both_ways
from capmem.heads_analysis.halves import NORMAL
from capmem.heads_analysis.maps import MAPS
from capmem.heads_analysis.recall import token_order, top1_shares
from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.task import Analysed, Record
from capmem.memory import LinearMemory
from capmem.write_rules import Decay, Delta, WriteRule

ORDERS = 4  # random orders of all tokens
LEAST_SQUARES = "least_squares"


class Scores(NamedTuple):
    """What comes back of all tokens, an entry an order."""

    top1_accuracy: Floats
    top1_by_token: Floats
    scale_optimal_error: Floats


def ordered_rules(settings: HeadsAnalysis) -> dict[str, WriteRule]:
    """Return the rules whose state depends on the order in which tokens come."""
    return {"decay": Decay(settings.decay), "delta": Delta()}


def write_rules(head: Analysed, settings: HeadsAnalysis) -> Iterator[Record]:
    """Yield a row for each map, rule, order of the tokens, and keys as they are or centred: all T tokens stored.

    Keys pass the steps norm, times sqrt(d), phi, norm: features have unit norm, so that a step of 1 makes the newest
    pair exact. gap_closed = (e_hebbian - e) / (e_hebbian - e_least_squares) of scale-optimal errors: 0 for the plain
    sum, 1 for the best linear read-out of these features; nan where there is no gap. What does not depend on the
    order (Hebbian, least squares) has one row, of order "any".
    """
    for name in settings.rule_maps:
        memory = LinearMemory(MAPS[name], key_norm="l2", key_scale="sqrt_dim", feature_norm="l2")
        told = {"map": name, "features": MAPS[name].width(head.keys.shape[1]), "tokens": len(head.keys)}
        for way, keys in both_ways(head.keys):
            state = memory.init(keys.shape[1], head.values.shape[1])
            features = memory.features(state, keys)
            for row in _compared(features, head, settings):
                yield head.columns() | told | {"keys": way} | row


def best_linear(features: Floats, values: Floats) -> Floats:
    """Return F F^+ V, what the best matrix S reads back: values V (T, v) projected on the columns of features F (T, D).

    The same as the least-squares rule without ridge, without its D x D factor.
    """
    left, singular, _ = np.linalg.svd(features, full_matrices=False)
    left = left[:, singular > singular[0] * max(features.shape) * np.finfo(features.dtype).eps]
    found: Floats = left @ (left.T @ values)
    return found


def _compared(features: Floats, head: Analysed, settings: HeadsAnalysis) -> Iterator[Record]:
    in_text = np.arange(len(features))[None]
    shuffled = np.stack([token_order("shuffled", len(features), settings.seed, t) for t in range(ORDERS)])
    plain = features @ (features.T @ head.values)
    scores = {
        ("hebbian", "any"): _scored(plain[None], in_text, head, settings),
        (LEAST_SQUARES, "any"): _scored(best_linear(features, head.values)[None], in_text, head, settings),
    }
    for rule_name, rule in ordered_rules(settings).items():
        for order, orders in (("shuffled", shuffled), ("text", in_text)):
            scores[rule_name, order] = _scored(
                _read(rule, features[orders], head.values[orders]), orders, head, settings
            )
    worst, best = (scores[rule, "any"].scale_optimal_error[0] for rule in ("hebbian", LEAST_SQUARES))
    for (rule_name, order), found in scores.items():
        errors = found.scale_optimal_error
        closed = (worst - errors) / (worst - best) if worst - best > 1e-9 else np.full(len(errors), np.nan)
        row: Record = {"rule": rule_name, "order": order}
        for column, values in (found._asdict() | {"gap_closed": closed}).items():
            row |= _with_interval(column, values)
        yield row


def _read(rule: WriteRule, features: Floats, values: Floats) -> Floats:
    """Return what features (orders, T, D) read of a state that all pairs were written to in their order."""
    state = rule.init(features.shape[-1], values.shape[-1], batch=features.shape[:1])
    found: Floats = features @ rule.matrix(rule.write(state, features, values))
    return found


def _scored(retrieved: Floats, orders: Places, head: Analysed, settings: HeadsAnalysis) -> Scores:
    """Score what came back (orders, T, v) in the order in which tokens were written."""
    values = head.values[orders]
    by_index, by_token = top1_shares(retrieved, settings.codebook(values), head.labels[orders])
    return Scores(by_index, by_token, metrics.scale_optimal_error(retrieved, values))


def _with_interval(name: str, values: Floats) -> Record:
    mean = float(values.mean())
    reach = NORMAL * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return {name: mean, f"{name}_low": mean - reach, f"{name}_high": mean + reach}
