"""Ensembles: how keys and values are drawn, and their registries."""

from capmem.ensembles.arrays import ArrayKeys, ArrayValues
from capmem.ensembles.autoregressive import AutoregressiveKeys
from capmem.ensembles.base import KEYS, VALUES, Ensemble, LawStream, Stream
from capmem.ensembles.clustered import ClusteredKeys
from capmem.ensembles.duplicated import DuplicatedKeys
from capmem.ensembles.equicorrelated import EquicorrelatedKeys
from capmem.ensembles.gaussian import GaussianKeys, GaussianValues, SphereKeys, SphereValues
from capmem.ensembles.heads import HeadKeys, HeadValues
from capmem.ensembles.one_hot import OneHotValues
from capmem.ensembles.orthonormal import OrthonormalKeys
from capmem.ensembles.power_law import PowerLawKeys
from capmem.ensembles.rademacher import RademacherKeys, RademacherValues
from capmem.ensembles.tight_frame import TightFrameKeys

register_keys = KEYS.register
register_values = VALUES.register

__all__ = [
    "KEYS",
    "VALUES",
    "ArrayKeys",
    "ArrayValues",
    "AutoregressiveKeys",
    "ClusteredKeys",
    "DuplicatedKeys",
    "Ensemble",
    "EquicorrelatedKeys",
    "GaussianKeys",
    "GaussianValues",
    "HeadKeys",
    "HeadValues",
    "LawStream",
    "OneHotValues",
    "OrthonormalKeys",
    "PowerLawKeys",
    "RademacherKeys",
    "RademacherValues",
    "SphereKeys",
    "SphereValues",
    "Stream",
    "TightFrameKeys",
    "register_keys",
    "register_values",
]
