"""Independent keys and values: Gaussian, and uniform on the sphere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capmem.ensembles.base import KEYS, VALUES, Ensemble, LawStream, Stream, unit_rows


@KEYS.register("gaussian")
@dataclass(frozen=True)
class GaussianKeys(Ensemble):
    """Keys with independent N(0, 1) coordinates; the expected squared norm is d."""

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: source.standard_normal((n, dim)), rng)


@KEYS.register("sphere")
@dataclass(frozen=True)
class SphereKeys(Ensemble):
    """Keys uniform on the unit sphere."""

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: unit_rows(source.standard_normal((n, dim))), rng)


@VALUES.register("gaussian")
@dataclass(frozen=True)
class GaussianValues(GaussianKeys):
    """Values with independent N(0, 1) coordinates; the expected squared norm is v."""


@VALUES.register("sphere")
@dataclass(frozen=True)
class SphereValues(Ensemble):
    """Values uniform on the sphere of radius sqrt(v): the scale of N(0, 1) coordinates, at equal norm."""

    def start(self, rng: np.random.Generator, dim: int) -> Stream:
        """Return a stream of rows; see :meth:`Ensemble.start`."""
        return LawStream(lambda source, n: dim**0.5 * unit_rows(source.standard_normal((n, dim))), rng)
