"""Names of arrays: which part of which layer and head an array is, guessed from its name or told by a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from capmem.schema import unknown

PARTS: dict[str, tuple[str, ...]] = {
    "keys": ("k", "key", "keys", "wk"),
    "queries": ("q", "query", "queries", "wq"),
    "values": ("v", "value", "values", "wv"),
    "output": ("o", "out", "output", "outputs", "y"),
    "qkv": ("qkv",),
    "mask": ("mask", "masks"),
    "ids": ("ids",),
}
PER_SEQUENCE = ("mask", "ids")  # of the tokens, not of a layer
WORDS = {word: part for part, words in PARTS.items() for word in words}
LAYER_WORDS = ("layer", "layers", "block", "blocks", "l")
HEAD_WORDS = ("head", "heads")
WEIGHTS = ("weight", "weights", "bias")
HOW = 'say which is which, as in names={"keys": "layers.{layer}.k", "values": "layers.{layer}.v"}'


class Place(NamedTuple):
    """Where an array belongs: a part, and the layer and head, where its name has them."""

    part: str
    layer: int | None = None
    head: int | None = None


def places(names: Iterable[str], patterns: Mapping[str, str] | None = None) -> tuple[dict[Place, str], list[str]]:
    """Return the name of the array at each place, and notes that say what was guessed.

    Parameters
    ----------
    names : iterable of str
        All names.
    patterns : mapping, optional
        The name of each part, as in ``{"keys": "model.layers.{layer}.attn.k", "values": ...}``, with ``{layer}``
        and ``{head}`` where the numbers are. None: words such as k, key, k_proj tell, of those the last.

    Raises
    ------
    ValueError
        If a pattern fits nothing, two arrays have one place, or no name says that it holds keys.
    """
    names = list(names)
    found = _told(names, patterns) if patterns is not None else _guessed(names)
    placed: dict[Place, str] = {}
    for name, place in found:
        if place in placed:
            raise ValueError(f"{placed[place]!r} and {name!r} could both be {_worded(place)}: {HOW}")
        placed[place] = name
    if not any(place.part in ("keys", "qkv") for place in placed):
        raise ValueError(f"no array is known as keys among {_some(names)}: {HOW}")
    return placed, [] if patterns is not None else _notes(placed)


def _told(names: list[str], patterns: Mapping[str, str]) -> list[tuple[str, Place]]:
    found = []
    for part, pattern in patterns.items():
        if part not in PARTS:
            raise ValueError(unknown("names", part, PARTS))
        regular = re.escape(pattern)
        for number in ("layer", "head"):
            regular = regular.replace(re.escape(f"{{{number}}}"), rf"(?P<{number}>\d+)", 1)
        matches = {name: match for name in names if (match := re.fullmatch(regular, name))}
        if not matches:
            raise ValueError(f"names.{part} {pattern!r} fits no array, there are {_some(names)}")
        for name, match in matches.items():
            numbers = {key: int(value) for key, value in match.groupdict().items()}
            found.append((name, Place(part, **numbers)))
    return found


def _guessed(names: list[str]) -> list[tuple[str, Place]]:
    if names == [""]:
        return [("", Place("keys"))]  # an .npy file
    found = [(name, place) for name in names if (place := guess(name)) is not None]
    if not found and any(word in WEIGHTS for name in names for word in _words(name)):
        raise ValueError(
            f"{_some(names)} are weights, not keys and values: run the model on a text, with capmem.heads.capture"
        )
    return found


def guess(name: str) -> Place | None:
    """Return the place that the words in a name tell, or None if they tell no part, or it is a weight.

    Raises
    ------
    ValueError
        If it has several numbers, and which is the layer is open.
    """
    words = _words(name)
    told = [WORDS[word] for word in words if word in WORDS]
    if not told or any(word in WEIGHTS for word in words):
        return None
    if told[-1] in PER_SEQUENCE:
        return Place(told[-1])
    numbers = [(words[i - 1] if i else "", int(word)) for i, word in enumerate(words) if word.isdigit()]
    layer = [number for word, number in numbers if word in LAYER_WORDS]
    head = [number for word, number in numbers if word in HEAD_WORDS]
    rest = [number for word, number in numbers if word not in LAYER_WORDS + HEAD_WORDS + ("h",)]
    other = [number for word, number in numbers if word == "h"]  # a head in "l3.h5", a layer in "h.3.attn"
    layer = layer or rest or other
    head = head or (other if layer is not other else [])
    if len(layer) > 1 or len(head) > 1:
        raise ValueError(f"which number in {name!r} is the layer is open: {HOW}")
    return Place(told[-1], *(numbers[0] if numbers else None for numbers in (layer, head)))


def _words(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[a-z]+|\d+", spaced.lower())


def _notes(placed: dict[Place, str]) -> list[str]:
    first: dict[str, str] = {}
    for place, name in placed.items():
        first.setdefault(place.part, name)
    parts = [f"{part} from {name!r}" for part, name in first.items()]
    return [f"guessed: {', '.join(parts)}"]


def _worded(place: Place) -> str:
    numbers = [f"{what} {n}" for what, n in (("layer", place.layer), ("head", place.head)) if n is not None]
    return f"the {place.part}" + (f" of {', '.join(numbers)}" if numbers else "")


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:6]))
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")
