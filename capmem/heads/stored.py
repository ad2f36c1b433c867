"""Arrays that lie somewhere: shape and dtype at once, numbers when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from capmem.heads.widen import FORMATS, Numbers, name_of, widen


@dataclass(frozen=True)
class Stored:
    """An array that is not read yet.

    Attributes
    ----------
    shape : tuple of int
        Its shape.
    dtype : str
        Its format, as in ``bfloat16``.
    read : callable
        Returns it, with floats widened to float32 or float64.
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Numbers]


class Content(NamedTuple):
    """What a file or folder holds.

    Attributes
    ----------
    arrays : dict
        By name.
    metadata : dict
        Texts by name; ``capmem`` is what :meth:`Heads.save` wrote.
    """

    arrays: dict[str, Stored]
    metadata: dict[str, str]


def from_numpy(array: Any) -> Stored:
    """Return a NumPy array as it lies in memory."""
    return lazy(array.shape, array.dtype, lambda: array)


def lazy(shape: tuple[int, ...], dtype: np.dtype[Any], get: Callable[[], Any]) -> Stored:
    """Return an array of a NumPy dtype that `get` reads; raw bytes stay raw until their format is told."""
    name = name_of(dtype)
    return Stored(tuple(shape), name, lambda: widen(np.asarray(get()), name) if name in FORMATS else np.asarray(get()))


def from_tensor(tensor: Any) -> Stored:
    """Return a PyTorch tensor; one of a format that NumPy does not have is widened by PyTorch, exactly."""
    name = str(tensor.dtype).removeprefix("torch.")

    def get() -> Numbers:
        held = tensor.detach().cpu()
        return np.asarray((held.float() if held.is_floating_point() and name != "float64" else held).numpy())

    return Stored(tuple(tensor.shape), name, get)


def stored(array: Any, name: str) -> Stored:
    """Return an array of NumPy, PyTorch or another library as :class:`Stored`.

    Raises
    ------
    ValueError
        If it is none.
    """
    if hasattr(array, "detach"):
        return from_tensor(array)
    try:
        held = np.asarray(array)
    except Exception:  # what the conversion of an unknown object raises is anyone's guess
        raise ValueError(f"{name} must be an array, got {type(array).__name__}") from None
    if held.dtype == object or held.ndim == 0:
        raise ValueError(f"{name} must be an array of numbers, got {type(array).__name__}")
    return from_numpy(held)


def as_format(array: Stored, dtype: str | None) -> Stored:
    """Return an array with raw items, or integers that stand for them, read as a stated format."""
    if dtype is None or array.dtype == dtype:
        return array
    return Stored(array.shape, dtype, lambda: widen(array.read(), dtype))
