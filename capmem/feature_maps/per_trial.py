"""A feature map for each trial of a batch: random maps, drawn anew in each."""

from __future__ import annotations

from dataclasses import dataclass

from capmem._arrays import Array, require_vectors
from capmem.feature_maps.base import FeatureMap
from capmem.schema import require


@dataclass(frozen=True)
class PerTrial(FeatureMap):
    """Maps of one width, one for each entry of the leading axis.

    Parameters
    ----------
    maps : tuple of FeatureMap
        Map t is for x[t].
    """

    maps: tuple[FeatureMap, ...]

    @property
    def row_wise(self) -> bool:  # type: ignore[override]
        """Whether each map is."""
        return all(phi.row_wise for phi in self.maps)

    def width(self, key_dim: int) -> int:
        """Return D, that of each map."""
        return self.maps[0].width(key_dim)

    def __call__(self, x: Array, positions: Array | None = None) -> Array:
        """Map keys (T, N, d) to features (T, N, D); see :meth:`FeatureMap.__call__`."""
        xp = require_vectors(x, "keys")
        require(x.shape[0] == len(self.maps), "keys", tuple(x.shape), f"of {len(self.maps)} trials")
        return xp.stack([phi(x[trial, ...], positions) for trial, phi in enumerate(self.maps)])
