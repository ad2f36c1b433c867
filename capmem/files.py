"""Writing a file so that it is whole or absent, whatever happens on the way."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path


def replace_file(path: Path, write: Callable[[Path], object]) -> Path:
    """Write a file beside its place, then rename it into it; return the path.

    Parameters
    ----------
    path : Path
        Its folder is made if it does not exist.
    write : callable
        write(partial) writes the file `partial`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path
