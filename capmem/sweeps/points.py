"""Points of a sweep: from plain names to an experiment, and the key that a point's results are stored under."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from capmem.configuration import PARTS, STEPS, build_memory
from capmem.ensembles import KEYS, VALUES
from capmem.ensembles.arrays import ArrayEnsemble
from capmem.experiment import Experiment
from capmem.memory import MEMORIES
from capmem.registry import Registry
from capmem.schema import coerce, construct, require, unknown

GROUPS: dict[str, Registry[Any]] = {"memory": MEMORIES, **PARTS, "keys": KEYS, "values": VALUES}
DEFAULT_DIM = 64
NOT_IN_KEY = ("num_pairs", "trials")


def experiment_from(config: Mapping[str, Any]) -> Experiment:
    """Build an experiment from a mapping of plain names and values.

    Parameters
    ----------
    config : mapping
        feature_map, write_rule, readout, keys, values: a name, or a mapping with ``name`` and fields; the
        steps of the memory (key_center, ...); all else as :class:`Experiment` has it. ``key_dim`` and
        ``value_dim`` may be null: the file's dimension, else 64.

    Raises
    ------
    ValueError
        One clear message that names the key, the value given, and what is allowed.
    """
    plain = [f.name for f in dataclasses.fields(Experiment) if f.name not in GROUPS]
    allowed = [*GROUPS, *STEPS, *plain]
    for name in config:
        if name not in allowed:
            raise ValueError(unknown("key", name, allowed))
    if config.get("keys") is None:
        raise ValueError(f"keys must be given, one of {', '.join(KEYS.names())}")
    memory = build_memory(config)
    laws = {"keys": KEYS.build(config["keys"]), "values": VALUES.build(config.get("values") or "sphere")}
    fields = {name: config[name] for name in plain if name in config}
    for what in ("key", "value"):
        if coerce(fields.get(f"{what}_dim"), int | None, f"{what}_dim") is None:
            fields[f"{what}_dim"] = laws[f"{what}s"].file_dim() or DEFAULT_DIM
    if isinstance(fields.get("num_pairs"), int):
        fields["num_pairs"] = (fields["num_pairs"],)
    return construct(Experiment, {"memory": memory, **laws, **fields})


def as_experiment(point: Experiment | Mapping[str, Any]) -> Experiment:
    """Return a point of a sweep as an experiment."""
    if isinstance(point, Experiment):
        return point
    require(isinstance(point, Mapping), "a point", point, "an Experiment, or a mapping of names and values")
    return experiment_from(point)


def point_key(experiment: Experiment) -> str:
    """Return the key that results are stored under: a hash of all that decides a unit's numbers.

    Trials and num_pairs are not part of it, so a sweep can be extended in both; a file counts by the SHA-256
    of its array, not by its path.
    """
    config = {k: v for k, v in experiment.configuration().items() if k not in NOT_IN_KEY}
    for kind, ensemble in (("keys", experiment.keys), ("values", experiment.values)):
        if isinstance(ensemble, ArrayEnsemble):
            config[kind] = config[kind] | {"path": None, "sha256": ensemble.sha256()}
    text = json.dumps(_canonical(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _canonical(value: Any) -> Any:
    """Return equal numbers as the same number: 1.0 as 1, -0.0 as 0."""
    if isinstance(value, Mapping):
        return {name: _canonical(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
