"""The columns of the table of results: what each means, and its unit."""

import inspect
from typing import NamedTuple

from docstrings import field_texts
from public_names import choices

from capmem import metrics
from capmem.catalogue import GROUPS
from capmem.results import METRICS


class Column(NamedTuple):
    """A column: its name, what it means, its unit (empty: a name or a text)."""

    name: str
    meaning: str
    unit: str


UNITS = {
    "relative_squared_error": "fraction of the values' power",
    "scale_optimal_error": "fraction of the values' power, 0 to 1",
    "cosine_similarity": "-1 to 1",
    "signal_to_noise": "ratio of powers",
    "top1_accuracy": "fraction of pairs, 0 to 1",
}
ROW = [
    Column("point", "The sweep point: a hash of all settings but num_pairs and trials. A file of keys counts by its "
           "content.", ""),
    Column("num_pairs", "N: how many pairs were written when the memory was read.", "pairs"),
    Column("trial", "The number of the repetition, from 0.", ""),
    Column("status", "ok, skipped (such keys cannot be so many: see reason) or failed (see error). Averages take ok "
           "only.", ""),
    Column("reason", "Why a row was skipped.", ""),
    Column("error", "What went wrong in a row that failed, in one line.", ""),
    Column("traceback", "Where in the code it went wrong.", ""),
]  # fmt: skip
COUNTS = [
    Column("num_queries", "How many pairs were read: all, or a sample where num_pairs is above max_queries.", "pairs"),
    Column("num_scored", "How many of them count: pairs whose key was written again later do not.", "pairs"),
    Column("codebook_size", "How many codewords top-1 competed against.", "codewords"),
    Column("nonpositive_denominators", "Denominators of a normalised read-out that were not positive.", "reads"),
    Column("zero_denominators", "Those among them that were exactly zero; they read as 0.", "reads"),
    Column("zero_keys", "Keys, or their features, without norm; they stay zero, so nothing is stored.", "keys"),
    Column("zero_queries", "The same of queries.", "reads"),
    Column("nonfinite_retrieved", "Values that came back with nan or inf in them.", "reads"),
    Column("warning", "Which kinds of warning the map or the rule gave.", ""),
    Column("theory_unavailable", "Why there is no prediction.", ""),
]
COST = [
    Column("feature_dim", "D, the width of the features; missing for a memory without features.", "numbers"),
    Column("state_elements", "How many numbers the state holds.", "numbers"),
    Column("state_bytes", "How many bytes it takes in the format that it is held in.", "bytes"),
    Column("elapsed_s", "Time since the checkpoint before; a share of it, where several trials ran as one.", "seconds"),
    Column("format", "Version of the table's columns. Folders of another one are refused, not mixed.", ""),
    Column("numerics", "capmem.NUMERICS, raised when the same settings give other numbers.", ""),
]
AGE = [
    Column("age_bin", "The bin of age, from 0: the newest pairs.", ""),
    Column("age_low", "The least age in the bin: how many pairs were written after that one.", "pairs"),
    Column("age_high", "The largest age in the bin.", "pairs"),
    Column("num_scored", "How many pairs of the bin count; weights for averages over bins.", "pairs"),
]
SETTINGS = [
    Column("memory", "linear, or softmax, which keeps every pair.", ""),
    Column("feature_map", "The map phi, by its name in configurations.", ""),
    Column("write_rule", "How a pair enters the state.", ""),
    Column("readout", "How a query leaves the state.", ""),
    Column("key_center", "mean: one fixed vector, estimated from 4,096 further keys of the law (all rows of a file), "
           "is taken from every key. none: keys are as they are.", ""),
    Column("key_norm", "What every key is divided by: none, l2 (its length) or sum (the sum of its coordinates).", ""),
    Column("key_scale", "What keys are multiplied by after that: a number, or sqrt_dim, the root of d.", ""),
    Column("feature_center", "As key_center, of features.", ""),
    Column("feature_norm", "As key_norm, of features.", ""),
    Column("state_dtype", "The format that the state is held in; missing: that of dtype.", ""),
    Column("round_every", "After so many pairs the state was rounded to that format.", "pairs"),
    Column("keys", "The law that keys were drawn from.", ""),
    Column("values", "The law that values were drawn from.", ""),
    Column("key_dim", "The key dimension d.", "coordinates"),
    Column("value_dim", "The value dimension v.", "coordinates"),
    Column("query_cosine", "The cosine of each cue with the stored key; 1: asked with the key itself.", "-1 to 1"),
    Column("codebook_asked", "The setting codebook_size; missing: top-1 competes against the stored values.",
           "codewords"),
    Column("max_queries", "Above so many pairs, a sample of them was read.", "pairs"),
    Column("dtype", "What the memory computed in.", ""),
    Column("backend", "The library that it computed with, where that is not NumPy.", ""),
    Column("device", "Where, for such a library.", ""),
    Column("age_bins", "How many bins the table by age has, if there is one.", "bins"),
    Column("redraw_map", "Whether a random feature map had another seed in each trial.", ""),
    Column("seed", "The seed of all draws; a draw depends on it, on the trial and on nothing else.", ""),
]  # fmt: skip


def sections() -> dict[str, list[Column]]:
    """Return all columns, by what they tell."""
    return {
        "Which row it is": ROW,
        "Settings": SETTINGS,
        "Fields of a choice": fields(),
        "What was measured": measured(),
        "What theory says": predicted(),
        "What was counted": COUNTS,
        "What it cost, and which version made it": COST,
        "Rows by age": AGE,
    }


def fields() -> list[Column]:
    """Return ``group.field`` for the fields that a choice of the group has, as its class tells of them."""
    found: dict[str, dict[str, list[str]]] = {}
    for group, registry in GROUPS.items():
        for choice, cls in choices(registry).items():
            if (group, choice) != ("memory", "linear"):  # its fields are settings of their own
                for name, told in field_texts(cls).items():
                    found.setdefault(f"{group}.{name}", {}).setdefault(told, []).append(choice)
    told_of = {
        name: " ".join(f"{', '.join(names)}: {text}".rstrip() for text, names in texts.items())
        for name, texts in found.items()
    }
    digests = [
        Column(f"{what}.sha256", f"array, heads: the SHA-256 of the {what}, whatever file they came from.", "")
        for what in ("keys", "values")
    ]
    return [*(Column(name, text, "") for name, text in told_of.items()), *digests]


def measured() -> list[Column]:
    """Return the metrics."""
    told = {name: " ".join(inspect.getdoc(getattr(metrics, name)).split("\n\n")[0].split()) for name in METRICS}
    return [
        Column(name, text.replace("Return the", "The").replace("Return ", ""), UNITS[name])
        for name, text in told.items()
    ]


def predicted() -> list[Column]:
    """Return the predictions of the metrics."""
    return [
        Column(f"theory_{name}", f"The prediction of {name}; missing where there is none.", UNITS[name])
        for name in METRICS
    ]
