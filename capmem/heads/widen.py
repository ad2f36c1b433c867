"""Number formats: stored bytes become float32 (or float64), exactly; also formats that NumPy does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capmem.schema import unknown

Numbers = NDArray[Any]


class Format(NamedTuple):
    """A number format.

    Attributes
    ----------
    stored : str
        The NumPy dtype that its bytes are read as, little-endian.
    widen : callable
        Turns these into numbers; every one is exact.
    """

    stored: str
    widen: Callable[[Numbers], Numbers]


def _same(raw: Numbers) -> Numbers:
    return raw


def _half(raw: Numbers) -> Numbers:
    return raw.astype(np.float32)


def _bfloat16(raw: Numbers) -> Numbers:
    """The upper half of a float32."""
    return (raw.astype(np.uint32) << 16).view(np.float32)


def _float8_e5m2(raw: Numbers) -> Numbers:
    """The upper half of a float16."""
    return (raw.astype(np.uint16) << 8).view(np.float16).astype(np.float32)


def _float8_e4m3(raw: Numbers) -> Numbers:
    """Bias 7, no infinity, and nan where all bits but the sign are set (Micikevicius et al. 2022, arXiv 2209.05433)."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    size[(code & 127) == 127] = np.nan
    return np.where(code & 128, -size, size).astype(np.float32)[raw]


FLOATS = {
    "float64": Format("<f8", _same),
    "float32": Format("<f4", _same),
    "float16": Format("<f2", _half),
    "bfloat16": Format("<u2", _bfloat16),
    "float8_e5m2": Format("u1", _float8_e5m2),
    "float8_e4m3": Format("u1", _float8_e4m3),
}

INTEGERS = {
    f"{kind}{8 * size}": Format(f"<{kind[0]}{size}", _same) for kind in ("int", "uint") for size in (1, 2, 4, 8)
} | {"bool": Format("?", _same)}

FORMATS = FLOATS | INTEGERS


def widen(raw: Numbers, dtype: str) -> Numbers:
    """Return numbers of a format as NumPy numbers: float64 stays, all other floats become float32.

    Parameters
    ----------
    raw : array
        Items as wide as those of the format: its bytes, or the numbers themselves where NumPy has the format.
    dtype : str
        The name of the format, as in ``bfloat16``.

    Raises
    ------
    ValueError
        For a format that does not exist, or items of another width.
    """
    if dtype not in FORMATS:
        raise ValueError(unknown("dtype", dtype, FORMATS))
    stored = np.dtype(FORMATS[dtype].stored)
    if raw.dtype.itemsize != stored.itemsize:
        raise ValueError(f"dtype {dtype} has {stored.itemsize} bytes a number, the array {raw.dtype.itemsize}")
    if raw.dtype.kind == stored.kind:
        return FORMATS[dtype].widen(raw.astype(stored, copy=False))
    return FORMATS[dtype].widen(np.ascontiguousarray(raw).view(stored))


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a NumPy dtype; raw items of 2 bytes, which is what bfloat16 is saved as, are "raw16"."""
    return f"raw{8 * dtype.itemsize}" if dtype.kind == "V" else dtype.name
