"""Error-correcting rules: what a key retrieves is taken out before its value is written."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

from capmem._arrays import Array, namespace, transpose
from capmem.schema import require
from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule
from capmem.write_rules.chunks import chunks, decayed_sum, erase_and_write, per_pair, refuse


class StabilityWarning(UserWarning):
    """A step size that makes a rule diverge when the same direction is written again and again."""


@WRITE_RULES.register("delta")
@dataclass(frozen=True)
class Delta(WriteRule):
    """S <- (I - b k k^T) S + b k v^T: a gradient step on |S^T k - v|^2 / 2.

    Stable for 0 < b |k|^2 < 2; b |k|^2 = 1 makes the newest pair exact. z is the plain sum of features.

    Parameters
    ----------
    step_size : float
        b, above 0.

    References
    ----------
    Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174.
    """

    step_size: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.step_size > 0, "step_size", self.step_size, "a number above 0")

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
        refuse(self, log_decay=log_decay)
        step = per_pair(step_size, self.step_size, features)
        warn_unstable(step, features, "phi(k)")
        S = state.S
        for part in chunks(features.shape[-2]):
            S = erase_and_write(S, features[..., part, :], values[..., part, :], step[..., part], None)
        return replace(state, S=S, z=state.z + namespace(features).sum(features, axis=-2))


@WRITE_RULES.register("gated_delta")
@dataclass(frozen=True)
class GatedDelta(WriteRule):
    """S <- a (I - b k k^T) S + b k v^T: decay first, then erase and write; z <- a z + k.

    Parameters
    ----------
    step_size : float
        b, above 0; stable for b |k|^2 < 2.
    rate : float
        a, in (0, 1].

    References
    ----------
    Yang, Kautz, Hatamizadeh 2025, arXiv 2412.06464.
    """

    step_size: float = 1.0
    rate: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.step_size > 0, "step_size", self.step_size, "a number above 0")
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
        """Return the state after the pairs; see :meth:`WriteRule.write`. Decay is one number a pair."""
        step = per_pair(step_size, self.step_size, features)
        decay = per_pair(log_decay, math.log(self.rate), features)
        warn_unstable(step, features, "phi(k)")
        S, z = state.S, state.z
        for part in chunks(features.shape[-2]):
            keys = features[..., part, :]
            S = erase_and_write(S, keys, values[..., part, :], step[..., part], decay[..., part])
            z = decayed_sum(z, keys, decay[..., part])
        return replace(state, S=S, z=z)


@WRITE_RULES.register("oja")
@dataclass(frozen=True)
class Oja(WriteRule):
    """S <- S (I - b v v^T) + b k v^T: the dual of delta, which forgets along values; z is the plain sum.

    Stable for b |v|^2 < 2, so it is values that want a norm: at the scale of N(0, 1) coordinates a step of
    1 / v is what a step of 1 is at unit norm.

    Parameters
    ----------
    step_size : float
        b, above 0.

    References
    ----------
    Irie, Faccio, Schmidhuber 2022, arXiv 2206.01649.
    """

    step_size: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.step_size > 0, "step_size", self.step_size, "a number above 0")

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
        refuse(self, log_decay=log_decay)
        step = per_pair(step_size, self.step_size, features)
        warn_unstable(step, values, "v")
        dual = transpose(state.S)
        for part in chunks(features.shape[-2]):
            dual = erase_and_write(dual, values[..., part, :], features[..., part, :], step[..., part], None)
        return replace(state, S=transpose(dual), z=state.z + namespace(features).sum(features, axis=-2))


def warn_unstable(step: Array, rows: Array, name: str) -> None:
    """Warn if a step size times the squared norm of its row is 2 or more."""
    xp = namespace(rows)
    power = step * xp.sum(rows * rows, axis=-1)
    try:
        count = int(xp.count_nonzero(power >= 2))
    except (TypeError, RuntimeError):
        return  # being traced (jax.jit, vmap): there are no values to look at
    if count:
        warnings.warn(
            f"{count} of {math.prod(power.shape)} pairs have step_size |{name}|^2 >= 2{_largest(xp, power)}: "
            f"the rule diverges there; use a smaller step or unit norm",
            StabilityWarning,
            stacklevel=3,
        )


def _largest(xp: Any, power: Array) -> str:
    try:
        return f" (largest {float(xp.max(power)):.3g})"
    except TypeError:
        return ""  # jax.grad: counts are known, numbers that have a gradient are not
