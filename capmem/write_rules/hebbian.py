"""The Hebbian sum: plain linear attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem._arrays import Array, namespace, transpose
from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule


@WRITE_RULES.register("hebbian")
@dataclass(frozen=True)
class Hebbian(WriteRule):
    """S <- S + phi(k) v^T and z <- z + phi(k); the order of the pairs does not matter."""

    def init(
        self, feature_dim: int, value_dim: int, batch: tuple[int, ...] = (), like: Array | None = None
    ) -> RuleState:
        """Return S = 0 and z = 0; see :meth:`WriteRule.init`."""
        if like is None:
            like = np.empty(0)
        xp = namespace(like)
        kind = {"dtype": like.dtype, "device": like.device}
        return RuleState(
            xp.zeros((*batch, feature_dim, value_dim), **kind), xp.zeros((*batch, feature_dim), **kind)
        )

    def write(
        self,
        state: RuleState,
        features: Array,
        values: Array,
        *,
        step_size: Array | None = None,
        log_decay: Array | None = None,
    ) -> RuleState:
        """Return S + Phi^T V and z + Phi^T 1; see :meth:`WriteRule.write`."""
        if step_size is not None or log_decay is not None:
            raise ValueError("the hebbian write rule has no step_size and no log_decay")
        xp = namespace(features)
        return RuleState(state.S + transpose(features) @ values, state.z + xp.sum(features, axis=-2))
