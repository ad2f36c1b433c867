"""What the gallery shows: an entry for each analysis, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capmem.gallery.told import Told, capacities, printed


@dataclass(frozen=True)
class Entry:
    """One analysis of the gallery.

    Parameters
    ----------
    name : str
        Of its work folder, and of its place on the page.
    title : str
        Its heading.
    analysis : str
        ``python -m analyses.<analysis>`` runs it.
    pictures : mapping
        Name of a picture in the gallery -> name of the figure in the output folder; README shows the first. An
        analysis without figures has its finding alone.
    overrides : tuple of str
        Of its command line.
    told : callable
        (what it printed, its output folder) -> the finding, on one line.
    sentences : int
        How many sentences of the finding README quotes.
    fine : tuple of int
        Exit codes with which there is a finding all the same: an analysis may tell by one that numbers differ.
    resumes : bool
        Whether it takes a folder that holds its own results; else it starts in an empty one.
    """

    name: str
    title: str
    analysis: str
    pictures: Mapping[str, str]
    overrides: tuple[str, ...] = ()
    told: Told = printed()
    sentences: int = 1
    fine: tuple[int, ...] = (0,)
    resumes: bool = True

    @property
    def command(self) -> str:
        """What a reader types."""
        return " ".join([f"capmem-{self.analysis.replace('_', '-')}", *self.overrides])


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "worked_example",
        "The idea in three pairs",
        "worked_example",
        {"worked_example": "worked_example"},
        sentences=4,
        resumes=False,
    ),
    Entry(
        "sweep",
        "Error as pairs are added",
        "sweep",
        {"interference_curves": "interference_curves", "sweep_heatmap": "heatmap"},
        told=capacities("keys.correlation", "correlation {:g}".format),
    ),
    Entry("heatmap", "Error over key dimension and pairs", "heatmap", {"heatmap": "heatmap"}),
    Entry(
        "interference",
        "What mixes into a value",
        "interference",
        {
            "interference_error": "error",
            "interference_signal": "signal",
            "interference_top1": "top1",
            "interference_age": "age",
        },
    ),
    Entry(
        "capacity",
        "How many pairs",
        "capacity",
        {"capacity_curves": "capacity_curves", "capacity_per_byte": "capacity_per_byte"},
        told=printed("At d = "),
    ),
    Entry(
        "correlation",
        "Keys and features that share a mean",
        "correlation",
        {"correlation": "correlation", "mean_feature": "mean_feature"},
    ),
    Entry(
        "feature_maps",
        "Feature maps side by side",
        "feature_maps",
        {"feature_maps": "feature_maps", "softmax_fit": "softmax_fit"},
    ),
    Entry(
        "write_rules",
        "Write rules on one stream",
        "write_rules",
        {
            "write_rules_load": "load",
            "write_rules_age": "age",
            "write_rules_overwrite": "overwrite",
            "write_rules_noisy_cues": "noisy_cues",
        },
    ),
    Entry(
        "memory_growth",
        "How a memory fills",
        "memory_growth",
        {"memory_growth": "memory_growth", "spectrum": "spectrum", "gram": "gram"},
    ),
    Entry(
        "softmax_vs_linear",
        "A cache that grows against a state that does not",
        "softmax_vs_linear",
        {"softmax_vs_linear": "softmax_vs_linear"},
    ),
    Entry(
        "stability",
        "Where it is unstable",
        "stability",
        {"stability": "stability", "precision": "precision", "kernel_variance": "kernel_variance"},
    ),
    Entry("complexity", "What attention costs", "complexity", {"complexity": "complexity"}),
    Entry(
        "real_heads",
        "Keys of real heads",
        "sweep",
        {"real_heads": "interference_curves"},
        overrides=("+experiment=real_heads",),
        told=capacities("key_center", {"none": "keys as they are", "mean": "keys centred"}.__getitem__),
    ),
    Entry(
        "heads",
        "How much a model's heads can remember",
        "heads",
        {
            "head_dimensions": "head_dimensions",
            "head_recall": "head_recall",
            "head_fit": "head_fit",
            "head_swaps": "head_swaps",
            "head_rules": "head_rules",
        },
        overrides=("path=samples/minilm",),
        told=printed("Tokens remembered", others=False),
    ),
    Entry("theory_check", "Theory against simulation", "theory_check", {"theory_check": "theory_check"}),
    Entry(
        "replicate",
        "Published numbers beside ours",
        "replicate",
        {
            "replicate_schlag2021": "schlag2021",
            "replicate_ramsauer2021": "ramsauer2021",
            "replicate_cabannes2024": "cabannes2024",
            "replicate_nichani2024": "nichani2024",
            "replicate_zhong2025": "zhong2025",
            "replicate_arora2024": "arora2024",
            "replicate_classical": "classical",
            "replicate_feature_cosines": "feature_cosines",
        },
        told=printed(r"\d+ numbers: "),
        fine=(0, 1),
    ),
    Entry("benchmark", "How fast it is", "benchmark", {}, sentences=2),
)
