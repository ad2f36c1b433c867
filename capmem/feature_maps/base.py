"""What a feature map is: phi, its width, its sign, its kernel, and the warnings when numbers leave their range."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import size

from capmem._arrays import Array, namespace, require_vectors, transpose
from capmem.registry import Registry
from capmem.schema import check_fields, coerce, require


def quiet() -> np.errstate:
    """Return a context in which NumPy does not warn of overflow: OverflowWarning does, with numbers."""
    return np.errstate(over="ignore", invalid="ignore")


class OverflowWarning(UserWarning):
    """Some features, or kernel values, left the range of their dtype; the message counts them."""


class UnderflowWarning(UserWarning):
    """Some keys that are not zero have only zero features, so they are not stored; the message counts them."""


@dataclass(frozen=True)
class FeatureMap(ABC):
    """A map phi from keys in R^d to features in R^D.

    Attributes
    ----------
    signed : bool
        Whether features can be negative.
    positive_kernel : bool
        Whether phi(x) . phi(y) is never negative; a normalised read-out needs it.
    positional : bool
        Whether features depend on the place of a key in the sequence.
    row_wise : bool
        Whether the features of a key have the same bits however many other keys follow it, and if the keys before it
        are left out by multiples of 64: of a product of matrices that is not certain.

    Notes
    -----
    No map adds an epsilon to its features: a floor turns the memory of large keys into a uniform average. Maps
    that can leave the range of a dtype warn instead (:class:`OverflowWarning`, :class:`UnderflowWarning`).
    """

    signed: ClassVar[bool] = False
    positive_kernel: ClassVar[bool] = True
    positional: ClassVar[bool] = False
    row_wise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def width(self, key_dim: int) -> int:
        """Return the feature dimension D for keys of dimension `key_dim`."""

    @abstractmethod
    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features (..., N, D).

        Parameters
        ----------
        x : array (..., N, d)
            Real floating point.
        positions : array (N,), optional
            Place of each key in the sequence; only maps that depend on it use it (default: 0 to N - 1).

        Raises
        ------
        ValueError
            If `x` has fewer than two axes or is not floating point.
        """

    def kernel(self, x: Array, y: Array) -> Array:
        """Return the kernel (..., N, M) of all pairs; for an exact map, phi(x) . phi(y)."""
        return self(x) @ transpose(self(y))


@dataclass(frozen=True)
class ElementwiseMap(FeatureMap):
    """A map that applies one function to every coordinate; D = d.

    Attributes
    ----------
    overflows : bool
        Whether the function grows faster than its argument, so that its values are looked at.
    """

    row_wise: ClassVar[bool] = True
    overflows: ClassVar[bool] = False

    def width(self, key_dim: int) -> int:
        """Return D = d."""
        return key_dim

    @abstractmethod
    def function(self, x: Array, xp: Any) -> Array:
        """Apply the scalar function to an array of any shape, in the namespace `xp`."""

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (..., N, d) to features of the same shape; see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        if not self.overflows:
            return self.function(x, xp)
        with quiet():
            features = self.function(x, xp)
        warn_overflow(features, self)
        return features


def warn_overflow(values: Array, source: FeatureMap, what: str = "features") -> None:
    """Warn if some of `values` are not finite: how many of how many, and of which dtype."""
    xp = namespace(values)
    try:
        with quiet():
            if bool(xp.isfinite(xp.sum(values))):
                return  # one pass, no temporary array
        bad = int(xp.count_nonzero(~xp.isfinite(values)))
    except (TypeError, RuntimeError):
        return  # being traced (jax.jit, vmap): there are no values to look at
    if bad:
        warnings.warn(
            f"{bad} of {size(values)} {what} of {source} are not finite in {values.dtype}: "
            "the keys are too large for this map; use key_norm or a smaller key_scale",
            OverflowWarning,
            stacklevel=3,
        )


def warn_underflow(features: Array, x: Array, source: FeatureMap) -> None:
    """Warn if keys `x` that are not zero have only zero features."""
    xp = namespace(features)
    try:
        if bool(xp.min(features) > 0):
            return  # one pass, no temporary array
        lost = ~xp.any(features != 0, axis=-1) & xp.any(x != 0, axis=-1)
        count = int(xp.count_nonzero(lost))
    except (TypeError, RuntimeError):
        return
    if count:
        warnings.warn(
            f"{count} of {size(lost)} keys have only zero features under {source} in {features.dtype}: "
            "they are not stored; use key_norm or another key_scale",
            UnderflowWarning,
            stacklevel=3,
        )


def rectify(xp: Any, x: Array) -> Array:
    """Return max(x, 0); nan stays nan, so that it is met and counted."""
    return xp.maximum(x, xp.zeros_like(x))


def require_integer(value: object, key: str, least: int) -> None:
    """Raise ValueError unless `value` is an integer of at least `least`."""
    require(coerce(value, int, key) >= least, key, value, f"an integer of at least {least}")


FEATURE_MAPS: Registry[FeatureMap] = Registry("feature_map")
