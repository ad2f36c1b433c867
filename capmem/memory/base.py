"""What every memory has: init, write, read, and the size of its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from capmem._arrays import Array, require_vectors
from capmem.registry import Registry
from capmem.schema import check_fields, require

ITEM_SIZE = {"float16": 2, "float32": 4, "float64": 8}


class StateSize(NamedTuple):
    """How much a state holds, in numbers and in bytes."""

    elements: int
    bytes: int


class Diagnostics(NamedTuple):
    """What a read met on its way.

    Attributes
    ----------
    nonpositive_denominators, zero_denominators : int
        Denominators that were not positive, and those among them that were exactly zero (read as 0).
    zero_rows : int
        Queries (or their features) that have no norm, and stayed zero.
    """

    nonpositive_denominators: int = 0
    zero_denominators: int = 0
    zero_rows: int = 0


class Prepared(NamedTuple):
    """Rows as the state sees them: after all that a memory does to a key before it is written, or read with.

    Attributes
    ----------
    rows : array (..., N, D)
        The keys themselves, for a memory that does nothing to them.
    zero_rows : int
        How many have no norm, and stayed zero.
    """

    rows: Array
    zero_rows: int = 0


class Memory(ABC):
    """A memory of key/value pairs, with functional state: a value that no call changes in place.

    Attributes
    ----------
    feature_map : FeatureMap or None
        The map from keys to features; None for a memory without.
    centers : bool
        Whether a mean is taken from keys or features, so that ``calibrate`` has something to give.
    """

    centers: ClassVar[Any] = False

    def __post_init__(self) -> None:
        check_fields(self)

    feature_map: Any = None

    @abstractmethod
    def init(
        self,
        key_dim: int,
        value_dim: int,
        batch: tuple[int, ...] = (),
        like: Array | None = None,
        key_mean: Array | None = None,
        feature_mean: Array | None = None,
    ) -> Any:
        """Return the empty state, in the library, dtype and device of `like` (default: NumPy float64)."""

    @abstractmethod
    def write(self, state: Any, keys: Array, values: Array) -> Any:
        """Return the state after N pairs more: keys (..., N, d), values (..., N, v)."""

    @abstractmethod
    def read(self, state: Any, queries: Array, positions: Array | None = None, diagnostics: bool = False) -> Any:
        """Return the values (..., M, v) that queries (..., M, d) retrieve, or (values, Diagnostics)."""

    @abstractmethod
    def state_size(
        self, key_dim: int, value_dim: int, num_pairs: int | None = None, dtype: str = "float32"
    ) -> StateSize:
        """Return the size of what one state holds, `dtype` being float16, float32 or float64."""

    def prepare(self, state: Any, keys: Array, positions: Array | None = None) -> Prepared:
        """Return keys (..., N, d) as the state sees them, to be written and read without doing that again."""
        return Prepared(keys)

    def write_prepared(self, state: Any, prepared: Prepared, values: Array) -> Any:
        """Return the state after the pairs: ``write(state, keys, values)``."""
        return self.write(state, prepared.rows, values)

    def read_prepared(self, state: Any, prepared: Prepared) -> tuple[Array, Diagnostics]:
        """Return what ``read(state, keys, diagnostics=True)`` does."""
        found: tuple[Array, Diagnostics] = self.read(state, prepared.rows, diagnostics=True)
        return found

    def calibrate(self, keys: Array, key_mean: Array | None = None) -> dict[str, Array]:
        """Return the means that this memory centres by, from keys (..., N, d): ``init(..., **means)``."""
        return {}

    def feature_dim(self, key_dim: int) -> int | None:
        """Return the feature dimension D; None for a memory without features."""
        return None


def size_in(elements: int, dtype: str) -> StateSize:
    """Return the size of so many numbers of a dtype."""
    require(dtype in ITEM_SIZE, "dtype", dtype, "one of " + ", ".join(ITEM_SIZE))
    return StateSize(elements, elements * ITEM_SIZE[dtype])


def check_pairs(keys: Array, values: Array, key_dim: int | None, value_dim: int) -> None:
    """Raise ValueError unless keys (..., N, d) and values (..., N, v) hold the same pairs."""
    require_vectors(keys, "keys", key_dim)
    require_vectors(values, "values", value_dim)
    if keys.shape[:-1] != values.shape[:-1]:
        shapes = f"{tuple(keys.shape)} and {tuple(values.shape)}"
        raise ValueError(f"keys and values must hold the same pairs, got shapes {shapes}")


MEMORIES: Registry[Memory] = Registry("memory")
