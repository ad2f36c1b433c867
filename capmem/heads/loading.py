"""Loading: from files, folders or arrays at hand to heads whose layout, scale and mask are told or confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capmem.heads import files, saving
from capmem.heads.assembly import Assembly, LayoutChoice
from capmem.heads.container import Heads
from capmem.heads.names import PER_SEQUENCE, Place, places
from capmem.heads.options import options_from
from capmem.heads.raw import collect
from capmem.heads.stored import Content, Stored, as_format, stored
from capmem.schema import require


def load(
    path: str | Path, names: Mapping[str, str] | None = None, layout: LayoutChoice = None, **options: Any
) -> Heads:
    """Load attention heads from an .npz, .npy, .safetensors or .pt file, or from a folder of such files.

    Where the layer's own output is there, layout, scale, grouping and mask are confirmed by reproducing it.
    Nothing is ever unpickled; only .pt files need PyTorch.

    Parameters
    ----------
    path : str or Path
        A file, or a folder with a file for each layer or part, and tokens.txt with a token a line. What
        :meth:`Heads.save` wrote is read back as it was, and takes no options.
    names : mapping, optional
        Which array is what, as in ``{"keys": "layers.{layer}.k", "values": "layers.{layer}.v"}``; parts are keys,
        queries, values, output, qkv (packed), mask, ids. None: guessed from words such as k, k_proj, query,
        qkv; ``heads.metadata.notes`` says what was guessed.
    layout : str or mapping, optional
        The axes: b sequences, h heads, t tokens, d dimension, 3 packed; "bhtd", "bthd", "t(hd)", "bt3hd". For the
        output by itself: ``{"": "bhtd", "output": "bt(hd)"}``. None: found, where shapes leave no doubt, or
        the output tells.
    **options
        As in :func:`from_arrays`.

    Returns
    -------
    Heads
        The heads; layers are read when they are asked for.

    Raises
    ------
    ValueError
        For what cannot be read, is not clear (the message names the option to give), or contradicts the output.
    """
    content = files.read(path)
    if "capmem" in content.metadata:
        given = dict(options, names=names, layout=layout)
        refused = [name for name, value in given.items() if value is not None]
        require(not refused, ", ".join(refused), str(path), "left out for a file that says all itself")
        return saving.restore(content, str(path))
    if "tokens" in content.metadata and options.get("tokens") is None:
        options["tokens"] = content.metadata["tokens"].removesuffix("\n").split("\n")
    return _assembled(content, str(path), names, layout, options)


def from_arrays(
    keys: Any = None,
    queries: Any = None,
    values: Any = None,
    output: Any = None,
    *,
    qkv: Any = None,
    layout: LayoutChoice = None,
    **options: Any,
) -> Heads:
    """Return heads from arrays at hand: NumPy, PyTorch, or a list or mapping of them, an entry a layer.

    Parameters
    ----------
    keys, queries, values, output : array, or a list or mapping of layers
        What is there; `qkv` in place of the first three if they are packed.
    layout : str or mapping, optional
        See :func:`load`.
    heads, key_heads : int, optional
        How many query heads and key heads there are; needed where they share an axis with the dimension.
    sequence : int, optional
        Which sequence of a batch; must be given if there are several, which are never mixed.
    mask : array (T,) or (B, T), optional
        1 for tokens, 0 for padding, which is dropped.
    ids, tokens, special : optional
        Number and text of every token (ids may be (B, T)), and a mask of those that are none of the text.
    dtype : str, optional
        The format of raw or integer items: "bfloat16" saved by NumPy, say.
    scale, causal, rotary, model, licence, text : optional
        See :class:`Metadata`. Scale and causal are checked against the output, or found from it.
    confirm : bool
        Whether to reproduce the output, if there is one (default: yes).
    tolerance : float, optional
        The relative error that counts as reproduced (default: 1e-5; for float16 1e-2, bfloat16 3e-2).

    Returns
    -------
    Heads
        The heads.

    Raises
    ------
    ValueError
        See :func:`load`.
    """
    given = {"keys": keys, "queries": queries, "values": values, "output": output, "qkv": qkv}
    arrays: dict[str, Stored] = {}
    patterns: dict[str, str] = {}
    for part, held in given.items():
        if held is not None:
            patterns[part] = f"{part}.{{layer}}"
            arrays |= {f"{part}.{i}": stored(array, part) for i, array in _by_layer(held).items()}
    return _assembled(Content(arrays, {}), "arrays", patterns, layout, options)


def _by_layer(held: Any) -> dict[int, Any]:
    if isinstance(held, Mapping):
        return {int(i): array for i, array in held.items()}
    return dict(enumerate(held)) if isinstance(held, list | tuple) else {0: held}


def _assembled(
    content: Content, where: str, patterns: Mapping[str, str] | None, layout: LayoutChoice, options: dict[str, Any]
) -> Heads:
    try:
        placed, notes = places(content.arrays, patterns)
        arrays = {place: content.arrays[name] for place, name in placed.items()}
        for part in PER_SEQUENCE:
            held = arrays.pop(Place(part), None)
            if held is not None and options.get(part) is None:
                options = options | {part: held.read()}
        told = options_from(options)
        raw = collect({place: as_format(array, told.dtype) for place, array in arrays.items()})
        return Assembly(raw, told, layout).heads(tuple(notes))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
