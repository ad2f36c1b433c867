"""Assembly: from raw layers to heads; the axes are told, confirmed by the output, or beyond doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from capmem.heads import layouts
from capmem.heads.confirming import (
    CYCLES,
    DEFAULT_TOLERANCE,
    TOLERANCE,
    Confirmation,
    choose,
    regrouped,
    reproduction_error,
)
from capmem.heads.container import Heads, Metadata
from capmem.heads.layer import Layer, check_finite
from capmem.heads.layouts import CHOICES, PLAIN, Facts, Sizes
from capmem.heads.options import Options
from capmem.heads.raw import RawLayer
from capmem.heads.widen import Numbers
from capmem.schema import require

LayoutChoice = str | Mapping[str, str] | None
ASK = f"say layout=..., one of {', '.join(CHOICES)}, and heads=... where heads share an axis"


class Axes(NamedTuple):
    """The layout of queries, keys and values, and that of the output, where there is one."""

    layout: str
    output: str | None

    def __str__(self) -> str:
        return self.layout if self.output in (None, self.layout) else f"{self.layout} (output {self.output})"


@dataclass(frozen=True, eq=False)
class Assembly:
    """Raw layers with what is said of them.

    Parameters
    ----------
    raw : dict
        The layers.
    options : Options
        What is said.
    layout : str, mapping or None
        The axes, or those of single parts: the output's under "output", all others under "".
    """

    raw: dict[int, RawLayer]
    options: Options
    layout: LayoutChoice = None

    def heads(self, notes: tuple[str, ...] = ()) -> Heads:
        """Return the heads; see :func:`capmem.heads.load`."""
        possible = self._possible()
        if self._confirmable():
            found, axes = self._confirmed(possible)
            metadata = self._metadata(axes, notes + _told(found), found)
            return Heads(tuple(self.raw), lambda i: self._read(i, axes, found.variant.grouping == CYCLES), metadata)
        axes = self._sure(possible)
        if self.layout is None and not self._first.numbers and len(layouts.parse(axes.layout)) > 1:
            notes += (f"guessed: layout {axes}",)
        return Heads(tuple(self.raw), lambda i: self._read(i, axes), self._metadata(axes, notes))

    @property
    def _first(self) -> RawLayer:
        return next(iter(self.raw.values()))

    @property
    def _facts(self) -> Facts:
        return Facts(self.options.heads, self.options.key_heads, self.options.num_tokens)

    def _confirmable(self) -> bool:
        parts = set(self._first.parts)
        complete = "output" in parts and (parts >= {"queries", "keys", "values"} or "qkv" in parts)
        return complete and self.options.confirm and self.options.rotary != "before"

    def _possible(self) -> dict[Axes, dict[str, Sizes]]:
        """Return every reading of the axes that the shapes of the first layer allow."""
        told = {"": self.layout} if self.layout is None or isinstance(self.layout, str) else dict(self.layout)
        unknown_parts = set(told) - {"", "output"}
        require(not unknown_parts, "layout", sorted(unknown_parts), "a text, or a mapping of '' and 'output'")
        shapes = self._first.shapes()
        found: dict[Axes, dict[str, Sizes]] = {}
        given = told.get("")
        for layout in map(self._whole, [given] if given else self._layouts()):
            fitted = layouts.fit(layout, shapes, self._facts)
            outputs = [] if fitted is None else self._outputs(layout, fitted, told.get("output"))
            found |= {Axes(layout, output): fitted or {} for output in outputs}
        if not found:
            raise ValueError(self._misfit(told.get("")))
        return found

    def _misfit(self, told: str | None) -> str:
        shapes = {part: array.shape for part, array in self._first.parts.items()}
        known = {name: n for name, n in self._facts._asdict().items() if n is not None}
        where = f"the shapes {shapes}" + (f" with {known}" if known else "")
        need = ": say heads=..." if told and "(" in told and self.options.heads is None else ""
        return f"layout {told!r} does not fit {where}{need}" if told else f"no usual layout fits {where}: {ASK}"

    def _layouts(self) -> tuple[str, ...]:
        return ("td",) if self._first.numbers else CHOICES

    def _whole(self, layout: str) -> str:
        """Return the layout of stacked heads, for that of one head."""
        return f"h{layout}" if self._first.numbers and "h" not in layout else layout

    def _outputs(self, layout: str, fitted: dict[str, Sizes], told: str | None) -> list[str | None]:
        if "output" not in self._first.parts:
            return [None]
        if "output" in self._first.numbers:
            return [self._whole(told or layout)]
        asked = fitted.get("qkv") or fitted.get("queries") or fitted["keys"]
        value = fitted.get("qkv") or fitted.get("values") or fitted["keys"]
        known = {"h": asked.get("h", 1), "t": asked["t"], "d": value["d"], "b": asked.get("b", 1)}
        shape = self._first.parts["output"].shape
        usual = sorted(PLAIN, key=lambda choice: choice != layout)
        return [choice for choice in ([told] if told else usual) if layouts.sizes(choice, shape, known) is not None]

    def _sure(self, possible: dict[Axes, dict[str, Sizes]]) -> Axes:
        fitting = {axes.layout: fitted for axes, fitted in possible.items()}
        told = self.layout if isinstance(self.layout, str) else (self.layout or {}).get("")
        sure = next(iter(fitting)) if told or self._first.numbers else layouts.surest(fitting, self._facts)
        if sure is None:
            shapes = self._first.shapes()
            raise ValueError(f"the shapes {shapes} could be {' or '.join(fitting)}: {ASK}")
        left = [axes for axes in possible if axes.layout == sure]
        if len(left) > 1:
            raise ValueError(
                f"the output could be {' or '.join(str(a.output) for a in left)}: say layout={{'output': ...}}"
            )
        return left[0]

    def _confirmed(self, possible: dict[Axes, dict[str, Sizes]]) -> tuple[Confirmation, Axes]:
        """Choose the axes by the first layer's output, and reproduce that of all others in the same way."""
        single = [axes for axes, fitted in possible.items() if _batch(fitted) == 1]
        by_text = {str(axes): axes for axes in (single if self.options.sequence is None and single else possible)}
        first, *others = self.raw
        options, limit = self.options, self._tolerance()
        readings = [(text, self._read(first, axes)) for text, axes in by_text.items()]
        found = choose(readings, options.scale, options.causal, limit)
        axes, worst = by_text[found.variant.layout], found.error
        for index in others:
            error = reproduction_error(self._read(index, axes), found.variant)
            if error > limit:
                raise ValueError(
                    f"{found.variant} reproduces the output of layer {first}, not that of {index}: {error:.2g}"
                )
            worst = max(worst, error)
        return found._replace(error=worst), axes

    def _tolerance(self) -> float:
        dtypes = {array.dtype for array in self._first.parts.values()}
        usual = max(TOLERANCE.get(dtype, DEFAULT_TOLERANCE) for dtype in dtypes)
        return usual if self.options.tolerance is None else self.options.tolerance

    def _metadata(self, axes: Axes, notes: tuple[str, ...], found: Confirmation | None = None) -> Metadata:
        held = self.options.metadata()
        sequence = self._sequence(axes)
        kept = self.options.kept(sequence)
        if kept is not None and not kept.all():
            notes += (f"{int((~kept).sum())} of {len(kept)} tokens are padding and were dropped",)
        if found is None and held.scale is None and "queries" in self._first.parts:
            notes += ("scale taken as 1 / sqrt(d), not confirmed",)
        if found is None and axes.output is not None:
            notes += ("the output is not confirmed: nothing tells that these heads gave it",)
        if found is not None:
            held = replace(held, scale=found.variant.scale, causal=found.variant.causal, error=found.error)
        told: dict[str, Any] = self.options.of_tokens(sequence)
        dtypes = sorted({array.dtype for part, array in self._first.parts.items() if part != "output"})
        return replace(held, layout=str(axes), dtype=", ".join(dtypes), notes=notes, **told)

    def _sequence(self, axes: Axes) -> int:
        """Return the sequence that is asked for, of the first layer's."""
        fitted = layouts.fit(axes.layout, self._first.shapes(), self._facts)
        count = _batch(fitted or {})
        given = self.options.sequence
        if given is None and count > 1:
            raise ValueError(f"the arrays hold {count} sequences, which are never mixed: say sequence=0 to {count - 1}")
        require(given is None or given < count, "sequence", given, f"below {count}, the number of sequences")
        return given or 0

    def _read(self, index: int, axes: Axes, cycles: bool = False) -> Layer:
        """Read a layer: arrange its axes, take one sequence, drop padding."""
        raw = self.raw[index]
        fitted = layouts.fit(axes.layout, raw.shapes(), self._facts)
        if fitted is None:
            raise ValueError(f"layer {index} has the shapes {raw.shapes()}, which layout {axes.layout} does not fit")
        arrays: dict[str, Any] = {
            part: layouts.arrange(raw.parts[part].read(), axes.layout, sizes) for part, sizes in fitted.items()
        }
        if "qkv" in arrays:
            arrays = dict(zip(("queries", "keys", "values"), arrays["qkv"], strict=True))
        if axes.output is not None:
            arrays["output"] = self._output(index, axes.output, arrays)
        sequence = self._sequence(axes)
        kept = self.options.kept(sequence)
        arrays = {part: array[sequence] for part, array in arrays.items()}
        if kept is not None:
            arrays = {part: array[:, kept] for part, array in arrays.items()}
        numbers: dict[str, Any] = {
            "key_heads": raw.numbers.get("keys", ()),
            "query_heads": raw.numbers.get("queries", ()),
        }
        layer = Layer(index, **arrays, **numbers)
        check_finite(layer, self.options.of_tokens(sequence).get("tokens"))
        return regrouped(layer) if cycles else layer

    def _output(self, index: int, layout: str, arrays: dict[str, Any]) -> Numbers:
        heads, width = arrays.get("queries", arrays["keys"]).shape[1], arrays.get("values", arrays["keys"]).shape[-1]
        output = self.raw[index].parts["output"]
        sizes = layouts.sizes(layout, output.shape, {"h": heads, "d": width})
        if sizes is None:
            raise ValueError(f"the output of layer {index} has shape {output.shape}, layout {layout} does not fit")
        return layouts.arrange(output.read(), layout, sizes)


def _batch(fitted: dict[str, Sizes]) -> int:
    return max((sizes.get("b", 1) for sizes in fitted.values()), default=1)


def _told(found: Confirmation) -> tuple[str, ...]:
    notes = [f"confirmed, error {found.error:.1e}: {found.variant}"]
    notes += [f"the output does not rule out {trial}" for trial in found.also]
    return tuple(notes)
