"""Feature maps phi: R^d -> R^D, and their registry."""

from capmem.feature_maps.base import (
    FEATURE_MAPS,
    ElementwiseMap,
    FeatureMap,
    OverflowWarning,
    UnderflowWarning,
)
from capmem.feature_maps.cosformer import CosFormer
from capmem.feature_maps.dpfp import Dpfp
from capmem.feature_maps.elementwise import EluPlusOne, Exp, Identity, ReLU, SiLU, Softplus, SquaredReLU
from capmem.feature_maps.polynomial import Polynomial, Taylor
from capmem.feature_maps.positive_random import PositiveRandomFeatures
from capmem.feature_maps.random_projections import RandomFourierFeatures, RandomReLU
from capmem.feature_maps.softmax import SoftmaxFeatures

register = FEATURE_MAPS.register

__all__ = [
    "FEATURE_MAPS",
    "CosFormer",
    "Dpfp",
    "ElementwiseMap",
    "EluPlusOne",
    "Exp",
    "FeatureMap",
    "Identity",
    "OverflowWarning",
    "Polynomial",
    "PositiveRandomFeatures",
    "RandomFourierFeatures",
    "RandomReLU",
    "ReLU",
    "SiLU",
    "SoftmaxFeatures",
    "Softplus",
    "SquaredReLU",
    "Taylor",
    "UnderflowWarning",
    "register",
]
