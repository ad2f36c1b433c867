"""Pictures small enough to be committed: the same pixels to the eye, in a palette."""

from __future__ import annotations

from pathlib import Path

from capmem.files import replace_file

COLOURS = 256


def shrink(source: Path, target: Path) -> int:
    """Write the PNG `source` as `target` in a palette of at most 256 colours; return its size in bytes.

    The file holds nothing but the pixels: the same picture gives the same bytes.
    """
    from PIL import Image

    with Image.open(source) as picture:
        opaque = picture.convert("RGB")
    small = opaque.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    replace_file(target, lambda partial: small.save(partial, format="PNG", optimize=True))
    return target.stat().st_size
