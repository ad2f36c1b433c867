"""Layouts: what each axis of an array is, as in "bhtd", told, or found where the shapes leave one choice only."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from capmem.heads.widen import Numbers

AXES = {"b": "sequences", "t": "tokens", "h": "heads", "d": "dimension", "3": "queries, keys, values"}
PLAIN = ("bhtd", "bthd", "htd", "thd", "td", "bt(hd)", "t(hd)")
PACKED = ("bt3hd", "3bhtd", "3bthd", "b3htd", "t3hd", "3htd", "bt(3hd)", "t(3hd)")
CHOICES = PLAIN + PACKED

SURE_TOKENS, SURE_HEADS = 256, 64  # no model has this many heads, nor so few tokens beside them

Shape = tuple[int, ...]
Sizes = dict[str, int]


class Facts(NamedTuple):
    """What is known besides the shapes: heads, key heads, tokens."""

    heads: int | None = None
    key_heads: int | None = None
    tokens: int | None = None


def parse(layout: str) -> list[str]:
    """Return the letters of each axis: "bt(hd)" gives ["b", "t", "hd"].

    Raises
    ------
    ValueError
        If it is not made of the letters b, h, t, d and 3, each at most once, with t and d among them.
    """
    axes = [group or letter for group, letter in re.findall(r"\(([bthd3]+)\)|([bthd3])", layout)]
    letters = "".join(axes)
    spelt = "".join(f"({axis})" if len(axis) > 1 else axis for axis in axes)
    if spelt != layout or len(set(letters)) < len(letters) or not {"t", "d"} <= set(letters):
        known = "b (sequences), h (heads), t (tokens), d (dimension), 3 (queries, keys, values)"
        raise ValueError(f"layout must spell the axes, as in {', '.join(CHOICES)}; {known}; got {layout!r}")
    return axes


def sizes(layout: str, shape: Shape, known: Sizes) -> Sizes | None:
    """Return the size of each letter, or None if the layout does not fit the shape and what is known."""
    axes = parse(layout)
    letters = "".join(axes)
    if len(axes) != len(shape) or ("h" not in letters and known.get("h", 1) != 1):
        return None
    found = {letter: size for letter, size in (known | {"3": 3}).items() if letter in letters}
    for axis, size in zip(axes, shape, strict=True):
        wanted = [letter for letter in axis if letter not in found]
        given = math.prod(found[letter] for letter in axis if letter in found)
        if len(wanted) > 1 or size == 0 or size % given or (not wanted and size != given):
            return None
        found |= {letter: size // given for letter in wanted}
    return found


def arrange(array: Numbers, layout: str, found: Sizes) -> Numbers:
    """Return an array (b, h, t, d), or (3, b, h, t, d) for a packed one; what the layout lacks has size 1."""
    letters = "".join(parse(layout))
    expanded = array.reshape([found[letter] for letter in letters])
    order = [letter for letter in "3bhtd" if letter in letters]
    moved = np.transpose(expanded, [letters.index(letter) for letter in order])
    full = "3bhtd" if "3" in letters else "bhtd"
    return moved.reshape([found.get(letter, 1) for letter in full])


def fit(layout: str, shapes: Mapping[str, Shape], facts: Facts) -> dict[str, Sizes] | None:
    """Return the sizes of every part (keys, queries, values, or qkv) in one layout, or None if they do not fit."""
    known = {} if facts.tokens is None else {"t": facts.tokens}
    if "qkv" in shapes:
        if "3" not in layout:
            return None
        packed = sizes(layout, shapes["qkv"], known | _some(h=facts.heads))
        return None if packed is None else {"qkv": packed}
    if "3" in layout:
        return None
    found: dict[str, Sizes] = {}
    for part in [part for part in ("queries", "keys", "values") if part in shapes]:
        asked, held = found.get("queries"), found.get("keys")
        if part == "values" and held:
            extra = {"h": held.get("h", 1)}
        elif part == "keys" and facts.key_heads is None and asked:
            extra = {"d": asked["d"]}
        else:
            extra = _some(h=facts.heads if part == "queries" else facts.key_heads or facts.heads)
        fitted = sizes(layout, shapes[part], known | extra)
        if fitted is None:
            return None
        found[part] = fitted
    return found if _consistent(found) else None


def candidates(shapes: Mapping[str, Shape], facts: Facts) -> dict[str, dict[str, Sizes]]:
    """Return every usual layout that fits, with its sizes."""
    return {layout: fitted for layout in CHOICES if (fitted := fit(layout, shapes, facts)) is not None}


def surest(fitting: Mapping[str, dict[str, Sizes]], facts: Facts) -> str | None:
    """Return the one layout that leaves no doubt, or None if it has to be asked for.

    Arrays (T, d) are one head. Without the number of heads, three axes say too little, since the heads may
    lie in the last one. Four say enough if queries and keys differ in one, which is the heads' then, or if one is too
    long for heads, and the other too short for tokens.
    """
    if list(fitting) == ["td"]:
        return "td"
    told = facts.heads is not None or facts.tokens is not None
    axes = {len(parse(layout)) for layout in fitting}
    if axes & {3} and facts.heads is None:
        return None
    if len(fitting) == 1 and (told or any(map(_grouped, fitting.values()))):
        return next(iter(fitting))
    clear = [layout for layout, parts in fitting.items() if all(map(_clear, parts.values()))]
    return clear[0] if len(clear) == 1 and axes != {3} else None


def _grouped(parts: dict[str, Sizes]) -> bool:
    return len({found.get("h", 1) for found in parts.values()}) > 1


def _clear(found: Sizes) -> bool:
    return found["t"] >= SURE_TOKENS and found.get("h", 1) <= SURE_HEADS


def _consistent(found: dict[str, Sizes]) -> bool:
    first = next(iter(found.values()))
    same = all(part.get(letter, 1) == first.get(letter, 1) for part in found.values() for letter in "bt")
    if "keys" not in found or not same:
        return same
    keys = found["keys"]
    asked = found.get("queries", keys)
    return asked["d"] == keys["d"] and asked.get("h", 1) % keys.get("h", 1) == 0


def _some(**given: int | None) -> Sizes:
    return {name: value for name, value in given.items() if value is not None}
