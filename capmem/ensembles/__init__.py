"""Ensembles: how keys and values are drawn, and their registries."""

from capmem.ensembles.arrays import ArrayKeys, ArrayValues
from capmem.ensembles.base import KEYS, VALUES, Ensemble, Stream
from capmem.ensembles.equicorrelated import EquicorrelatedKeys
from capmem.ensembles.gaussian import GaussianKeys, GaussianValues, SphereKeys, SphereValues

register_keys = KEYS.register
register_values = VALUES.register

__all__ = [
    "KEYS",
    "VALUES",
    "ArrayKeys",
    "ArrayValues",
    "Ensemble",
    "EquicorrelatedKeys",
    "GaussianKeys",
    "GaussianValues",
    "SphereKeys",
    "SphereValues",
    "Stream",
    "register_keys",
    "register_values",
]
