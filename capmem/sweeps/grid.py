"""The grid of a sweep: from axes and composed choices to one plain configuration a point."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    zipped : sequence of sequence of str
        Keys that run side by side, the first value of one with the first of the other, and are not crossed.

    Attributes
    ----------
    dropped : dict
        Axes that some choice does not have, with the choices that went without.
    """

    axes: Axes
    groups: frozenset[str]
    compose: Compose
    zipped: Sequence[Sequence[str]] = ()
    dropped: dict[str, set[str]] = field(default_factory=dict)

    def points(self) -> Iterator[Config]:
        """Yield one configuration a point; duplicates, from dropped axes, are the engine's to join.

        Raises
        ------
        ValueError
            For a key that no choice has.
        """
        bundles = self._bundles()
        choosing = [b for b in bundles if any(key in self.groups for key in b[0])]
        setting = [b for b in bundles if b not in choosing]
        chosen = [_joined(parts) for parts in itertools.product(*choosing)]
        composed: dict[str, Config] = {}
        for values in chosen:
            choices = {key: str(value) for key, value in values.items() if key in self.groups}
            if repr(choices) not in composed:
                composed[repr(choices)] = self.compose(choices)
        self._check_keys(composed.values())
        for values in chosen:
            choices = {key: str(value) for key, value in values.items() if key in self.groups}
            rest = {key: value for key, value in values.items() if key not in self.groups}
            yield from self._fill(composed[repr(choices)], [[rest], *setting])

    def _bundles(self) -> list[list[Config]]:
        """Return what is crossed: the values of an axis, or of axes that are zipped, as assignments {key: value}."""
        bundles = []
        together = {key: tuple(keys) for keys in self.zipped for key in keys}
        for keys in self.zipped:
            self._check_zip(keys)
        for keys in dict.fromkeys(together.get(key, (key,)) for key in self.axes):
            rows = zip(*(self.axes[key] for key in keys), strict=True)
            bundles.append(_distinct([dict(zip(keys, row, strict=True)) for row in rows]))
        return bundles

    def _check_zip(self, keys: Sequence[str]) -> None:
        told = f"zip=[{','.join(keys)}]"
        if len(keys) < 2 or len(set(keys)) < len(keys) or sum(bool({*keys} & {*other}) for other in self.zipped) > 1:
            raise ValueError(f"{told} must name two or more axes, each in one zip only")
        for key in keys:
            if key not in self.axes:
                raise ValueError(f"{told}: {key} is given no values; set {key}=VALUE,VALUE")
        counts = {key: len(self.axes[key]) for key in keys}
        if len(set(counts.values())) > 1:
            unequal = ", ".join(f"{key} has {count}" for key, count in counts.items())
            raise ValueError(f"{told} needs as many values of each axis: {unequal}")

    def _check_keys(self, composed: Iterable[Config]) -> None:
        for key in self.axes.keys() - self.groups:
            if not any(_has(config, key) for config in composed):
                chosen = {group for c in composed for group in GROUPS if group in c}
                raise ValueError(unknown("key", key, sorted(chosen | {n for c in composed for n in _leaves(c)})))

    def _fill(self, config: Config, bundles: list[list[Config]]) -> Iterator[Config]:
        own = []
        for bundle in bundles:
            missing = [key for key in bundle[0] if not _has(config, key)]
            for key in missing:
                self.dropped.setdefault(key, set()).add(_choice(config, key.split(".")[0]))
            own.append(_distinct([{k: v for k, v in values.items() if k not in missing} for values in bundle]))
        for parts in itertools.product(*own):
            point = dict(config)
            for key, value in _joined(parts).items():
                _set(point, key, value)
            yield point


def _joined(parts: Iterable[Config]) -> Config:
    return {key: value for part in parts for key, value in part.items()}


def _distinct(assignments: list[Config]) -> list[Config]:
    """Return each assignment once; 1 and 1.0 are the same value, 1 and true are not."""
    return list({repr(_comparable(values)): values for values in reversed(assignments)}.values())[::-1]


def _comparable(values: Config) -> list[tuple[str, Any]]:
    return [(k, float(v) if isinstance(v, int) and not isinstance(v, bool) else v) for k, v in values.items()]


def _choice(config: Config, group: str) -> str:
    chosen = config.get(group)
    if not isinstance(chosen, dict):
        return group
    return str(chosen[CHOICE_KEYS["kind" in chosen]])


def _has(config: Config, key: str) -> bool:
    """Whether a key can be set: it is there, and is not the name of a group's choice."""
    return key in config or key in _leaves(config)


def _set(config: Config, key: str, value: Any) -> None:
    """Set a key, copying what lies on the way to it: points share all that they have in common."""
    *path, last = key.split(".")
    here = config
    for part in path:
        here[part] = dict(here[part])
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
