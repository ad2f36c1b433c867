"""Modules of the extra ``capmem[torch]``, imported where they are needed, with a clear message if missing."""

from __future__ import annotations

import importlib
from typing import Any


class MissingModule(ValueError):
    """A module that capmem does not install by itself is needed, and is not there."""


def require_module(name: str, purpose: str, install: str = "capmem[torch]") -> Any:
    """Import a module.

    Raises
    ------
    MissingModule
        If it is not installed; the message says what it is needed for, and what to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name.partition(".")[0]:
            raise MissingModule(f"{name} is needed {purpose}, and cannot be imported: {error}") from None
        raise MissingModule(f"{name} is needed {purpose}: install {install}") from None
