"""Every feature map at two key scales, at equal key dimension and equal state: what it holds and attends to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from capmem import figures
from capmem.ensembles import Ensemble, GaussianKeys, SphereKeys
from capmem.feature_maps import FEATURE_MAPS, Dpfp, FeatureMap, PositiveRandomFeatures
from capmem.schema import check_fields
from capmem.studies import Computed, Study, at_least
from capmem.studies._map_dimension import capacities, digits, dimensions, of_width, rank
from capmem.studies._map_weights import BASELINES, Cues, weight_rows
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd

# |k| = 1, or coordinates from N(0, 1): the two scales that keys come at.
LAWS: dict[str, Ensemble] = {"unit": SphereKeys(), "normal": GaussianKeys()}
SCALES = {"unit": "unit keys", "normal": "N(0, 1) keys"}
VARIANTS: dict[str, dict[str, FeatureMap]] = {
    "dpfp": {"dpfp, nu=1": Dpfp(1), "dpfp, nu=3": Dpfp(3)},
    "positive_random_features": {
        "positive_random_features": PositiveRandomFeatures(),
        "positive_random_features, hyperbolic": PositiveRandomFeatures(hyperbolic=True),
    },
}


@dataclass(frozen=True)
class FeatureMaps:
    """What is compared.

    Parameters
    ----------
    feature_maps : tuple of str
        Names; empty: every registered map. Some stand for several variants.
    key_dim, value_dim : int
        d and v.
    feature_dim : int
        D at equal state size, or as close below as the map allows.
    num_keys : int
        Keys that effective dimensions are estimated from, in each trial.
    num_pairs : tuple of int
        N: keys that weights are spread over.
    cues : {"stored", "independent"}
        Whether queries are stored keys, or others of the same law.
    trials, seed : int
        Repetitions; a random map has directions of its own in each. Draws depend on seed and trial alone.
    """

    feature_maps: tuple[str, ...] = ()
    key_dim: int = 64
    value_dim: int = 64
    feature_dim: int = 256
    num_keys: int = 512
    num_pairs: tuple[int, ...] = (256,)
    cues: Cues = "stored"
    trials: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 2, "num_pairs", "num_keys")
        at_least(self, 1, "value_dim", "trials")
        at_least(self, 4, "key_dim")
        at_least(self, 32, "feature_dim")
        at_least(self, 0, "seed")
        for name in self.feature_maps:
            FEATURE_MAPS.build(name, "feature_maps")


def maps(settings: FeatureMaps) -> dict[str, FeatureMap]:
    """Return the maps by label."""
    found: dict[str, FeatureMap] = {}
    for name in settings.feature_maps or FEATURE_MAPS.names():
        found |= VARIANTS.get(name) or {name: FEATURE_MAPS.build(name)}
    return found


def rows(settings: FeatureMaps) -> Iterator[Record]:
    """Yield the table, by the column `part`: "map" (what a map holds) and "weights" (what it attends to)."""
    s = settings
    for scale, law in LAWS.items():
        for name, phi in maps(s).items():
            same_state = of_width(phi, s.key_dim, s.feature_dim)
            for equal, (of, d) in {"key_dim": (phi, s.key_dim), "state": same_state}.items():
                told: Record = {"part": "map", "equal": equal, "scale": scale, "feature_map": name, "key_dim": d}
                told |= {"value_dim": s.value_dim, "feature_dim": of.width(d), "num_keys": s.num_keys}
                told |= {"trials": s.trials, "rank": rank(of, law, d, s.seed)}
                told |= dimensions(of, law, d, s.num_keys, s.trials, s.seed)
                yield told | capacities(of, law, (d, s.value_dim), 2 * s.trials, s.seed)
        told = {"part": "weights", "scale": scale, "key_dim": s.key_dim, "cues": s.cues, "trials": s.trials}
        for row in weight_rows(maps(s), law, s.key_dim, s.num_pairs, s.cues, (s.trials, s.seed)):
            yield told | row


def finding(table: pd.DataFrame) -> str:
    """Return which maps hold most and least, what scale does, who comes close to softmax, and what not to trust."""
    held = table[table["part"] == "map"]
    normal = held[held["scale"] == "normal"]
    told = [_ranking(normal[normal["equal"] == equal], equal) for equal in ("key_dim", "state")]
    told += [_scale(held), _softmax(table[table["part"] == "weights"]), _ranks(held), _alarms(held)]
    return " ".join(sentence for sentence in told if sentence)


def _ranking(held: pd.DataFrame, equal: str) -> str:
    known = held[held["capacity"].notna() & ~held["above_width"].astype(bool)].sort_values("capacity")
    if not len(known):
        return ""
    where = f"key dimension {held['key_dim'].iloc[0]:.0f}" if equal == "key_dim" else (
        f"equal state (D about {held['feature_dim'].max():.0f})")  # fmt: skip
    named = [
        f"{row['feature_map']} {digits(row['capacity'])} (D_eff {digits(row['effective_dimension'])} of D = "
        f"{row['feature_dim']:.0f})"
        for row in (known.iloc[-1].to_dict(), known.iloc[0].to_dict())
    ]
    return f"At {where} and N(0, 1) keys, N* (scale-optimal error 0.5) is largest for {named[0]}, least for {named[1]}."


def _scale(held: pd.DataFrame) -> str:
    same = held[(held["equal"] == "key_dim") & ~held["above_width"].astype(bool)]
    pairs = same.pivot(index="feature_map", columns="scale", values="capacity").dropna()
    if not len(pairs):
        return ""
    name = (np.log(pairs["normal"]) - np.log(pairs["unit"])).abs().idxmax()
    return (
        f"Scale matters as much as the map: {name} holds {digits(pairs.loc[name, 'unit'])} unit keys and "
        f"{digits(pairs.loc[name, 'normal'])} N(0, 1) keys."
    )


def _softmax(weights: pd.DataFrame) -> str:
    last = weights[(weights["num_pairs"] == weights["num_pairs"].max()) & (weights["scale"] == "normal")]
    of = last.set_index("feature_map")
    own = of.drop(index=list(BASELINES)).sort_values("fit_error")
    name, best = own.index[0], own.iloc[0]
    closer = int((own["fit_error"] < 1).sum())
    sharp = best["largest_weight"]
    told = f", its largest weight {sharp:.2g}" if sharp == sharp else ", and some of its weights are negative"
    return (
        f"Closest to softmax's weights on N(0, 1) keys is {name} (fit error {best['fit_error']:.2g}, uniform weights 1)"
        f"{told} against softmax's {of.loc['softmax', 'largest_weight']:.2g}; {closer} of {len(own)} maps are closer "
        f"than uniform weights."
    )


def _ranks(held: pd.DataFrame) -> str:
    below = held[(held["equal"] == "key_dim") & (held["rank"] < held["feature_dim"])]
    named = [
        f"{row['feature_map']} ({SCALES[row['scale']]}: {row['rank']:.0f} of {row['feature_dim']:.0f})"
        for row in below.to_dict("records")
    ]
    return f"The rank of the features is below D for {', '.join(named)}." if named else ""


def _alarms(held: pd.DataFrame) -> str:
    alarms = held[held["above_width"].astype(bool) & (held["equal"] == "key_dim")]
    named = [
        f"{row['feature_map']} ({SCALES[row['scale']]}: up to {digits(row['largest_effective_dimension'])}, D = "
        f"{row['feature_dim']:.0f})"
        for row in alarms.to_dict("records")
    ]
    if not named:
        return ""
    return f"Not to be trusted: a D_eff above D, which heavy tails of the kernel give, of {'; '.join(named)}."


STUDY = Study(
    "feature_maps",
    FeatureMaps,
    Computed(rows),
    finding,
    {"feature_maps": figures.feature_maps, "softmax_fit": figures.softmax_fit},
)
