"""Keys that share a common direction: the same expected cosine between any two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, LawStream, Rows, Stream, unit_rows
from capmem.schema import require


@KEYS.register("equicorrelated")
@dataclass(frozen=True)
class EquicorrelatedKeys(Ensemble):
    """k_i = sqrt(c) u + sqrt(1 - c) g_i, with u and g_i from N(0, I/d), then divided by its norm.

    The expected cosine of two keys is the correlation c up to O(1/d).

    Parameters
    ----------
    correlation : float
        c, in [0, 1].
    unit_norm : bool
        Divide each key by its norm; otherwise the expected squared norm is 1.
    fixed_mean : bool
        Give u norm 1 exactly; otherwise its norm varies from draw to draw as a Gaussian vector's does.
    """

    only_normals: ClassVar[bool] = True

    correlation: float = 0.0
    unit_norm: bool = True
    fixed_mean: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.correlation <= 1, "correlation", self.correlation, "a number from 0 to 1")

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; u is drawn first; see :meth:`Ensemble.start`."""
        common = rng.standard_normal(dim) / dim**0.5
        if self.fixed_mean:
            common = unit_rows(common)
        shared = self.correlation**0.5 * common
        spread = ((1 - self.correlation) / dim) ** 0.5

        def law(source: np.random.Generator, n: int) -> Rows:
            keys = shared + spread * source.standard_normal((n, dim))
            return unit_rows(keys) if self.unit_norm else keys

        return LawStream(law, rng)
