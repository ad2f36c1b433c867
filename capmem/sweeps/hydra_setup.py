"""What Hydra is told before it reads a command line: our plugins, choices of other packages, what not to copy."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins

from capmem.sweeps.points import GROUPS


def register_plugins(*plugins: type) -> None:
    """Make the plugins known under the namespace hydra_plugins, the only one that Hydra 1.3 takes plugins from.

    Done by hand, so that an editable install works, and no other Hydra application ever imports this module.
    """
    known = Plugins.instance()  # scans the namespace before ours is in it
    try:
        parent = importlib.import_module("hydra_plugins")
    except ImportError:
        parent = sys.modules.setdefault("hydra_plugins", types.ModuleType("hydra_plugins"))
    module = types.ModuleType("hydra_plugins.capmem")
    sys.modules[module.__name__] = module
    parent.capmem = module  # type: ignore[attr-defined]
    for plugin in plugins:
        plugin.__module__ = module.__name__
        setattr(module, plugin.__name__, plugin)
        known.register(plugin)


def offer_choices_of_other_packages() -> None:
    """Make every choice that has no file in conf/ a choice of its group, with its fields at their defaults."""
    store = ConfigStore.instance()
    for group, registry in GROUPS.items():
        ours = set(registry.names())
        registry.load_entry_points()
        for name in set(registry.names()) - ours:
            fields = dataclasses.fields(registry[name])
            node = {f.name: None if f.default is dataclasses.MISSING else f.default for f in fields if f.init}
            store.store(group=group, name=name, node={"name": name} | node)


def copy_no_choices() -> None:
    """Let Hydra's store of choices be its own copy: it is one for all, and copying it 142 times is half of --help."""
    store: Any = ConfigStore.instance()
    store.__deepcopy__ = lambda memo: store
