"""What a narrow state costs: rounding to a number format, and the bytes that it takes."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from capmem._arrays import Array, namespace

StateDType = Literal["float64", "float32", "bfloat16", "float16", "float8_e4m3", "int8"]


class Format(NamedTuple):
    """A floating format: bits of the significand (the hidden one too), least exponent, largest number, bytes.

    ``overflow`` is what a larger number becomes: float8_e4m3 has no infinity.
    """

    bits: int
    least_exponent: int
    largest: float
    bytes: int
    overflow: float = math.inf


FORMATS = {
    "float64": Format(53, -1022, math.inf, 8),
    "float32": Format(24, -126, 3.4028234663852886e38, 4),
    "bfloat16": Format(8, -126, 3.3895313892515355e38, 2),
    "float16": Format(11, -14, 65504.0, 2),
    "float8_e4m3": Format(4, -6, 448.0, 1, math.nan),
}
INT8_LEVELS = 127
SCALE_BYTES = 4  # an int8 column carries one float32 scale


def round_to(x: Array, name: StateDType) -> Array:
    """Return `x` (..., D, v) rounded to a format, to nearest, ties to even, in its own dtype.

    int8 has one scale a column, the largest |x| over D divided by 127. A number beyond the largest of the format
    becomes inf (nan in float8_e4m3): nothing is clipped.

    References
    ----------
    IEEE 754-2019. Micikevicius et al. 2022, arXiv 2209.05433 (float8_e4m3).
    """
    return _round_int8(x) if name == "int8" else _round_float(x, FORMATS[name])


def held_bytes(rows: int, columns: int, name: StateDType) -> int:
    """Return the bytes of an array (rows, columns) in a format, with the scales of int8."""
    if name == "int8":
        return rows * columns + columns * SCALE_BYTES
    return rows * columns * FORMATS[name].bytes


def _round_float(x: Array, form: Format) -> Array:
    xp = namespace(x)
    own_bits = round(1 - math.log2(float(xp.finfo(x.dtype).eps)))
    beyond = xp.where(x < 0, xp.full_like(x, -form.overflow), xp.full_like(x, form.overflow))
    if form.bits >= own_bits:
        return xp.where(xp.abs(x) > form.largest, beyond, x) if form.largest < float(xp.finfo(x.dtype).max) else x
    size = xp.abs(x)
    normal = size > 0
    exponent = xp.floor(xp.log2(xp.where(normal, size, xp.ones_like(size))))
    # log2 can be off by one beside a power of two
    exponent = exponent - xp.astype(_power(xp, exponent) > size, x.dtype)
    exponent = exponent + xp.astype(_power(xp, exponent + 1) <= size, x.dtype)
    exponent = xp.where(exponent < form.least_exponent, xp.full_like(exponent, form.least_exponent), exponent)
    step = _power(xp, exponent - (form.bits - 1))
    rounded = xp.round(x / step) * step
    rounded = xp.where(xp.abs(rounded) > form.largest, beyond, rounded)
    rounded = xp.where(xp.isinf(x), beyond, rounded)
    return xp.where(normal & ~xp.isnan(x), rounded, x)


def _power(xp: Any, exponent: Array) -> Array:
    return xp.pow(xp.full_like(exponent, 2.0), exponent)


def _round_int8(x: Array) -> Array:
    xp = namespace(x)
    scale = xp.max(xp.abs(x), axis=-2, keepdims=True) / INT8_LEVELS
    safe = xp.where(scale > 0, scale, xp.ones_like(scale))
    return xp.round(x / safe) * scale
