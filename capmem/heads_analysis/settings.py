"""What is asked of the heads of a model: the settings of the analysis, checked, and the file that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from capmem.heads_analysis.arrays import Floats, unit
from capmem.heads_analysis.maps import MAPS, RULES
from capmem.schema import check_fields, require, unknown
from capmem.studies import at_least

GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SAID = ("layout", "scale", "causal")


@dataclass(frozen=True)
class HeadsAnalysis:
    """Which heads are looked at, and how.

    Parameters
    ----------
    path : str
        A file or folder that :func:`capmem.heads.load` reads.
    layers, heads : tuple of int
        Which layers, and which key heads of each; none named: all.
    layout, num_heads, key_heads, scale, causal : optional
        What a file does not say itself; see :func:`capmem.heads.from_arrays`.
    max_tokens : int
        Of a longer sequence so many tokens are looked at, from its beginning.
    num_pairs : tuple of int
        N: a memory is read after so many pairs; those beyond the tokens that there are, are left out.
    trials, seed : int
        Random subsets of each size; draws depend on seed and trial alone.
    accuracy, error : float
        What counts as remembered: top-1 accuracy at least, scale-optimal error at most.
    similarity : {"cosine", "dot"}
        How top-1 scores codewords. Values of a model differ in norm: by inner product a value of small norm is
        never found, not even if it is retrieved exactly.
    maps, rule_maps : tuple of str
        Feature maps that are fitted to the head's own attention, and those that the write rules are compared on;
        names in :data:`~capmem.heads_analysis.maps.MAPS`.
    decay : float
        The rate of the rules that forget.
    random_draws : int
        Draws of a random feature map.
    worst_pairs, gram_tokens : int
        How many of the worst pairs are listed, and how many tokens the Gram matrix has.
    """

    path: str | None = None
    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    layout: str | None = None
    num_heads: int | None = None
    key_heads: int | None = None
    scale: float | None = None
    causal: bool | None = None
    max_tokens: int = 1024
    num_pairs: tuple[int, ...] = GRID
    trials: int = 16
    seed: int = 0
    accuracy: float = 0.9
    error: float = 0.5
    similarity: Literal["cosine", "dot"] = "cosine"
    maps: tuple[str, ...] = tuple(MAPS)
    rule_maps: tuple[str, ...] = RULES
    decay: float = 0.99
    random_draws: int = 4
    worst_pairs: int = 10
    gram_tokens: int = 24

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "num_pairs", "random_draws", "worst_pairs")
        at_least(self, 2, "trials", "gram_tokens")
        at_least(self, 8, "max_tokens")
        at_least(self, 0, "seed")
        for name in ("accuracy", "error", "decay"):
            require(0 < getattr(self, name) < 1, name, getattr(self, name), "a number between 0 and 1")
        for key in ("maps", "rule_maps"):
            for name in getattr(self, key):
                if name not in MAPS:
                    raise ValueError(unknown(key, name, map(repr, MAPS)))  # names hold commas
            require(bool(getattr(self, key)), key, [], "a list, not empty")

    def options(self) -> dict[str, Any]:
        """Return what is said of the file, as :func:`capmem.heads.load` takes it."""
        said = {name: getattr(self, name) for name in (*SAID, "key_heads")} | {"heads": self.num_heads}
        return {name: given for name, given in said.items() if given is not None}

    def checkpoints(self, tokens: int) -> list[int]:
        """Return the numbers of pairs for a head of so many tokens; the last one is all of them."""
        return sorted({n for n in self.num_pairs if n < tokens} | {tokens})

    def criteria(self) -> dict[str, tuple[str, float]]:
        """Return column of the curves -> metric and threshold, for each way to count what is remembered."""
        return {
            "top1_accuracy": ("top1_accuracy", self.accuracy),
            "top1_by_token": ("top1_accuracy", self.accuracy),
            "scale_optimal_error": ("scale_optimal_error", self.error),
        }

    def codebook(self, values: Floats) -> Floats:
        """Return what top-1 scores are taken with, from values (..., T, v)."""
        return unit(values) if self.similarity == "cosine" else values
