"""How a command ends: one line for what a user can mend, and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeVar

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

T = TypeVar("T")


def guarded(work: Callable[[], T]) -> T:
    """Turn every error that a user can cause into one clear message and exit code 1."""
    try:
        return work()
    except BrokenPipeError:  # whoever read the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, RuntimeError, OSError, HydraException, OmegaConfBaseException) as error:
        told = str(error).splitlines()[0] if isinstance(error, OmegaConfBaseException) else error
        print(f"error: {told}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt as stopped:
        told = str(stopped) or "stopped; what is finished is stored, the same command again (same folder) resumes"
        print(told, file=sys.stderr)
        sys.exit(130)


def leave(all_went_well: bool) -> None:
    """End with exit code 1 unless all went well."""
    if not all_went_well:
        sys.exit(1)
