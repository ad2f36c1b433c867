"""Pictures small enough to be committed: the same pixels to the eye, in a palette."""

from __future__ import annotations

import os
from pathlib import Path

COLOURS = 256


def shrink(source: Path, target: Path) -> int:
    """Write the PNG `source` as `target` in a palette of at most 256 colours; return its size in bytes.

    The file holds nothing but the pixels: the same picture gives the same bytes.
    """
    from PIL import Image

    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with Image.open(source) as picture:
            opaque = picture.convert("RGB")
        small = opaque.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        small.save(partial, format="PNG", optimize=True)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size
