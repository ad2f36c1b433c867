"""Keys, or features, that share a mean: error against correlation, as they are and centred, and limits of D_eff."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from capmem import figures
from capmem.ensembles import EquicorrelatedKeys, GaussianKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import FEATURE_MAPS, FeatureMap
from capmem.memory import LinearMemory
from capmem.schema import check_fields, require
from capmem.studies import Computed, Study, at_least
from capmem.studies._map_dimension import digits, dimensions
from capmem.theory import TheoryUnavailable, moments
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

ERROR = "scale_optimal_error"
# What is taken out before pairs are written: nothing, the mean key, the mean feature, both.
Centring = tuple[Literal["none", "mean"], Literal["none", "mean"]]
CENTRED: dict[str, Centring] = {
    "none": ("none", "none"),
    "keys": ("mean", "none"),
    "features": ("none", "mean"),
    "both": ("mean", "mean"),
}


@dataclass(frozen=True)
class Correlation:
    """What is compared: unit keys times sqrt(d) with an expected cosine, and N(0, 1) keys of growing dimension.

    Parameters
    ----------
    correlations : tuple of float
        Expected cosines of two keys, from 0 to 0.99.
    feature_maps : tuple of str
        Maps; features are centred too.
    key_dim, value_dim : int
        d and v of the errors.
    num_pairs : tuple of int
        N of the errors.
    key_dims : tuple of int
        d of the effective dimensions, which N(0, 1) keys are drawn for.
    num_keys : int
        Keys that effective dimensions are estimated from, in each trial.
    trials, seed : int
        Repetitions; draws depend on seed and trial alone.
    """

    correlations: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
    feature_maps: tuple[str, ...] = ("identity", "relu", "elu_plus_one", "dpfp")
    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (64,)
    key_dims: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512, 1024)
    num_keys: int = 512
    trials: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "value_dim", "num_pairs", "trials")
        at_least(self, 2, "key_dims", "num_keys")
        at_least(self, 4, "key_dim")
        at_least(self, 0, "seed")
        given = self.correlations
        require(bool(given) and 0 <= min(given) and max(given) <= 0.99, "correlations", list(given),
                "a list, not empty, of numbers from 0 to 0.99")  # fmt: skip
        require(bool(self.feature_maps), "feature_maps", [], "a list that is not empty")
        for name, phi in maps(self).items():
            require(not phi.positional, "feature_maps", name, "maps that do not depend on the place of a key")


def maps(settings: Correlation) -> dict[str, FeatureMap]:
    """Return the maps by name."""
    return {name: FEATURE_MAPS.build(name, "feature_maps") for name in dict.fromkeys(settings.feature_maps)}


def rows(settings: Correlation) -> Iterator[Record]:
    """Yield the table, by the column `part`: "error" (a row a trial) and "dimension" (means over trials)."""
    s = settings
    for name, phi in maps(s).items():
        for centred, (key_center, feature_center) in CENTRED.items():
            memory = LinearMemory(phi, key_center=key_center, key_scale="sqrt_dim", feature_center=feature_center)
            for correlation in sorted(set(s.correlations)):
                experiment = Experiment(
                    memory, EquicorrelatedKeys(correlation), SphereValues(), s.key_dim, s.value_dim, s.num_pairs,
                    trials=s.trials, seed=s.seed, metrics=(ERROR,), dtype="float64",
                )  # fmt: skip
                told: Record = {"part": "error", "feature_map": name, "centred": centred, "correlation": correlation}
                for record in experiment.run():
                    kept = ("key_dim", "value_dim", "num_pairs", "trial", ERROR, f"theory_{ERROR}", "status")
                    yield told | {column: record[column] for column in kept}
        for d in sorted(set(s.key_dims)):
            told = {"part": "dimension", "feature_map": name, "key_dim": d, "feature_dim": phi.width(d)}
            told |= {"num_keys": s.num_keys, "trials": s.trials, "limit": limit(phi, d)}
            yield told | dimensions(phi, GaussianKeys(), d, s.num_keys, s.trials, s.seed)


def limit(phi: FeatureMap, key_dim: int) -> float:
    """Return (m1 / mu)^2, what D_eff cannot exceed and tends to as d grows: inf without a mean feature.

    mu = |E phi|^2, and m2 >= mu^2, so D_eff = m1^2 / m2 <= (m1 / mu)^2. For an elementwise map of N(0, 1) keys it is
    (E f^2)^2 / (E f)^4 whatever d is: pi^2 for ReLU, 2.13 for ELU+1; for DPFP it is pi^4. nan: no formula.
    """
    try:
        found = moments(LinearMemory(phi), GaussianKeys(), key_dim)
    except TheoryUnavailable:
        return math.nan
    return (found.self_mean / found.cross_mean) ** 2 if found.cross_mean > 1e-9 * found.self_mean else math.inf


def finding(table: pd.DataFrame) -> str:
    """Return what correlation and centring do to the error, and what is left of D_eff by the mean feature."""
    error = table[(table["part"] == "error") & (table["status"] == "ok")]
    n, most, least = error["num_pairs"].max(), error["correlation"].max(), error["correlation"].min()
    means = error[error["num_pairs"] == n].groupby(["feature_map", "centred", "correlation"], sort=False)[ERROR].mean()
    names = list(dict.fromkeys(error["feature_map"]))
    raw, keys, features, both = (
        ", ".join(f"{name} {means[name, centred, most]:.2g}" for name in names) for centred in CENTRED
    )
    start = ", ".join(f"{name} {means[name, 'none', least]:.2g}" for name in names)
    return (
        f"With {n:.0f} pairs and keys of correlation {most:g} the error is: {raw} as they are (correlation {least:g}: "
        f"{start}); {keys} with keys centred; {features} with features centred; {both} with both. {_limits(table)}"
    )


def _limits(table: pd.DataFrame) -> str:
    """Return, at the largest d, each map's D_eff, its limit, and its D_eff with features centred."""
    part = table[table["part"] == "dimension"]
    last = part[part["key_dim"] == part["key_dim"].max()].to_dict("records")
    ill = [row for row in last if math.isfinite(row["limit"])]
    well = [row for row in last if math.isinf(row["limit"])]
    told = "; ".join(
        f"{row['feature_map']} {digits(row['effective_dimension'])} (limit {row['limit']:.4g}; features centred "
        f"{digits(row['centred_effective_dimension'])})"
        for row in ill
    )
    others = "; ".join(f"{row['feature_map']} {digits(row['effective_dimension'])}" for row in well)
    disease = f"One disease, a mean feature: at d = {last[0]['key_dim']:.0f} D_eff is {told}" if ill else ""
    health = f"without a mean feature D_eff is {others} at d = {last[0]['key_dim']:.0f}" if well else ""
    both = "; ".join(sentence for sentence in (disease, health) if sentence)
    return f"{both[0].upper()}{both[1:]}." if both else ""


STUDY = Study(
    "correlation",
    Correlation,
    Computed(rows),
    finding,
    {"correlation": figures.correlation, "mean_feature": figures.mean_feature},
)
