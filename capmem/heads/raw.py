"""Raw layers: the arrays of every layer as they are stored, before their axes are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from capmem.heads.names import Place
from capmem.heads.stored import Stored
from capmem.heads.widen import FLOATS, Numbers

OF_LAYERS = ("queries", "keys", "values", "output", "qkv")


@dataclass(frozen=True, eq=False)
class RawLayer:
    """The stored arrays of one layer.

    Attributes
    ----------
    parts : dict
        Arrays by part; those of single heads are stacked along a first axis.
    numbers : dict
        The numbers of the heads of a stacked part.
    """

    parts: dict[str, Stored] = field(default_factory=dict)
    numbers: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every part but the output."""
        return {part: array.shape for part, array in self.parts.items() if part != "output"}


def collect(arrays: Mapping[Place, Stored]) -> dict[int, RawLayer]:
    """Return the layers in the order of their numbers.

    Raises
    ------
    ValueError
        If layers do not have the same parts, numbers are no floats, or the heads of a part do not fit together.
    """
    layers: dict[int, RawLayer] = {}
    for index in sorted({place.layer or 0 for place in arrays if place.part in OF_LAYERS}):
        held: dict[str, dict[int | None, Stored]] = {}
        for place, array in arrays.items():
            if place.part in OF_LAYERS and (place.layer or 0) == index:
                _check_numbers(place, array)
                held.setdefault(place.part, {})[place.head] = array
        layers[index] = _stacked(index, held)
    first = next(iter(layers.values()))
    for index, layer in layers.items():
        if set(layer.parts) != set(first.parts):
            raise ValueError(f"layer {index} has {', '.join(layer.parts)}, the first has {', '.join(first.parts)}")
    return layers


def _check_numbers(place: Place, array: Stored) -> None:
    if array.dtype not in FLOATS:
        hint = (
            "; say what they are, as in dtype='bfloat16'" if array.dtype in ("raw16", "raw8", "uint16", "uint8") else ""
        )
        raise ValueError(f"{place.part} must be real floating point, got dtype {array.dtype}{hint}")


def _stacked(index: int, held: dict[str, dict[int | None, Stored]]) -> RawLayer:
    layer = RawLayer()
    for part, heads in held.items():
        numbers = tuple(sorted(head for head in heads if head is not None))
        if not numbers:
            layer.parts[part] = heads[None]
            continue
        shapes = {heads[head].shape for head in heads}
        if len(shapes) > 1 or len(numbers) < len(heads):
            raise ValueError(f"the {part} of layer {index} are not of one shape a head: {sorted(shapes)}")
        layer.parts[part] = _stack([heads[number] for number in numbers])
        layer.numbers[part] = numbers
    return layer


def _stack(arrays: list[Stored]) -> Stored:
    def read() -> Numbers:
        return np.stack([array.read() for array in arrays])

    return Stored((len(arrays), *arrays[0].shape), arrays[0].dtype, read)
