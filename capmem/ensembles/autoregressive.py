"""Keys that drift: each one resembles the one before, as neighbouring tokens do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, Rows, Stream, unit_rows
from capmem.schema import require


@KEYS.register("autoregressive")
@dataclass(frozen=True)
class AutoregressiveKeys(Ensemble):
    """k_1 = g_1, k_{i+1} = a k_i + sqrt(1 - a^2) g_{i+1}, g from N(0, I/d); then divided by the norm.

    The sequence is stationary. Keys m places apart have the expected inner product a^m, and cosine a^m up to
    O(1/d).

    Parameters
    ----------
    correlation : float
        a, that of neighbours, in [-1, 1].
    unit_norm : bool
        Divide each key by its norm; otherwise the expected squared norm is 1.

    Raises
    ------
    ValueError
        If the correlation is out of range.
    """

    correlation: float = 0.5
    unit_norm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(-1 <= self.correlation <= 1, "correlation", self.correlation, "a number from -1 to 1")

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return AutoregressiveStream(self, rng, dim)


class AutoregressiveStream(Stream):
    """One stretch of the sequence.

    Parameters
    ----------
    law : AutoregressiveKeys
        Its correlation and norm.
    rng : numpy.random.Generator
        It draws the innovations g.
    dim : int
        d.
    """

    def __init__(self, law: AutoregressiveKeys, rng: np.random.Generator, dim: int) -> None:
        self.law, self.rng, self.dim = law, rng, dim
        self.last: Rows | None = None

    def draw(self, num_rows: int) -> Rows:
        """Return the next rows; see :meth:`Stream.draw`."""
        a, last = self.law.correlation, self.last
        keys = self.rng.standard_normal((num_rows, self.dim)) / self.dim**0.5
        keys[0 if last is not None else 1 :] *= (1 - a * a) ** 0.5
        for key in keys:
            if last is not None:
                key += a * last
            last = key
        self.last = None if last is None else last.copy()
        return unit_rows(keys) if self.law.unit_norm else keys

    def fork(self, rng: np.random.Generator) -> Stream:
        """Return another stretch, independent of this one; see :meth:`Stream.fork`."""
        return AutoregressiveStream(self.law, rng, self.dim)
