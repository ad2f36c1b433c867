"""Heads in a file of their own kind: all arrays, and what is known besides as JSON beside them."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem.files import replace_file
from capmem.heads import tensor_file
from capmem.heads.container import Heads, Metadata
from capmem.heads.files import METADATA
from capmem.heads.layer import PARTS, Layer
from capmem.heads.widen import Numbers
from capmem.schema import construct, unknown

if TYPE_CHECKING:
    from capmem.heads.stored import Content

FORMAT = "capmem heads 1"


def save(heads: Heads, path: str | Path) -> None:
    """Write heads, one layer in memory at a time; see :meth:`Heads.save`.

    Raises
    ------
    ValueError
        For another kind of file, or if the file is there: nothing is overwritten.
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ValueError(unknown("the kind of file", path.suffix or path.name, WRITERS))
    if path.exists():
        raise ValueError(f"{path} exists, nothing is overwritten: name another file")
    specs: dict[str, tuple[str, tuple[int, ...]]] = {}
    numbers: dict[str, Any] = {}
    for index in heads.layers:  # a first pass for the shapes, which stand before the numbers
        layer = heads.layer(index)
        specs |= {_name(index, part): (array.dtype.name, array.shape) for part, array in layer.parts().items()}
        numbers[str(index)] = [layer.key_heads, layer.query_heads]
    known = {"format": FORMAT, "heads": numbers, "metadata": dataclasses.asdict(heads.metadata)}
    writer, text = WRITERS[path.suffix], json.dumps(known)
    replace_file(path, lambda unfinished: writer(unfinished, specs, partial(_arrays, heads), text))


def restore(content: Content, where: str) -> Heads:
    """Return the heads that :func:`save` wrote.

    Raises
    ------
    ValueError
        If the file says it is one of these, and is not.
    """
    try:
        known = json.loads(content.metadata["capmem"])
        written = known["format"]
        numbers = {int(index): tuple(map(tuple, pair)) for index, pair in known["heads"].items()}
        fields = dict(known["metadata"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{where}: what capmem wrote beside the arrays is damaged") from None
    if written != FORMAT:
        raise ValueError(f"{where} is written as {written!r}, this version reads {FORMAT!r}")
    missing = [index for index in numbers if _name(index, "keys") not in content.arrays]
    if missing:
        raise ValueError(f"{where}: the keys of layer {missing[0]} are missing")

    def read(index: int) -> Layer:
        parts = {part: content.arrays.get(_name(index, part)) for part in PARTS}
        arrays: dict[str, Any] = {part: held.read() for part, held in parts.items() if held is not None}
        return Layer(index, **arrays, key_heads=numbers[index][0], query_heads=numbers[index][1])

    return Heads(tuple(numbers), read, construct(Metadata, fields, where))


def _arrays(heads: Heads) -> Iterator[Numbers]:
    for index in heads.layers:
        yield from heads.layer(index).parts().values()


def _name(index: int, part: str) -> str:
    return f"layers.{index}.{part}"


def _write_npz(path: Path, specs: dict[str, Any], arrays: Any, text: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        _add(archive, METADATA, np.frombuffer(text.encode(), np.uint8))
        for name, array in zip(specs, arrays(), strict=True):
            _add(archive, name, array)


def _add(archive: zipfile.ZipFile, name: str, array: Numbers) -> None:
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:  # a fixed date: equal bytes
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


WRITERS = {".npz": _write_npz, ".safetensors": tensor_file.write}
