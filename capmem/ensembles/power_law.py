"""Keys whose variance is spread unevenly over the dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capmem.ensembles.base import KEYS, Ensemble, LawStream, Rows, Stream
from capmem.schema import require


@KEYS.register("power_law")
@dataclass(frozen=True)
class PowerLawKeys(Ensemble):
    """Gaussian keys; coordinate i = 1..d has variance i^-s / sum_j j^-s, so the expected squared norm is 1.

    With the identity map a memory of N pairs has the relative squared error (N + 1)/d_eff, d_eff being the
    participation ratio (sum_i i^-s)^2 / sum_i i^-2s: d at s = 0, 13.81 at d = 64 and s = 1.

    Parameters
    ----------
    exponent : float
        s, at least 0.

    Raises
    ------
    ValueError
        If the exponent is negative or not finite.

    Notes
    -----
    The axes of the spectrum are the coordinates themselves, not a random rotation of them. The coordinates stay
    independent, for which elementwise maps have formulas; and it is what real heads look like, whose variance
    sits in a few outlying channels. For maps that act on coordinates a rotation would make a difference.
    """

    only_normals: ClassVar[bool] = True

    exponent: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range = self.exponent >= 0 and math.isfinite(self.exponent)
        require(in_range, "exponent", self.exponent, "a finite number of at least 0")

    def variances(self, dim: int) -> Rows:
        """Return the variance of each coordinate (dim,); they add up to 1."""
        weights = np.arange(1, dim + 1, dtype=np.float64) ** -float(self.exponent)
        shares: Rows = weights / weights.sum()
        return shares

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        scale = np.sqrt(self.variances(dim))
        return LawStream(lambda source, n: scale * source.standard_normal((n, dim)), rng)
