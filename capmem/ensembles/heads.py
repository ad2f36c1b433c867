"""Keys and values of a head of a trained model: layer and head are fields, so they can be swept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from capmem.ensembles.arrays import ArrayKeys, ArrayValues, unreadable
from capmem.ensembles.base import KEYS, VALUES, Rows
from capmem.schema import unknown

Stamp = tuple[tuple[str, int, int], ...]


@KEYS.register("heads")
@dataclass(frozen=True)
class HeadKeys(ArrayKeys):
    """Keys of one attention head, from what :func:`capmem.heads.load` reads; see :class:`ArrayKeys`.

    Parameters
    ----------
    path : str
        A file or folder of heads.
    layer, head : int
        Which key head of which layer.
    special : bool
        Whether special tokens, such as [CLS] and BOS, stay in.
    """

    name: str | None = field(default=None, init=False, repr=False)
    layer: int = 0
    head: int = 0
    special: bool = True

    def rows(self) -> Rows:
        """Return the keys (T, d) of the head, float64; see :meth:`~capmem.ensembles.arrays.ArrayEnsemble.rows`."""
        return _rows("keys", self.path, self.layer, self.head, self.special, stamp(self.path))[0]

    def sha256(self) -> str:
        """Return the SHA-256 of these keys; see :meth:`~capmem.ensembles.arrays.ArrayEnsemble.sha256`."""
        return _rows("keys", self.path, self.layer, self.head, self.special, stamp(self.path))[1]


@VALUES.register("heads")
@dataclass(frozen=True)
class HeadValues(ArrayValues):
    """Values of one attention head; with keys of a head, value i belongs to key i. See :class:`ArrayValues`.

    Parameters
    ----------
    path, layer, head, special
        As in :class:`HeadKeys`.
    """

    name: str | None = field(default=None, init=False, repr=False)
    layer: int = 0
    head: int = 0
    special: bool = True

    def rows(self) -> Rows:
        """Return the values (T, v) of the head, float64; see :meth:`~capmem.ensembles.arrays.ArrayEnsemble.rows`."""
        return _rows("values", self.path, self.layer, self.head, self.special, stamp(self.path))[0]

    def sha256(self) -> str:
        """Return the SHA-256 of these values; see :meth:`~capmem.ensembles.arrays.ArrayEnsemble.sha256`."""
        return _rows("values", self.path, self.layer, self.head, self.special, stamp(self.path))[1]


def stamp(path: str) -> Stamp:
    """Return name, time and size of every file: what is kept in memory is that of the file as it is now."""
    place = Path(path)
    try:
        files = sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
        return tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in files)
    except OSError as error:
        raise unreadable(path, error) from None


@lru_cache(maxsize=16)
def _rows(part: str, path: str, layer: int, head: int, special: bool, stamp: Stamp) -> tuple[Rows, str]:
    from capmem import heads

    found = heads.load(path)
    found = found if special else found.without_special()
    if layer not in found.layers:
        raise ValueError(unknown("layer", layer, map(str, found.layers)))
    held = found.layer(layer)
    if head not in held.key_heads:
        raise ValueError(unknown(f"head (of keys, layer {layer})", head, map(str, held.key_heads)))
    array = getattr(held, part)
    if array is None:
        raise ValueError(f"path {path!r} must hold {part}, it has none in layer {layer}")
    rows = np.array(array[held.key_heads.index(head)], dtype=np.float64, order="C")
    rows.setflags(write=False)
    return rows, hashlib.sha256(repr(rows.shape).encode() + rows.tobytes()).hexdigest()
