"""The capture application: a model reads a text, and the heads of its layers are confirmed and saved."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from capmem.heads.capturing import capture
from capmem.heads.container import Heads
from capmem.heads.models import Loaded, open_model
from capmem.heads.optional import require_module
from capmem.heads.report import describe, summary
from capmem.schema import check_fields, require

Suffix = Literal[".safetensors", ".npz"]


@dataclass(frozen=True)
class Task:
    """What to capture.

    Parameters
    ----------
    model : str
        minilm, smollm2, or the folder of a Hugging Face model.
    text : str
        A file of text; white space is collapsed.
    start : str, optional
        The word from which on it is read.
    max_tokens : int
        How many tokens are read at most, special ones included.
    layers : "all" or list of int
        Which layers are kept.
    rotary : {"after", "before"}
        Queries and keys after or before the rotation by position.
    special : bool
        Whether special tokens stay in.
    out : str, optional
        The folder to write to (default: the run's own).
    file_type : {".safetensors", ".npz"}
        The kind of file.
    """

    model: str | None = None
    text: str | None = None
    start: str | None = None
    max_tokens: int = 256
    layers: Literal["all"] | tuple[int, ...] = "all"
    rotary: Literal["after", "before"] = "after"
    special: bool = True
    out: str | None = None
    file_type: Suffix = ".safetensors"

    def __post_init__(self) -> None:
        check_fields(self)
        needed = {"model": "minilm, smollm2, or the folder of a Hugging Face model", "text": "a file of text"}
        for name, told in needed.items():
            if getattr(self, name) is None:
                raise ValueError(f"{name} must be given ({told})")
        require(self.max_tokens >= 2, "max_tokens", self.max_tokens, "an integer of at least 2")

    def file(self, folder: Path) -> Path:
        """Return the file that the heads go to."""
        name = Path(str(self.model)).name + ("_before_rotary" if self.rotary == "before" else "")
        return Path(self.out or folder) / f"{name}{self.file_type}"

    def passage(self) -> str:
        """Return the text, from `start` on, with every run of white space made one space.

        Raises
        ------
        ValueError
            If it cannot be read, or `start` is not in it.
        """
        try:
            text = Path(str(self.text)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error  # the whole error names the path again
            raise ValueError(f"text {self.text!r} cannot be read: {reason}") from None
        if self.start is not None and self.start not in text:
            raise ValueError(f"start {self.start!r} is not in {self.text}")
        return " ".join(text[text.index(self.start or "") :].split())


def run(task: Task, folder: Path) -> Path:
    """Capture, confirm, save and tell; return the file. What can be refused is refused before the model runs.

    Raises
    ------
    ValueError
        For what is not there: the text, a layer, a package; or if the layers' outputs are not reproduced.
    """
    path, passage = task.file(folder), task.passage()
    require(not path.exists(), "out", str(path), "a file that is not there: nothing is overwritten")
    loaded = open_model(str(task.model))
    heads = captured(loaded, task, passage)
    heads.save(path)
    print(describe(heads), *table(heads), f"Saved as {path}", sep="\n")
    return path


def captured(loaded: Loaded, task: Task, passage: str) -> Heads:
    """Return the heads of a model that has read a passage."""
    torch = require_module("torch", "to run a model")
    inputs = loaded.tokenizer(passage, truncation=True, max_length=task.max_tokens, return_tensors="pt")
    with torch.inference_mode(), capture(loaded.model, None if task.layers == "all" else task.layers) as listening:
        loaded.model(**_accepted(inputs))
    told = {"model": loaded.name, "licence": loaded.licence or None, "text": Path(str(task.text)).name}
    heads = listening.heads(task.rotary, loaded.tokenizer, **told)
    return heads if task.special else heads.without_special()


def table(heads: Heads) -> list[str]:
    """Return a line on the keys of every layer: medians over its heads, for each choice of tokens."""
    records = summary(heads)
    lines = ["layer  tokens left              tokens  mean cosine  effective dim  centred"]
    for index in heads.layers:
        for choice in dict.fromkeys(r["choice"] for r in records if r["layer"] == index):
            rows = [r for r in records if r["layer"] == index and r["choice"] == choice]
            mid = {
                name: statistics.median(r[name] for r in rows)
                for name in ("tokens", "mean_cosine", "effective_dim", "effective_dim_centred")
            }
            lines.append(
                f"{index:5d}  {choice + f' ({len(rows)} heads)':24s}  {mid['tokens']:6.0f}  {mid['mean_cosine']:11.2f}"
                f"  {mid['effective_dim']:13.1f}  {mid['effective_dim_centred']:7.1f}"
            )
    return lines


def _accepted(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: inputs[name] for name in ("input_ids", "attention_mask") if name in inputs}
