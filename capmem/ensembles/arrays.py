"""Keys and values that a user has: an array in an .npy or .npz file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from capmem._arrays import Array, take_rows
from capmem.ensembles.base import KEYS, VALUES, Ensemble, Rows, Stream
from capmem.ensembles.means import about_mean, require_finite_mean
from capmem.schema import coerce, unknown

Order = Literal["random", "given"]


@dataclass(frozen=True)
class ArrayEnsemble(Ensemble):
    """Rows of a two-dimensional array (N, dim) in a file; any floating or integer dtype.

    Parameters
    ----------
    path : str
        An .npy or .npz file. Nothing in it is ever unpickled.
    name : str, optional
        The array in an .npz file; may be left out if it holds one only.
    """

    path: str
    name: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rows()  # a file that cannot be used is refused here

    def max_pairs(self, key_dim: int) -> int | None:
        """Return the number of rows in the file."""
        return len(self.rows())

    def file_dim(self) -> int | None:
        """Return the dimension of the rows in the file."""
        return int(self.rows().shape[1])

    def rows(self) -> Rows:
        """Return the whole array (N, dim) as float64, checked.

        Raises
        ------
        ValueError
            If the file is missing or unreadable, the name is not in it, or the array is not a finite,
            real, two-dimensional one with at least one row.
        """
        return _load(self.path, self.name, *_stamp(self.path))[0]

    def sha256(self) -> str:
        """Return the SHA-256 of the array's shape and values, whatever file it lies in."""
        return _load(self.path, self.name, *_stamp(self.path))[1]


@KEYS.register("array")
@dataclass(frozen=True)
class ArrayKeys(ArrayEnsemble):
    """Keys from a file: rows of a two-dimensional array; see :class:`ArrayEnsemble`.

    Parameters
    ----------
    order : {"random", "given"}
        Each trial stores the rows in a random order of its own, so a trial of n pairs is a random subset; or
        every trial stores them as they stand in the file.
    """

    order: Order = "random"

    def __post_init__(self) -> None:
        coerce(self.order, Order, "order")
        super().__post_init__()

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return RowStream(self.rows(), rng, self.order)


@VALUES.register("array")
@dataclass(frozen=True)
class ArrayValues(ArrayEnsemble):
    """Values from a file; see :class:`ArrayEnsemble`. With keys from a file too, row i belongs to row i.

    Parameters
    ----------
    mean : float
        Added to every coordinate of every value, besides what mean the rows have.
    """

    mean: float = 0.0

    def __post_init__(self) -> None:
        require_finite_mean(self.mean)
        super().__post_init__()

    def start(self, rng: np.random.Generator, dim: int, order: Order = "random") -> Stream:
        """Return a stream of rows; with the generator and order of the keys, in the order of the keys."""
        return RowStream(about_mean(self.rows(), self.mean), rng, order)


class RowStream(Stream):
    """Rows of an array (N, dim) of any library, handed out in a stated order, each one once.

    Parameters
    ----------
    rows : array (N, dim)
        The rows.
    rng : numpy.random.Generator
        It draws the order, where that is random.
    order : {"random", "given"}
        See :class:`ArrayKeys`.
    """

    def __init__(self, rows: Array, rng: np.random.Generator, order: Order) -> None:
        self.rows = rows
        self.indices = rng.permutation(rows.shape[0]) if order == "random" else np.arange(rows.shape[0])
        self.position = 0

    def draw(self, num_rows: int) -> Array:
        """Return the next rows; see :meth:`Stream.draw`."""
        chosen = self.indices[self.position : self.position + num_rows]
        self.position += num_rows
        return take_rows(self.rows, chosen)

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return a stream through all the rows again, in an order of its own."""
        return RowStream(self.rows, rng, "random")

    def others(self, rng: np.random.Generator, taken: int, num_rows: int) -> Array:
        """Return the rows that come after the first `taken` in this stream's order."""
        return take_rows(self.rows, self.indices[taken : taken + num_rows])


def unreadable(path: str, error: OSError) -> ValueError:
    """Return the error of a file that cannot be read; it says where the samples are, which presets name."""
    hint = "; the samples are in the repository, not in the package" if Path(path).parts[:1] == ("samples",) else ""
    return ValueError(f"path {path!r} cannot be read: {error.strerror}{hint}")


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _load(path: str, name: str | None, changed: int, size: int) -> tuple[Rows, str]:
    array = _pick(path, name)
    where = f"{path}" + (f" [{name}]" if name else "")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"path {where} must hold an array (N, dim) with rows, got shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"path {where} must hold real numbers, got dtype {array.dtype}")
    rows = array.astype(np.float64, order="C")  # the bits of sums do not depend on the file's layout
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(f"path {where} holds nan or inf in {bad.sum()} rows, the first is {bad.argmax()}")
    rows.setflags(write=False)
    return rows, hashlib.sha256(repr(rows.shape).encode() + rows.tobytes()).hexdigest()


def _pick(path: str, name: str | None) -> np.ndarray[Any, Any]:
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            if name is not None:
                raise KeyError(f"name must be null for the .npy file {path}, got {name!r}")
            return content
        with content:
            return np.asarray(content[_array_name(path, name, content.files)])
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    except Exception:  # what a damaged header raises is anyone's guess
        raise ValueError(
            f"path {path!r} is not an .npy or .npz file of plain numbers, or is damaged (nothing is ever unpickled)"
        ) from None


def _array_name(path: str, name: str | None, names: list[str]) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise KeyError(f"name must be given, {path} holds {len(names)} arrays: {', '.join(names)}")
    if name not in names:
        raise KeyError(unknown("name", name, names))
    return name
