"""The grid of a sweep: from axes and composed choices to one plain configuration a point."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capmem.registry import CHOICE_KEYS
from capmem.schema import unknown
from capmem.sweeps.points import GROUPS

Config = dict[str, Any]
Axes = Mapping[str, list[Any]]
Compose = Callable[[dict[str, str]], Config]


@dataclass
class Grid:
    """The product of all axes, with the choices of groups composed once each.

    Parameters
    ----------
    axes : mapping
        Values by key; a group's values are names of choices.
    groups : collection of str
        Which keys are groups.
    compose : callable
        compose({"keys": "sphere"}) -> the configuration with these choices.

    Attributes
    ----------
    dropped : dict
        Axes that some choice does not have, with the choices that went without.
    """

    axes: Axes
    groups: frozenset[str]
    compose: Compose
    dropped: dict[str, set[str]] = field(default_factory=dict)

    def points(self) -> Iterator[Config]:
        """Yield one configuration a point; duplicates, from dropped axes, are the engine's to join.

        Raises
        ------
        ValueError
            For a key that no choice has.
        """
        choices = {k: v for k, v in self.axes.items() if k in self.groups}
        combinations = itertools.product(*choices.values())
        composed = [self._composed(dict(zip(choices, c, strict=True))) for c in combinations]
        values = {k: v for k, v in self.axes.items() if k not in self.groups}
        for key in values:
            if not any(_has(config, key) for config in composed):
                raise ValueError(unknown("key", key, sorted({n for c in composed for n in _leaves(c)})))
        for config in composed:
            yield from self._fill(config, values)

    def _composed(self, choices: dict[str, Any]) -> Config:
        return self.compose({k: str(v) for k, v in choices.items()})

    def _fill(self, config: Config, values: Axes) -> Iterator[Config]:
        own = {key: options for key, options in values.items() if _has(config, key)}
        for key in values.keys() - own.keys():
            group = key.split(".")[0]
            self.dropped.setdefault(key, set()).add(_choice(config, group))
        for combination in itertools.product(*own.values()):
            point = copy.deepcopy(config)
            for key, value in zip(own, combination, strict=True):
                _set(point, key, value)
            yield point


def _choice(config: Config, group: str) -> str:
    chosen = config.get(group)
    if not isinstance(chosen, dict):
        return group
    return str(chosen[CHOICE_KEYS["kind" in chosen]])


def _has(config: Config, key: str) -> bool:
    """Whether a key can be set: it is there, and is not the name of a group's choice."""
    return key in config or key in _leaves(config)


def _set(config: Config, key: str, value: Any) -> None:
    *path, last = key.split(".")
    here = config
    for part in path:
        here = here[part]
    if isinstance(here[last], dict) and last in GROUPS:
        raise ValueError(f"{key} must be a name of a choice, got {value!r}; set its fields as {key}.FIELD=...")
    here[last] = value


def _leaves(config: Config, prefix: str = "") -> Iterator[str]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        elif not (prefix and name == CHOICE_KEYS["kind" in config]):
            yield prefix + name
