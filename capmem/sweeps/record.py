"""The configuration of a sweep, saved beside its results; a file that is there is never changed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capmem._version import FORMAT, NUMERICS
from capmem.files import replace_file
from capmem.sweeps.folder import check_folder
from capmem.sweeps.grid import Config


def save_configuration(folder: Path, overrides: Sequence[str], points: list[Config]) -> Path:
    """Write configuration.yaml: the overrides, what all points share, and the axes; return its path.

    A sweep that resumes with other overrides gets a file of its own, configuration-2.yaml and so on.
    """
    from omegaconf import OmegaConf

    common, axes = split(points)
    content = {"format": FORMAT, "numerics": NUMERICS, "overrides": list(overrides)}
    text = OmegaConf.to_yaml(OmegaConf.create(content | {"axes": axes, "configuration": common}))
    check_folder(folder)
    for number in itertools.count(1):
        path = folder / ("configuration.yaml" if number == 1 else f"configuration-{number}.yaml")
        if not path.exists():
            return replace_file(path, lambda partial: partial.write_text(text))
        if path.read_bytes() == text.encode():
            return path
    raise AssertionError("unreachable")


def split(points: list[Config]) -> tuple[Config, dict[str, list[Any]]]:
    """Return what all points have in common, and the values of each key in which they differ."""
    axes: dict[str, list[Any]] = {}
    flat = [_flat(point) for point in points]
    common: Config = {}
    for key in dict.fromkeys(k for point in flat for k in point):
        values = list({repr(value): value for value in (point.get(key) for point in flat)}.values())
        if len(values) == 1:
            common[key] = values[0]
        else:
            axes[key] = values
    return common, axes


def _flat(config: Config, prefix: str = "") -> Config:
    flat: Config = {}
    for name, value in config.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
