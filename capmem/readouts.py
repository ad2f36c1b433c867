"""Read-outs: how a query leaves the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from capmem._arrays import Array, namespace
from capmem.registry import Registry
from capmem.schema import check_fields, require


class Reading(NamedTuple):
    """What a read-out gives back.

    Attributes
    ----------
    retrieved : array (..., M, v)
        One value a query.
    nonpositive, zero : int
        How many denominators were not positive, and how many of them exactly zero (0 without a denominator).
    """

    retrieved: Array
    nonpositive: int = 0
    zero: int = 0


@dataclass(frozen=True)
class Readout(ABC):
    """A read-out: from S (..., D, v), z (..., D) and query features (..., M, D) to values (..., M, v)."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def __call__(self, S: Array, z: Array, features: Array) -> Reading:
        """Read the state with query features (..., M, D)."""


READOUTS: Registry[Readout] = Registry("readout")
register = READOUTS.register


@READOUTS.register("linear")
@dataclass(frozen=True)
class Linear(Readout):
    """y = S^T phi(q)."""

    def __call__(self, S: Array, z: Array, features: Array) -> Reading:
        """Read the state; see :class:`Readout`."""
        return Reading(features @ S)


@READOUTS.register("normalized")
@dataclass(frozen=True)
class Normalized(Readout):
    """y = S^T phi(q) / (phi(q) . z + epsilon), linear attention's weighted mean of the values.

    With signed features the denominator can be negative or zero. Such denominators are counted, never
    hidden: where it is exactly zero the read-out is 0.

    Parameters
    ----------
    epsilon : float
        Added to the denominator, at least 0.

    References
    ----------
    Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236.
    """

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon >= 0, "epsilon", self.epsilon, "a number of at least 0")

    def __call__(self, S: Array, z: Array, features: Array) -> Reading:
        """Read the state; see :class:`Readout`."""
        xp = namespace(features)
        denominator = features @ z[..., None] + self.epsilon
        is_zero = denominator == 0
        safe = xp.where(is_zero, xp.ones_like(denominator), denominator)
        retrieved = xp.where(is_zero, xp.zeros_like(denominator), (features @ S) / safe)
        return Reading(retrieved, int(xp.count_nonzero(denominator <= 0)), int(xp.count_nonzero(is_zero)))


@READOUTS.register("rms_norm")
@dataclass(frozen=True)
class RMSNorm(Readout):
    """y / sqrt(mean(y^2) + epsilon) with y = S^T phi(q): the output normalised, no denominator needed.

    The length of what comes back says nothing any more: with |v|^2 = v, the relative squared error is
    2 (1 - cosine).

    Parameters
    ----------
    epsilon : float
        At least 0; y = 0 reads as 0.

    References
    ----------
    Zhang, Sennrich 2019, arXiv 1910.07467. Qin et al. 2022, arXiv 2210.10340.
    """

    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon >= 0, "epsilon", self.epsilon, "a number of at least 0")

    def __call__(self, S: Array, z: Array, features: Array) -> Reading:
        """Read the state; see :class:`Readout`."""
        xp = namespace(features)
        retrieved = features @ S
        largest = xp.max(xp.abs(retrieved), axis=-1, keepdims=True)  # squares of large numbers overflow
        unit = xp.where(largest > 1, largest, xp.ones_like(largest))
        scaled = retrieved / unit
        power = xp.mean(scaled * scaled, axis=-1, keepdims=True) + self.epsilon / unit / unit
        is_zero = power == 0
        norm = xp.sqrt(xp.where(is_zero, xp.ones_like(power), power))
        return Reading(xp.where(is_zero, xp.zeros_like(scaled), scaled / norm))
