"""Which array library, and which device, an experiment computes with; whatever it is, draws are NumPy's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from capmem._arrays import Array
from capmem.ensembles.base import Rows
from capmem.schema import require


@dataclass(frozen=True)
class Backend:
    """A library on a device, and how drawn rows get there: NumPy, unless a subclass says otherwise.

    Parameters
    ----------
    device : str
        As the library names it.
    most_numbers : int
        How many numbers a batch of trials may take.
    """

    device: str
    most_numbers: int

    def array(self, rows: Rows, dtype: str) -> Array:
        """Return a NumPy array as one of this library, of this dtype, on the device."""
        return rows.astype(dtype, copy=False)

    def stack(self, rows: list[Rows], dtype: str) -> Array:
        """Return the rows of the trials as one array: (N, dim) of one trial, (T, N, dim) of T."""
        if len(rows) == 1:
            return self.array(rows[0], dtype)
        stacked = np.empty((len(rows), *rows[0].shape), dtype)
        for each, target in zip(rows, stacked, strict=True):
            target[...] = each
        return self.array(stacked, dtype)


class TorchBackend(Backend):
    """PyTorch, on the CPU or a GPU."""

    def array(self, rows: Rows, dtype: str) -> Array:
        """Return a tensor on the device; see :meth:`Backend.array`."""
        torch = importlib.import_module("torch")
        return torch.from_numpy(np.array(rows, dtype=dtype)).to(self.device)


def numpy_backend(device: str) -> Backend:
    """Return NumPy; it has no other device than the CPU."""
    require(device == "cpu", "device", device, "cpu with backend = numpy")
    return Backend("cpu", 2**22)


def torch_backend(device: str) -> Backend:
    """Return PyTorch on a device that is there.

    Raises
    ------
    ValueError
        If PyTorch is not installed, or has no such device.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ValueError('backend = torch needs PyTorch, which is not installed: pip install "capmem[torch]"') from None
    try:
        kind = torch.device(device).type
        torch.empty(1, device=device)
    except Exception as error:  # what a missing driver raises is anyone's guess
        reason = (str(error).strip().splitlines() or ["no reason was given"])[0]
        raise ValueError(f"device {device!r} is not there for PyTorch {torch.__version__}: {reason}") from None
    return TorchBackend(device, 2**27 if kind != "cpu" else 2**22)


BACKENDS: dict[str, Callable[[str], Backend]] = {"numpy": numpy_backend, "torch": torch_backend}


def as_numpy(x: Array) -> Any:
    """Return an array of any library as a NumPy one, from whatever device."""
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)
