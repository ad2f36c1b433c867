"""Settings of a study: plain configurations read into its frozen dataclass, swept entries of a list joined."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterable
from typing import Any

from capmem.schema import require

Config = dict[str, Any]


def fold(configs: Iterable[Config], settings: type) -> list[Config]:
    """Join configurations that differ in one entry of a list: num_pairs=8,16 asks for num_pairs=[8,16].

    Only a field that is annotated as a tuple takes several values into one table; any other key that is swept
    leaves a configuration, and so a table, for each of its values.
    """
    folded = list(configs)
    for name in _list_fields(settings):
        joined: dict[str, Config] = {}
        for config in folded:
            if config.get(name) is None or isinstance(config[name], list):
                joined[_identity(config)] = config
                continue
            rest = {key: value for key, value in config.items() if key != name}
            together = joined.setdefault(_identity(rest), rest | {name: []})
            together[name] = [*together[name], config[name]]
        folded = list(joined.values())
    return folded


def labels(configs: list[Config]) -> list[str]:
    """Return what tells configurations apart as the end of a file name: "_cosine=0.3"; "" for one alone."""
    keys = [key for key in configs[0] if any(config.get(key) != configs[0][key] for config in configs)]
    return ["".join(f"_{key}={_file_name(config.get(key))}" for key in keys) for config in configs]


def at_least(settings: Any, smallest: float, *names: str) -> None:
    """Raise ValueError unless these fields are numbers, or lists that are not empty of numbers, >= `smallest`."""
    for name in names:
        given = getattr(settings, name)
        if isinstance(given, tuple):
            allowed = f"a list, not empty, of numbers of at least {smallest:g}"
            require(bool(given) and min(given) >= smallest, name, list(given), allowed)
        else:
            require(given >= smallest, name, given, f"at least {smallest:g}")


def _list_fields(settings: type) -> list[str]:
    hints = typing.get_type_hints(settings)
    return [f.name for f in dataclasses.fields(settings) if typing.get_origin(hints[f.name]) is tuple]


def _identity(config: Config) -> str:
    return json.dumps(config, sort_keys=True, default=repr)


def _file_name(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return re.sub(r"[^\w.,+-]+", "_", text)
