"""All combinations of what is registered, near a plain memory of sphere keys, as experiments with a seed each."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from capmem.configuration import PARTS, build_memory
from capmem.ensembles import KEYS, VALUES
from capmem.experiment import Experiment
from capmem.memory import MEMORIES
from capmem.registry import Registry

FILES = ("array", "heads")  # laws that take a file
FIELDS: dict[tuple[str, str], dict[str, Any]] = {  # where the defaults are a special case, or too wide for the check
    ("feature_map", "positive_random_features"): {"num_features": 64},
    ("feature_map", "random_fourier_features"): {"num_features": 64},
    ("feature_map", "random_relu"): {"num_features": 64},
    ("feature_map", "dpfp"): {"nu": 2},
    ("feature_map", "cosformer"): {"max_length": 128},
    ("keys", "equicorrelated"): {"correlation": 0.5},
    ("write_rule", "least_squares"): {"ridge": 0.5},
    ("write_rule", "delta"): {"step_size": 0.5},
    ("write_rule", "oja"): {"step_size": 0.05},
}
STEPS: dict[str, dict[str, Any]] = {
    "none": {},
    "keys centred": {"key_center": "mean"},
    "features centred": {"feature_center": "mean"},
    "keys l2": {"key_norm": "l2"},
    "keys times sqrt d": {"key_scale": "sqrt_dim"},
}
COSINES = (1.0, 0.7)


class Combination(NamedTuple):
    """One choice of each kind, by name."""

    memory: str = "linear"
    feature_map: str = "identity"
    keys: str = "sphere"
    values: str = "sphere"
    write_rule: str = "hebbian"
    readout: str = "linear"
    step: str = "none"
    query_cosine: float = 1.0

    @property
    def label(self) -> str:
        """What it has that the plain memory does not."""
        told = [f"{n.replace('_', ' ')} {v}" for n, v, p in zip(self._fields, self, PLAIN, strict=True) if v != p]
        return ", ".join(told) or "plain memory, sphere keys"


PLAIN = Combination()


class Sizes(NamedTuple):
    """d, v and the numbers of pairs."""

    key_dim: int
    value_dim: int
    num_pairs: tuple[int, ...]


def choices(group: str, registry: Registry[Any]) -> list[str]:
    """Return the registered names of a group that need no file."""
    return [name for name in registry.names() if not (group in ("keys", "values") and name in FILES)]


def combinations(bases: tuple[str, ...], interactions: int) -> list[Combination]:
    """Return all combinations that differ in at most so many parts from a plain memory of keys of these laws."""
    changes = [*_changes(interactions)]
    found = (PLAIN._replace(**({"keys": base} | change)) for base in bases for change in changes)
    return [c for c in dict.fromkeys(found) if c.memory == "linear" or _inert_are_plain(c)]


def _changes(interactions: int) -> Iterator[dict[str, Any]]:
    groups: dict[str, Registry[Any]] = {"memory": MEMORIES, "keys": KEYS, "values": VALUES, **PARTS}
    axes: dict[str, list[Any]] = {name: choices(name, registry) for name, registry in groups.items()}
    axes |= {"step": list(STEPS), "query_cosine": list(COSINES)}
    others = {name: [c for c in axes[name] if c != getattr(PLAIN, name)] for name in Combination._fields}
    for count in range(interactions + 1):
        for names in itertools.combinations(others, count):
            for chosen in itertools.product(*(others[name] for name in names)):
                yield dict(zip(names, chosen, strict=True))


def _inert_are_plain(combination: Combination) -> bool:
    """Whether what a softmax memory does not have is left plain."""
    inert = ("feature_map", "write_rule", "readout", "step")
    return all(getattr(combination, name) == getattr(PLAIN, name) for name in inert)


def experiment(combination: Combination, sizes: Sizes, trials: int, seed: int, age_bins: int) -> Experiment:
    """Return the experiment of a combination; its draws are its own, so that no two scores share them.

    Raises
    ------
    ValueError
        For parts that do not go together.
    """
    return Experiment(
        build_memory(_configuration(combination)),
        KEYS.build(_spec("keys", combination.keys)),
        VALUES.build(_spec("values", combination.values)),
        *sizes,
        trials=trials,
        query_cosine=combination.query_cosine,
        seed=seed + zlib.crc32(repr((combination, sizes[:2])).encode()),
        dtype="float64",
        age_bins=age_bins,
    )


def _configuration(combination: Combination) -> Mapping[str, Any]:
    if combination.memory != "linear":
        return {"memory": combination.memory}
    parts = {name: _spec(name, getattr(combination, name)) for name in PARTS}
    return parts | STEPS[combination.step]


def _spec(group: str, name: str) -> dict[str, Any]:
    return {"name": name, **FIELDS.get((group, name), {})}
