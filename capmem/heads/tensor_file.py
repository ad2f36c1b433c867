"""Safetensors files, read and written by hand: the format is a JSON header and plain bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from capmem.heads.stored import Content, Stored
from capmem.heads.widen import FORMATS, Numbers, widen

MAX_HEADER = 100_000_000  # bytes; the limit of the format
METADATA = "__metadata__"

NAMES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3",
    "BOOL": "bool",
} | {f"{kind}{bits}": f"{name}{bits}" for kind, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)}
CODES = {name: code for code, name in NAMES.items()}


def read(path: Path) -> Content:
    """Return what a safetensors file holds; nothing of it is read yet but the header.

    Raises
    ------
    ValueError
        If the header does not describe the file: each tensor has the bytes that its shape needs, and all
        tensors together fill the file, without overlap or gap.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(MAX_HEADER, size - 8):
            raise ValueError(f"{path}: the header is said to have {length} bytes, the file has {size}")
        header = _parse(file.read(length), path)
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{path}: {METADATA} must map names to text")
    arrays, spans = {}, []
    for name, entry in header.items():
        dtype, shape, begin, end = _checked(entry, f"{path}: the header entry {name!r}")
        spans.append((begin, end, name))
        arrays[name] = Stored(shape, dtype, partial(_tensor, path, 8 + length + begin, end - begin, dtype, shape))
    _check_spans(sorted(spans), size - 8 - length, path)
    return Content(arrays, metadata)


def _parse(text: bytes, path: Path) -> dict[str, Any]:
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(f"{twice[0]!r} stands in it twice")
        return dict(pairs)

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: the header is not valid: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path}: the header must be a JSON object, got {type(header).__name__}")
    return header


def _checked(entry: Any, where: str) -> tuple[str, tuple[int, ...], int, int]:
    """Return dtype, shape, begin and end of one header entry."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{where} must have dtype, shape and data_offsets, got {_short(entry)}")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in NAMES:
        raise ValueError(f"{where} has dtype {_short(code)}, known are {', '.join(NAMES)}")
    if not _counts(shape) or not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(f"{where} has shape {_short(shape)} and data_offsets {_short(offsets)}: not sizes")
    begin, end = offsets
    needed = math.prod(shape) * np.dtype(FORMATS[NAMES[code]].stored).itemsize
    if end - begin != needed:
        raise ValueError(f"{where}: {code} of shape {_short(shape)} needs {needed} bytes, it has {end - begin}")
    return NAMES[code], tuple(shape), begin, end


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _check_spans(spans: list[tuple[int, int, str]], size: int, path: Path) -> None:
    """Refuse tensors that overlap, leave gaps, or reach past the end of the file."""
    position = 0
    for begin, end, name in spans:
        if begin != position:
            what = "overlaps the tensor before it" if begin < position else "leaves a gap before it"
            raise ValueError(f"{path}: tensor {name!r} at byte {begin} {what}, which ends at {position}")
        position = end
    if position != size:
        raise ValueError(f"{path}: the header describes {position} bytes of tensors, the file holds {size}")


def _tensor(path: Path, start: int, length: int, dtype: str, shape: tuple[int, ...]) -> Numbers:
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(length)
    if len(data) != length:
        raise ValueError(f"{path} has changed since it was opened: {len(data)} bytes left of {length}")
    return widen(np.frombuffer(data, FORMATS[dtype].stored), dtype).reshape(shape)


def write(
    path: Path, specs: Mapping[str, tuple[str, tuple[int, ...]]], arrays: Callable[[], Iterator[Numbers]], text: str
) -> None:
    """Write arrays one after another.

    Parameters
    ----------
    path : Path
        The file.
    specs : mapping
        Dtype and shape of each array, by name, in the order in which `arrays` gives them.
    arrays : callable
        Returns an iterator over the arrays.
    text : str
        Goes into the header's metadata, as ``capmem``.
    """
    header: dict[str, Any] = {METADATA: {"capmem": text}}
    position = 0
    for name, (dtype, shape) in specs.items():
        size = math.prod(shape) * np.dtype(dtype).itemsize
        header[name] = {"dtype": CODES[dtype], "shape": list(shape), "data_offsets": [position, position + size]}
        position += size
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for array in arrays():
            file.write(np.ascontiguousarray(array, FORMATS[array.dtype.name].stored).tobytes())
