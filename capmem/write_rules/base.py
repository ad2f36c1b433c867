"""What a write rule is: how pairs enter the state, as a value that is never changed in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from capmem._arrays import Array, device, namespace
from capmem.registry import Registry
from capmem.schema import check_fields


@dataclass(frozen=True, eq=False)
class RuleState:
    """The state of a write rule.

    Attributes
    ----------
    S : array (..., D, v)
        The memory matrix.
    z : array (..., D)
        The sum of features under the rule's decay: the normaliser of a normalised read-out.
    """

    S: Array
    z: Array


@dataclass(frozen=True)
class WriteRule(ABC):
    """How pairs enter the state: ``init``, then ``write`` any number of times, then ``matrix``."""

    def __post_init__(self) -> None:
        check_fields(self)

    def init(
        self, feature_dim: int, value_dim: int, batch: tuple[int, ...] = (), like: Array | None = None
    ) -> RuleState:
        """Return the empty state: S (*batch, D, v) and z (*batch, D), all zero.

        Parameters
        ----------
        feature_dim, value_dim : int
            D and v.
        batch : tuple of int
            Leading axes.
        like : array, optional
            Its library, dtype and device are taken (default: NumPy float64).
        """
        return empty(feature_dim, value_dim, batch, like)

    @abstractmethod
    def write(
        self,
        state: RuleState,
        features: Array,
        values: Array,
        *,
        step_size: Array | None = None,
        log_decay: Array | None = None,
    ) -> RuleState:
        """Return the state after N pairs more, features (..., N, D) and values (..., N, v), in order.

        One call and many smaller ones agree to rounding; `state` is left as it is.

        Parameters
        ----------
        state : RuleState
            What was written before.
        features, values : array (..., N, D), (..., N, v)
            The pairs.
        step_size : array (..., N), optional
            A step for each pair, in place of the rule's constant.
        log_decay : array (..., N) or (..., N, D), optional
            The logarithm of a decay for each pair (and feature, where the rule has it), at most 0.

        Raises
        ------
        ValueError
            If `step_size` or `log_decay` is given to a rule that has none.
        """

    def shapes(self, feature_dim: int, value_dim: int) -> dict[str, tuple[int, int]]:
        """Return the shape of every array that the state holds, by field; z as one column."""
        return {"S": (feature_dim, value_dim), "z": (feature_dim, 1)}

    def hold(self, state: RuleState, arrays: dict[str, Array]) -> RuleState:
        """Return the state with these arrays in place of its own, by field, as :meth:`shapes` names them."""
        return replace(state, **arrays)

    def matrix(self, state: RuleState) -> Array:
        """Return the memory matrix S (..., D, v)."""
        return state.S


def empty(feature_dim: int, value_dim: int, batch: tuple[int, ...], like: Array | None) -> RuleState:
    """Return a state of zeros; see :meth:`WriteRule.init`."""
    like = np.empty(0) if like is None else like
    kind = {"dtype": like.dtype, "device": device(like)}
    xp = namespace(like)
    return RuleState(xp.zeros((*batch, feature_dim, value_dim), **kind), xp.zeros((*batch, feature_dim), **kind))


WRITE_RULES: Registry[WriteRule] = Registry("write_rule")
