"""What the theory covers, as a table: maps, rules and read-outs against laws of keys; and why not the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from capmem.configuration import build_memory
from capmem.ensembles import KEYS
from capmem.feature_maps import FEATURE_MAPS
from capmem.readouts import READOUTS
from capmem.theory.base import TheoryUnavailable
from capmem.theory.predict import predict
from capmem.write_rules import WRITE_RULES

FILES = ("array", "heads")
KEY_DIM, VALUE_DIM, NUM_PAIRS = 32, 32, 24
FIELDS: dict[str, dict[str, Any]] = {  # a correlation as in the figures, and steps at which rules do not diverge
    "equicorrelated": {"correlation": 0.5},
    "delta": {"step_size": 0.02},
    "gated_delta": {"step_size": 0.02},
    "oja": {"step_size": 0.02},
}
NAMES = {
    "relative_squared_error": "raw error",
    "scale_optimal_error": "scale-optimal error",
    "cosine_similarity": "cosine",
    "signal_to_noise": "SNR",
    "top1_accuracy": "top-1",
}


class Cell(NamedTuple):
    """What is known of one memory on one law of keys."""

    kind: str  # "exact", "approximate" or "-": of the relative squared error, or of what there is
    missing: tuple[str, ...] = ()
    reason: str = ""


def coverage() -> str:
    """Return the table in Markdown, its notes, and the reasons for what is not covered."""
    laws = [name for name in KEYS.names() if name not in FILES]
    rows = {name: [_cell(memory, law) for law in laws] for name, memory in _memories()}
    notes: dict[tuple[str, ...], str] = {}
    lines = [f"| | {' | '.join(f'`{law}`' for law in laws)} |", "|---|" + "---|" * len(laws)]
    for names, cells in _grouped(rows):
        lines.append(f"| {names} | {' | '.join(_told(cell, notes) for cell in cells)} |")
    told = [f"{mark}: no {', '.join(NAMES[m] for m in missing)}." for missing, mark in notes.items()]
    return "\n".join([*lines, "", " ".join(told), "", *_reasons(rows)])


def _memories() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in FEATURE_MAPS.names():
        yield f"`{name}`", {"feature_map": name}
    for name in READOUTS.names():
        if name != "linear":
            for feature_map in ("identity", "relu"):
                yield f"`{feature_map}`, read-out `{name}`", {"feature_map": feature_map, "readout": name}
    for name in WRITE_RULES.names():
        if name != "hebbian":
            rule = {"name": name, **FIELDS.get(name, {})}
            for feature_map in ("identity", "relu"):
                yield f"`{feature_map}`, rule `{name}`", {"feature_map": feature_map, "write_rule": rule}
    yield "softmax memory", {"memory": "softmax"}


def _cell(memory: Mapping[str, Any], law: str) -> Cell:
    keys = KEYS.build({"name": law, **FIELDS.get(law, {})})
    try:
        found = predict(build_memory(memory), keys, KEY_DIM, VALUE_DIM, NUM_PAIRS)
    except TheoryUnavailable as error:
        return Cell("-", reason=str(error))
    first = next(iter(found.sources.values()))
    source = found.sources.get("relative_squared_error", first)
    missing = tuple(name for name in NAMES if name not in found.sources)
    return Cell("exact" if source.exact else "approximate", missing)


def _grouped(rows: Mapping[str, list[Cell]]) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the rows, those with equal cells as one."""
    groups: dict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = {}
    for name, cells in rows.items():
        groups.setdefault(tuple((c.kind, c.missing) for c in cells), []).append(name)
    for names in groups.values():
        yield "; ".join(names), rows[names[0]]


def _told(cell: Cell, notes: dict[tuple[str, ...], str]) -> str:
    short = {"exact": "exact", "approximate": "appr.", "-": "-"}[cell.kind]
    if not cell.missing:
        return short
    mark = notes.setdefault(cell.missing, "abcdefgh"[len(notes)])
    return f"{short} {mark}"


def _reasons(rows: Mapping[str, list[Cell]]) -> Iterator[str]:
    """Yield a line for each reason, with how many cells it leaves empty."""
    count = Counter(_general(cell.reason) for cells in rows.values() for cell in cells if cell.reason)
    yield "Why the others are not covered, and how many:"
    yield ""
    for reason, times in count.most_common():
        yield f"- {reason} ({times})"


def _general(reason: str) -> str:
    """Return a reason without the names of the one map, law or rule that it was given for."""
    for registry, word in ((FEATURE_MAPS, "such a map"), (KEYS, "such keys"), (WRITE_RULES, "such a rule")):
        for name in registry.names():
            reason = re.sub(rf"\b{registry[name].__name__}\b", word, reason)
    for kind in ("the feature map", "the map", "the write rule", "keys of the law"):
        reason = re.sub(rf"{kind} (?=such)", "", reason)
    return reason
