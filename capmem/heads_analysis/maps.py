"""The feature maps that heads are tried with, by the names that tables and figures use."""

from __future__ import annotations

from capmem.feature_maps import (
    Dpfp,
    EluPlusOne,
    Exp,
    FeatureMap,
    Identity,
    PositiveRandomFeatures,
    ReLU,
    SoftmaxFeatures,
    SquaredReLU,
    Taylor,
)

MAPS: dict[str, FeatureMap] = {
    "identity": Identity(),
    "relu": ReLU(),
    "squared_relu": SquaredReLU(),
    "elu_plus_one": EluPlusOne(),
    "exp": Exp(),
    "softmax_features": SoftmaxFeatures(),
    "dpfp, nu=1": Dpfp(1),
    "dpfp, nu=2": Dpfp(2),
    "dpfp, nu=3": Dpfp(3),
    "taylor, order=1": Taylor(1),
    "taylor, order=2": Taylor(2),
    "positive_random_features, m=64": PositiveRandomFeatures(64),
    "positive_random_features, m=256": PositiveRandomFeatures(256),
}
RULES = ("identity", "dpfp, nu=3", "taylor, order=2")  # the maps that write rules are compared on
