"""What a write rule is: how pairs enter the state, as a value that is never changed in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from capmem._arrays import Array
from capmem.registry import Registry


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

    @abstractmethod
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

        Raises
        ------
        ValueError
            If `step_size` or `log_decay` is given to a rule that has none.
        """

    def matrix(self, state: RuleState) -> Array:
        """Return the memory matrix S (..., D, v)."""
        return state.S


WRITE_RULES: Registry[WriteRule] = Registry("write_rule")
