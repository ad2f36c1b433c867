"""Files and folders of arrays: .npy, .npz, .safetensors and .pt, a reader each; nothing is ever unpickled."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from capmem.heads import tensor_file
from capmem.heads.optional import require_module
from capmem.heads.stored import Content, Stored, from_tensor, lazy
from capmem.schema import unknown

METADATA = "capmem_metadata"  # the array in an .npz file that holds what Heads.save wrote, as UTF-8 bytes
TOKENS = "tokens.txt"

PLAIN = "is damaged, or no file of plain numbers (nothing is ever unpickled)"


def read(path: str | Path) -> Content:
    """Return what lies in a file, or in all files of a folder; numbers are read when they are asked for.

    In a folder with several files an array is called ``FILE.NAME``. Folders order numbers as numbers:
    layer2 comes before layer10.

    Raises
    ------
    ValueError
        For a path that does not exist, an unknown kind of file, or a damaged one.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"path {str(path)!r} does not exist")
    return _folder(path) if path.is_dir() else _file(path)


def natural(text: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts numbers within names as numbers."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", text) if part]


def _file(path: Path) -> Content:
    if path.suffix not in READERS:
        raise ValueError(unknown("the kind of file", path.suffix or path.name, READERS))
    return READERS[path.suffix](path)


def _folder(path: Path) -> Content:
    files = sorted((p for p in path.iterdir() if p.suffix in READERS and p.is_file()), key=lambda p: natural(p.name))
    if not files:
        raise ValueError(f"the folder {path} holds no file of a known kind: {', '.join(READERS)}")
    contents = {file: _file(file) for file in files}
    arrays: dict[str, Stored] = {}
    for file, content in contents.items():
        for name, array in content.arrays.items():
            full = name if len(files) == 1 else ".".join(filter(None, (file.stem, name)))
            if full in arrays:
                raise ValueError(f"the folder {path} holds two arrays called {full!r}")
            arrays[full] = array
    texts = contents[files[0]].metadata if len(files) == 1 else {}
    if any("capmem" in content.metadata for content in contents.values()) and len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ValueError(f"the folder {path} holds several captures ({names}): name one of these files")
    if (path / TOKENS).is_file():
        texts = texts | {"tokens": (path / TOKENS).read_text(encoding="utf-8")}
    return Content(arrays, texts)


def _npy(path: Path) -> Content:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # what a damaged header raises is anyone's guess
        raise ValueError(f"{path} {PLAIN}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} {PLAIN}")
    return Content({"": lazy(array.shape, array.dtype, lambda: array)}, {})


def _npz(path: Path) -> Content:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            headers = {name.removesuffix(".npy"): _header(archive, name) for name in members}
    except Exception:  # as above
        raise ValueError(f"{path} {PLAIN}") from None
    arrays = {name: lazy(*header, partial(_member, path, name)) for name, header in headers.items()}
    if METADATA not in arrays:
        return Content(arrays, {})
    return Content(arrays, {"capmem": arrays.pop(METADATA).read().tobytes().decode("utf-8")})


def _header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(member) as file:
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[np.lib.format.read_magic(file)]
        shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("pickled objects")
    return shape, dtype


def _member(path: Path, name: str) -> Any:
    try:
        with np.load(path, allow_pickle=False) as content:
            return content[name]
    except Exception:  # as above
        raise ValueError(f"{path} [{name}] {PLAIN}") from None


def _pt(path: Path) -> Content:
    torch = require_module("torch", f"to read {path.name}")
    held = _loaded(torch, path)
    return Content({name: from_tensor(tensor) for name, tensor in _flat("", held)}, {})


def _loaded(torch: Any, path: Path) -> Any:
    for lazily in ({"mmap": True}, {}):  # files of old versions cannot be mapped
        try:
            return torch.load(path, weights_only=True, map_location="cpu", **lazily)
        except Exception:  # as above
            continue
    raise ValueError(f"{path} is damaged, or holds more than tensors (nothing is ever unpickled)")


def _flat(name: str, held: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors in nested mappings and lists, such as a list of (keys, values), with dotted names."""
    if hasattr(held, "detach"):
        yield name, held
    elif isinstance(held, dict | list | tuple):
        for key, inner in held.items() if isinstance(held, dict) else enumerate(held):
            yield from _flat(f"{name}.{key}" if name else str(key), inner)


READERS: dict[str, Callable[[Path], Content]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": tensor_file.read,
    ".pt": _pt,
    ".pth": _pt,
}
