"""Rules that forget: the state shrinks as pairs come in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capmem._arrays import Array, device, namespace, transpose
from capmem.schema import require
from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule
from capmem.write_rules.chunks import chunks, decayed_sum, per_pair, refuse, running_decay


@WRITE_RULES.register("decay")
@dataclass(frozen=True)
class Decay(WriteRule):
    """S <- a S + k v^T and z <- a z + k.

    Parameters
    ----------
    rate : float
        a, in (0, 1]. RetNet's heads have 1 - 2^(-5-h).

    References
    ----------
    Sun et al. 2023, arXiv 2307.08621. A rate of its own for each pair: Dao, Gu 2024, arXiv 2405.21060.
    """

    rate: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.rate <= 1, "rate", self.rate, "a number above 0, up to 1")

    def write(
        self,
        state: RuleState,
        features: Array,
        values: Array,
        *,
        step_size: Array | None = None,
        log_decay: Array | None = None,
    ) -> RuleState:
        """Return the state after the pairs; see :meth:`WriteRule.write`."""
        refuse(self, step_size=step_size)
        decay = per_pair(log_decay, math.log(self.rate), features)
        return write_decayed(state, features, values, decay[..., None])


@WRITE_RULES.register("gated_decay")
@dataclass(frozen=True)
class GatedDecay(WriteRule):
    """S <- diag(a) S + k v^T and z <- a z + k, a gate for each feature and pair.

    Gates come with the pairs (``log_decay``), as a layer computes them. Without any,
    a = sigmoid(W phi(k) + bias)^(1 / temperature), with W from N(0, 1/D): the form of an untrained layer.

    Parameters
    ----------
    bias : float
        Larger: slower forgetting.
    temperature : float
        Above 0.
    seed : int
        Draws W.

    References
    ----------
    Yang, Wang, Shen, Panda, Kim 2023, arXiv 2312.06635.
    """

    bias: float = 4.0
    temperature: float = 16.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.temperature > 0, "temperature", self.temperature, "a number above 0")
        require(self.seed >= 0, "seed", self.seed, "an integer of at least 0")

    def write(
        self,
        state: RuleState,
        features: Array,
        values: Array,
        *,
        step_size: Array | None = None,
        log_decay: Array | None = None,
    ) -> RuleState:
        """Return the state after the pairs; `log_decay` (..., N, D), or (..., N) for all features alike."""
        refuse(self, step_size=step_size)
        if log_decay is None:
            log_decay = self.log_gates(features)
        elif log_decay.ndim < features.ndim:
            log_decay = per_pair(log_decay, 0.0, features)[..., None]
        return write_decayed(state, features, values, log_decay)

    def log_gates(self, features: Array) -> Array:
        """Return log a (..., N, D) of the untrained gates."""
        xp = namespace(features)
        width = features.shape[-1]
        weights: Any = np.random.default_rng(self.seed).standard_normal((width, width)) / width**0.5
        weights = xp.asarray(weights, dtype=features.dtype, device=device(features))
        logits = features @ weights + self.bias
        # log sigmoid(x) = min(x, 0) - log(1 + exp(-|x|)): no overflow on either side
        negative = xp.where(logits < 0, logits, xp.zeros_like(logits))
        return (negative - xp.log1p(xp.exp(-xp.abs(logits)))) / self.temperature


def write_decayed(state: RuleState, features: Array, values: Array, log_decay: Array) -> RuleState:
    """Return the state after S <- a S + k v^T, log a being (..., N, 1) or (..., N, D)."""
    xp = namespace(features)
    S, z = state.S, state.z
    for part in chunks(features.shape[-2]):
        keys, log_a = features[..., part, :], log_decay[..., part, :]
        log_g = running_decay(log_a, axis=-2)
        last = log_g[..., -1:, :]
        faded = xp.exp(last - log_g) * keys
        S = xp.exp(transpose(last)) * S + transpose(faded) @ values[..., part, :]
        z = decayed_sum(z, keys, log_a)
    return replace(state, S=S, z=z)
