"""Keys and values of random signs, as in Hopfield networks and hyperdimensional computing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capmem.ensembles.base import KEYS, VALUES, Ensemble, LawStream, Rows, Stream
from capmem.ensembles.means import MeanValues


@KEYS.register("rademacher")
@dataclass(frozen=True)
class RademacherKeys(Ensemble):
    """Keys with independent coordinates +-1/sqrt(d): norm 1.

    Inner products t have E t^2 = 1/d, as on the sphere, and E t^4 = 3/d^2 - 2/d^3. Two keys of few dimensions are
    often parallel (with chance 2^(1-d)).
    """

    only_normals: ClassVar[bool] = True

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: signs(source, n, dim) / dim**0.5, rng)


@VALUES.register("rademacher")
@dataclass(frozen=True)
class RademacherValues(MeanValues):
    """Values with independent coordinates mean +- 1; at mean 0 the norm is sqrt(v)."""

    only_normals: ClassVar[bool] = True

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: self.about_mean(signs(source, n, dim)), rng)


def signs(rng: np.random.Generator, num_rows: int, dim: int) -> Rows:
    """Return independent random signs (num_rows, dim): those of the Gaussian law's coordinates."""
    return np.copysign(1.0, rng.standard_normal((num_rows, dim)))
