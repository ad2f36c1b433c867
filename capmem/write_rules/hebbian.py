"""The Hebbian sum: plain linear attention."""

from __future__ import annotations

from dataclasses import dataclass

from capmem._arrays import Array, namespace, transpose
from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule
from capmem.write_rules.chunks import refuse


@WRITE_RULES.register("hebbian")
@dataclass(frozen=True)
class Hebbian(WriteRule):
    """S <- S + phi(k) v^T and z <- z + phi(k); the order of the pairs does not matter."""

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
        refuse(self, step_size=step_size, log_decay=log_decay)
        xp = namespace(features)
        return RuleState(state.S + transpose(features) @ values, state.z + xp.sum(features, axis=-2))
