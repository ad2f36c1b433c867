"""Capture: queries, keys, values and outputs of attention layers while a PyTorch model runs; hooks go in the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal

import numpy as np

from capmem.heads.container import Heads
from capmem.heads.loading import from_arrays
from capmem.heads.modules import KINDS, Hooks, Site, sites
from capmem.heads.optional import require_module
from capmem.schema import require, unknown


class Capture:
    """A model whose attention layers are listened to within a ``with`` block; see :func:`capture`."""

    def __init__(self, model: Any, layers: Iterable[int] | None = None) -> None:
        require_module("torch", "to capture the heads of a model")
        self.model = model
        found = sites(model)
        if not found:
            known = "; ".join(kind.describes for kind in KINDS)
            raise ValueError(f"{type(model).__name__} has no attention layer of a known kind: {known}")
        wanted = list(found) if layers is None else list(layers)
        for index in wanted:
            if index not in found:
                raise ValueError(unknown("layer", index, map(str, found)))
        require(bool(wanted), "layers", wanted, "at least one layer")
        self.sites: dict[int, Site] = {index: found[index] for index in sorted(wanted)}
        self.inputs: dict[str, Any] = {}
        self._hooks = Hooks()

    def __enter__(self) -> Capture:
        require(not self._hooks.active, "capture", "one that is entered", "entered once")
        for site in self.sites.values():
            site.reset()
        try:
            self._hooks.before(self.model, self._keep_inputs)
            for site in self.sites.values():
                site.install(self._hooks)
        except BaseException:
            self._hooks.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.remove()

    def heads(
        self,
        rotary: Literal["after", "before"] = "after",
        tokenizer: Any = None,
        mask: Any = None,
        **options: Any,
    ) -> Heads:
        """Return what was captured, confirmed by the layers' own outputs.

        Parameters
        ----------
        rotary : {"after", "before"}
            Queries and keys after the rotation by position (what attention uses, and a linear state would hold)
            or before; the same for models without one.
        tokenizer : optional
            Of Hugging Face: gives the text of every token, and which are special.
        mask : array (B, T), optional
            1 for tokens, 0 for padding (default: the attention_mask that the model was called with).
        **options
            As in :func:`~capmem.heads.from_arrays`: sequence, licence, text, model, ids, tokens, special, ...

        Raises
        ------
        ValueError
            If the model did not run once, or the outputs are not reproduced to rounding.
        """
        require(rotary in ("after", "before"), "rotary", rotary, "'after' or 'before'")
        for index, site in self.sites.items():
            if site.runs != 1:
                raise ValueError(f"layer {index} ran {site.runs} times while it was captured; it has to run once")
        options = self._known(options, mask, tokenizer)
        scales = {site.scale for site in self.sites.values()}
        if len(scales) == 1 and "scale" not in options:
            options["scale"] = scales.pop()
        rotates = any(site.rotated for site in self.sites.values())
        attended = self._arrays(after=True)
        heads = from_arrays(**attended, layout="bhtd", rotary="after" if rotates else "none", **options)
        if rotary == "after" or not rotates:
            return heads
        before = {part: arrays for part, arrays in self._arrays(after=False).items() if part != "output"}
        told = options | {"scale": heads.metadata.scale, "causal": heads.metadata.causal}
        plain = from_arrays(**before, layout="bhtd", rotary="before", **told)
        note = f"taken before the rotary embedding; after it the outputs come out, error {heads.metadata.error:.1e}"
        return plain.noting(note)

    def _keep_inputs(self, inputs: Mapping[str, Any]) -> None:
        ids, mask = inputs.get("input_ids", inputs.get("0")), inputs.get("attention_mask")
        given = {"ids": None if ids is None or ids.is_floating_point() else ids, "mask": mask}
        self.inputs = {name: tensor.detach().cpu().clone() for name, tensor in given.items() if tensor is not None}

    def _known(self, options: dict[str, Any], mask: Any, tokenizer: Any) -> dict[str, Any]:
        known = {"model": type(self.model).__name__} | self.inputs | ({} if mask is None else {"mask": mask})
        if tokenizer is not None and "ids" in known:
            row = np.asarray(known["ids"])[options.get("sequence") or 0].tolist()
            known["tokens"] = tokenizer.convert_ids_to_tokens(row)
            known["special"] = np.isin(row, tokenizer.all_special_ids)
        return known | options

    def _arrays(self, after: bool) -> dict[str, dict[int, Any]]:
        names = {"queries": "queries", "keys": "keys", "values": "values", "output": "output"}
        if after:
            names |= {"queries": "rotated_queries", "keys": "rotated_keys"}
        return {
            part: {i: site.taken.get(name, site.taken[part]) for i, site in self.sites.items()}
            for part, name in names.items()
        }


def capture(model: Any, layers: Iterable[int] | None = None) -> Capture:
    """Listen to the attention of a PyTorch model: ``with capture(model) as captured: model(**inputs)``.

    Afterwards ``captured.heads()`` gives the heads. Works with Hugging Face models, in their eager and sdpa
    implementations, and with ``nn.MultiheadAttention``. Hooks are removed on leaving the block, after errors too.

    Parameters
    ----------
    model : torch.nn.Module
        A model with attention layers of a known kind.
    layers : iterable of int, optional
        Their numbers (default: all).

    Raises
    ------
    ValueError
        If there is no attention layer of a known kind, or a layer does not exist.
    """
    return Capture(model, layers)
