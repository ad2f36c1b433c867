"""Independent keys and values: Gaussian, and uniform on the sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capmem.ensembles.base import KEYS, VALUES, Ensemble, LawStream, Rows, Stream, unit_rows
from capmem.ensembles.means import MeanValues


@KEYS.register("gaussian")
@dataclass(frozen=True)
class GaussianKeys(Ensemble):
    """Keys with independent N(0, 1) coordinates; the expected squared norm is d."""

    only_normals: ClassVar[bool] = True

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: source.standard_normal((n, dim)), rng)


@KEYS.register("sphere")
@dataclass(frozen=True)
class SphereKeys(Ensemble):
    """Keys uniform on the unit sphere."""

    only_normals: ClassVar[bool] = True

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: unit_rows(source.standard_normal((n, dim))), rng)


@VALUES.register("gaussian")
@dataclass(frozen=True)
class GaussianValues(MeanValues):
    """Values with independent N(mean, 1) coordinates; at mean 0 the expected squared norm is v."""

    only_normals: ClassVar[bool] = True

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: self.about_mean(source.standard_normal((n, dim))), rng)


@VALUES.register("sphere")
@dataclass(frozen=True)
class SphereValues(MeanValues):
    """Values uniform on the sphere of radius sqrt(v) about the mean: N(0, 1) coordinates, at equal norm."""

    only_normals: ClassVar[bool] = True

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""

        def law(source: np.random.Generator, n: int) -> Rows:
            return self.about_mean(dim**0.5 * unit_rows(source.standard_normal((n, dim))))

        return LawStream(law, rng)
