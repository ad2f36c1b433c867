"""Attention modules of PyTorch: how each kind is recognised, and where its queries, keys and values show."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from capmem.heads.optional import require_module

ROTATION = "apply_rotary_pos_emb"  # of Hugging Face's modelling files: (queries, keys, ...) -> both, rotated


class Hooks:
    """All that was hung into a model, to be taken out again."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    @property
    def active(self) -> bool:
        """Whether anything hangs."""
        return bool(self._undo)

    def before(self, module: Any, see: Callable[[Mapping[str, Any]], None]) -> None:
        """Show the keyword arguments of every call of a module, positional ones under their numbers."""

        def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            see({str(i): arg for i, arg in enumerate(args)} | kwargs)

        self._undo.append(module.register_forward_pre_hook(hook, with_kwargs=True).remove)

    def after(self, module: Any, see: Callable[[Any], None]) -> None:
        """Show what every call of a module returns."""

        def hook(_: Any, args: tuple[Any, ...], result: Any) -> None:
            see(result)  # what a hook returns would take the place of the result

        self._undo.append(module.register_forward_hook(hook).remove)

    def swap(self, owner: Any, name: str, replacement: Any) -> None:
        """Put something else in the place of an attribute."""
        original = getattr(owner, name)
        setattr(owner, name, replacement)
        self._undo.append(lambda: setattr(owner, name, original))

    def finally_(self, undo: Callable[[], Any]) -> None:
        """Do something on removal."""
        self._undo.append(undo)

    def remove(self) -> None:
        """Take all out, the last first."""
        while self._undo:
            self._undo.pop()()


@dataclass(eq=False)
class Site:
    """An attention module, and the tensors (B, H, T, d) that it showed while it ran."""

    describes: ClassVar[str]
    module: Any
    taken: dict[str, Any] = field(default_factory=dict)
    runs: int = 0

    @property
    def rotated(self) -> bool:
        """Whether queries and keys were rotated by position."""
        return "rotated_keys" in self.taken

    @property
    def scale(self) -> float | None:
        """What the module multiplies scores by, if it says so."""
        given = getattr(self.module, "scaling", None)
        return float(given) if isinstance(given, float | int) else None

    def reset(self) -> None:
        """Forget what was taken."""
        self.taken.clear()
        self.runs = 0

    def install(self, hooks: Hooks) -> None:
        """Hang hooks into the module."""
        raise NotImplementedError

    def keep(self, name: str, tensor: Any) -> None:
        """Keep a copy of a tensor (B, H, T, d), detached from the graph."""
        self.taken[name] = tensor.detach().to("cpu", copy=True)


@dataclass(eq=False)
class Projected(Site):
    """Hugging Face: linear layers for queries, keys and values, side by side in one module."""

    describes = "modules with q_proj, k_proj, v_proj and o_proj, or query, key and value (Hugging Face)"
    names: tuple[str, ...] = ()

    def install(self, hooks: Hooks) -> None:
        """Listen to the projections, to the rotation, and to what goes into the output projection."""
        queries, keys, values, *projection = (getattr(self.module, name) for name in self.names)
        for part, layer in (("queries", queries), ("keys", keys), ("values", values)):
            hooks.after(layer, partial(self._keep_part, part))
        self._listen_to_rotation(hooks)
        if projection:
            hooks.before(projection[0], lambda inputs: self._keep_output(inputs["0"]))
        else:
            hooks.after(self.module, lambda result: self._keep_output(result[0]))

    def _keep_part(self, part: str, flat: Any) -> None:
        self.keep(part, flat.unflatten(-1, (-1, self._width())).transpose(1, 2))

    def _width(self) -> int:
        for name in ("head_dim", "attention_head_size"):
            if isinstance(getattr(self.module, name, None), int):
                return int(getattr(self.module, name))
        for name in ("num_heads", "n_heads", "num_attention_heads"):
            if isinstance(getattr(self.module, name, None), int):
                return int(getattr(self.module, self.names[0]).out_features // getattr(self.module, name))
        raise ValueError(f"{type(self.module).__name__} does not say how many heads it has, or how wide they are")

    def _keep_output(self, flat: Any) -> None:
        self.runs += 1
        self.keep("output", flat.unflatten(-1, (self.taken["queries"].shape[1], -1)).transpose(1, 2))

    def _listen_to_rotation(self, hooks: Hooks) -> None:
        """Stand in for the rotation while this module runs; its function belongs to the file, not to the module."""
        owner = sys.modules[type(self.module).__module__]
        if not hasattr(owner, ROTATION):
            return

        def enter(_: Any) -> None:
            original = getattr(owner, ROTATION)

            def rotate(*args: Any, **kwargs: Any) -> Any:
                rotated = original(*args, **kwargs)
                if isinstance(rotated, tuple):
                    self.keep("rotated_queries", rotated[0])
                    self.keep("rotated_keys", rotated[1])
                return rotated

            inner.swap(owner, ROTATION, rotate)

        inner = Hooks()
        hooks.before(self.module, enter)
        hooks.after(self.module, lambda _: inner.remove())
        hooks.finally_(inner.remove)


@dataclass(eq=False)
class Packed(Site):
    """PyTorch's own module, whose projections are functions: they are done again, and its outputs are overheard."""

    describes = "nn.MultiheadAttention"

    def install(self, hooks: Hooks) -> None:
        """Listen to the inputs, and to what goes into the output projection."""
        torch = require_module("torch", "to capture the heads of a model")
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # it does all in one function, and shows nothing
        hooks.finally_(lambda: torch.backends.mha.set_fastpath_enabled(fast))
        inner = Hooks()

        def enter(inputs: Mapping[str, Any]) -> None:
            self._project(torch, inputs)
            inner.swap(torch.nn.functional, "linear", self._overheard(torch.nn.functional.linear))

        hooks.before(self.module, enter)
        hooks.after(self.module, lambda _: inner.remove())
        hooks.finally_(inner.remove)

    def _project(self, torch: Any, inputs: Mapping[str, Any]) -> None:
        module = self.module
        if module.bias_k is not None or module.add_zero_attn:
            raise ValueError("nn.MultiheadAttention with add_bias_kv or add_zero_attn has keys of no token")
        given = [inputs.get(name, inputs.get(str(i))) for i, name in enumerate(("query", "key", "value"))]
        if module.in_proj_weight is None:
            weights = [module.q_proj_weight, module.k_proj_weight, module.v_proj_weight]
        else:
            weights = module.in_proj_weight.chunk(3)
        biases = [None] * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
        for part, x, weight, bias in zip(("queries", "keys", "values"), given, weights, biases, strict=True):
            self.keep(part, self._split(torch.nn.functional.linear(self._batched(x), weight, bias)))

    def _batched(self, x: Any) -> Any:
        """Return an input as (B, T, E)."""
        if x.dim() == 2:
            return x[None]
        return x if self.module.batch_first else x.transpose(0, 1)

    def _split(self, flat: Any) -> Any:
        return flat.unflatten(-1, (self.module.num_heads, -1)).transpose(1, 2)

    def _overheard(self, linear: Callable[..., Any]) -> Callable[..., Any]:
        """Return a stand-in for the function of linear layers, which keeps what goes into the output projection."""

        def stand_in(x: Any, weight: Any, *bias: Any, **named: Any) -> Any:
            if weight is self.module.out_proj.weight:
                self._keep_output(x)
            return linear(x, weight, *bias, **named)

        return stand_in

    def _keep_output(self, flat: Any) -> None:
        """Keep the output before its projection: (T B, E), the batch inside."""
        self.runs += 1
        batch, heads, count, width = self.taken["queries"].shape
        self.keep("output", flat.reshape(count, batch, heads, width).permute(1, 2, 0, 3))


PROJECTIONS = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("q_proj", "k_proj", "v_proj", "out_proj"),
    ("q_lin", "k_lin", "v_lin", "out_lin"),
    ("query", "key", "value"),
)

KINDS: tuple[type[Site], ...] = (Packed, Projected)


def site(module: Any) -> Site | None:
    """Return a module as a site, or None if it is no attention of a known kind."""
    torch = require_module("torch", "to capture the heads of a model")
    if isinstance(module, torch.nn.MultiheadAttention):
        return Packed(module)
    children = dict(module.named_children())
    for names in PROJECTIONS:
        if all(isinstance(children.get(name), torch.nn.Module) for name in names):
            return Projected(module, names=names)
    return None


def sites(model: Any) -> dict[int, Site]:
    """Return the attention modules of a model by the number in their name, or, if two have one, by their order."""
    found = [(name, held) for name, module in model.named_modules() if (held := site(module)) is not None]
    numbers = [int(digits[-1]) if (digits := re.findall(r"\d+", name)) else 0 for name, _ in found]
    if len(set(numbers)) < len(numbers):
        numbers = list(range(len(found)))
    return {number: held for number, (_, held) in sorted(zip(numbers, found, strict=True), key=lambda pair: pair[0])}
