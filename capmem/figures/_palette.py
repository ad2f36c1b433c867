"""One colour and marker for each feature map, write rule and memory, the same in every figure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from capmem.figures import _words

# Places in the colours of `_words.colours`. Names that are often compared differ in colour, the rest in marker.
_KNOWN = {
    "identity": (0, "o"),
    "relu": (1, "s"),
    "elu_plus_one": (2, "D"),
    "dpfp": (3, "^"),
    "taylor": (4, "v"),
    "polynomial": (5, "P"),
    "softmax": (6, "X"),
    "silu": (1, "<"),
    "softplus": (2, ">"),
    "squared_relu": (3, "*"),
    "exp": (4, "s"),
    "positive_random_features": (5, "o"),
    "random_fourier_features": (0, "^"),
    "cosformer": (2, "^"),
    "softmax_features": (3, "o"),
    "random_relu": (1, "v"),
    "hebbian": (0, "o"),
    "delta": (1, "s"),
    "decay": (2, "D"),
    "gated_decay": (3, "^"),
    "gated_delta": (4, "v"),
    "least_squares": (5, "P"),
    "oja": (6, "X"),
}


def shaded(found: dict[Any, dict[str, Any]], labels: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """Return styles in which `labels`, variants of one name, have shades of its colour, the last one the darkest."""
    from matplotlib.colors import to_rgb

    darker = {
        label: found[label] | {"color": tuple(share * part for part in to_rgb(found[label]["color"]))}
        for label, share in zip(labels, np.linspace(1, 0.4, len(labels)), strict=True)
    }
    return found | darker


def styles(labels: Sequence[Any], ordered: bool = False) -> dict[Any, dict[str, Any]]:
    """Return colour and marker of each line by its label.

    Labels that begin with a known name ("dpfp, nu=3") have its colour, and markers of their own where the name comes
    again; other labels beside them take the colours that are left. Where none is known, and where they are ordered,
    they take the colours in turn.
    """
    names = [str(label).partition(",")[0] for label in labels]
    if ordered or not set(names) & _KNOWN.keys():
        shades = _words.colours(len(labels), ordered)
        marks = [_words.MARKERS[i % len(_words.MARKERS)] for i in range(len(labels))]
        return {label: {"color": c, "marker": m} for label, c, m in zip(labels, shades, marks, strict=True)}
    colours = _words.colours(7, ordered=False)
    used = {_KNOWN[name][0] for name in names if name in _KNOWN}
    spare = itertools.cycle([i for i in range(7) if i not in used] or range(7))
    own = {name: _KNOWN[name] if name in _KNOWN else (next(spare), "o") for name in dict.fromkeys(names)}
    found: dict[Any, dict[str, Any]] = {}
    for label, name in zip(labels, names, strict=True):
        place, marker = own[name]
        taken = [style["marker"] for style in found.values() if style["color"] == colours[place]]
        free = [m for m in (marker, *_words.MARKERS) if m not in taken]
        found[label] = {"color": colours[place], "marker": (free or [marker])[0]}
    return found
