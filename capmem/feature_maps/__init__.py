"""Feature maps phi: R^d -> R^D, and their registry."""

from capmem.feature_maps.base import FEATURE_MAPS, ElementwiseMap, FeatureMap
from capmem.feature_maps.dpfp import Dpfp
from capmem.feature_maps.elementwise import EluPlusOne, Identity, ReLU

register = FEATURE_MAPS.register

__all__ = [
    "FEATURE_MAPS",
    "Dpfp",
    "ElementwiseMap",
    "EluPlusOne",
    "FeatureMap",
    "Identity",
    "ReLU",
    "register",
]
