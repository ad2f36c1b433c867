"""Memories as plain names and values, and back: what configuration files, tables and hashes hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from capmem.feature_maps import FEATURE_MAPS
from capmem.memory import MEMORIES, Memory
from capmem.readouts import READOUTS
from capmem.registry import CHOICE_KEYS, Registry
from capmem.schema import construct
from capmem.write_rules import WRITE_RULES

PARTS: dict[str, Registry[Any]] = {"feature_map": FEATURE_MAPS, "write_rule": WRITE_RULES, "readout": READOUTS}
DEFAULT_PARTS = {"feature_map": "identity", "write_rule": "hebbian", "readout": "linear"}
STEPS = ("key_center", "key_norm", "key_scale", "feature_center", "feature_norm", "state_dtype", "round_every")


def describe_memory(memory: Memory) -> dict[str, Any]:
    """Return a memory's name and own fields, its parts and its steps; what it does not have is None."""
    told = MEMORIES.describe(memory)
    own = {name: value for name, value in told.items() if name not in PARTS and name not in STEPS}
    parts = {name: registry.describe(told[name]) if name in told else None for name, registry in PARTS.items()}
    return {"memory": own, **parts, **{name: told.get(name) for name in STEPS}}


def build_memory(config: Mapping[str, Any]) -> Memory:
    """Build a memory from the keys of `config` that concern it; parts that it does not have are only checked.

    Raises
    ------
    ValueError
        For a choice or field that does not exist, a wrong type, or a value out of range.
    """
    built = {name: registry.build(_given(config, name)) for name, registry in PARTS.items()}
    spec = config.get("memory") or "linear"
    if not isinstance(spec, Mapping):
        spec = {"name": spec}
    cls = MEMORIES[spec["name"]] if isinstance(spec.get("name"), str) else type(MEMORIES.build(spec))
    fields = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    own = {name: value for name, value in spec.items() if name != "name"}
    if not fields & PARTS.keys():
        return construct(cls, own, "memory")
    steps = {name: config[name] for name in STEPS if name in config}
    return construct(cls, {f"memory.{name}": value for name, value in own.items()} | built | steps)


def flatten(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Turn {"keys": {"name": "sphere", "x": 1}} into {"keys": "sphere", "keys.x": 1}: the table's columns."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            choice = CHOICE_KEYS[CHOICE_KEYS[1] in value]
            flat[key] = value[choice]
            flat |= {f"{key}.{name}": v for name, v in value.items() if name != choice}
        else:
            flat[key] = value
    return flat


def _given(config: Mapping[str, Any], name: str) -> Any:
    spec = config.get(name)
    return DEFAULT_PARTS[name] if spec is None else spec
