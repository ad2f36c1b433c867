"""Sections of analyses that are no studies of the frame: each from what its folder holds, nothing computed again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capmem import capacity_tables, figures, heads_analysis, worked_example
from capmem.capacity_points import HINTS
from capmem.capacity_report import doubts, findings, laws, memories_of
from capmem.capacity_study import drawings as capacity_drawings
from capmem.capacity_study import named
from capmem.heads_analysis import tables as heads_tables
from capmem.heads_analysis.drawings import drawings as heads_drawings
from capmem.heads_analysis.drawings import shown_head
from capmem.heads_analysis.told import sentences
from capmem.replications import REPLICATIONS
from capmem.replications.application import Replicate
from capmem.replications.measurement import with_quoted
from capmem.replications.stored import stored as stored_measurements
from capmem.replications.verdict import Verdict, count
from capmem.report.section import Listing, Section, drawn
from capmem.schema import construct

if TYPE_CHECKING:
    import pandas as pd

Config = dict[str, Any]


class Analysis(NamedTuple):
    """An analysis: settings that no other one has, and the sections of a folder, given its configurations."""

    marks: frozenset[str]
    sections: Callable[[Path, Sequence[Config]], Iterator[Section]]


def named_analysis(keys: set[str]) -> str | None:
    """Return the analysis whose settings have these names, None if it is none of these."""
    return next((name for name, analysis in ANALYSES.items() if analysis.marks <= keys), None)


def each(common: Config, axes: dict[str, list[Any]]) -> list[Config]:
    """Return a configuration for each combination of swept values."""
    return [common | dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]


def _capacity(folder: Path, _: Sequence[Config]) -> Iterator[Section]:
    for table, needed in map(named, capacity_tables.stored(folder)):
        rows = [[name, str(law)] for name, law in laws(table)]
        listings = [_capacities(table), Listing("N* along the key dimension", ["memory", "law"], rows)]
        listings += [_needed(needed)] if len(needed) else []
        found = list(findings(table, needed))
        yield Section("Capacity", table, found, list(doubts(table)), [x for x in listings if x.rows],
                      drawn(capacity_drawings(table)), {"required_dim": needed} if len(needed) else {})  # fmt: skip


def _capacities(table: pd.DataFrame) -> Listing:
    axes = [*memories_of(table), "key_dim"]
    heads = [*axes, "N*", "closed form", "state (bytes)"]
    rows = [[*(row[axis] for axis in axes), row["shown"], row["theory"], row["state_bytes"]]
            for row in _shown(table).to_dict("records")]  # fmt: skip
    return Listing(f"Pairs held, N*: {table['criterion'].iloc[0]}", heads, rows)


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with N* and its closed form in words."""
    from capmem.capacity import CapacityEstimate

    held = [CapacityEstimate(r["pairs"], r["low"], r["high"], bool(r["bracketed"])) for r in table.to_dict("records")]
    theory = ["-" if pairs != pairs else f"{pairs:.4g}" for pairs in table["theory_pairs"]]
    return table.assign(shown=list(map(str, held)), theory=theory)


def _needed(needed: pd.DataFrame) -> Listing:
    axes = [*(axis for axis in memories_of(needed) if axis in needed), "num_pairs"]
    rows = [[row[column] for column in (*axes, "shown")] for row in needed.to_dict("records")]
    return Listing(f"Least key dimension for N pairs with {needed['criterion'].iloc[0]}", [*axes, "d"], rows)


def _heads(folder: Path, configs: Sequence[Config]) -> Iterator[Section]:
    for config in configs:
        tables = heads_tables.stored(construct(heads_analysis.HeadsAnalysis, config), folder)
        if tables is None:
            continue
        head = shown_head(list(zip(tables.heads["layer"], tables.heads["head"], strict=True)), None, tables.heads)
        others = {name: frame for name, frame in tables._asdict().items() if name != "heads" and len(frame)}
        yield Section("Attention heads", tables.heads, sentences(tables), more=others,
                      drawings=drawn(heads_drawings(tables, head).items()))  # fmt: skip


def _replicate(folder: Path, configs: Sequence[Config]) -> Iterator[Section]:
    settings = [construct(Replicate, {f.name: c[f.name] for f in fields(Replicate)}) for c in configs]
    for asked in dict.fromkeys(one for s in settings for one in s.asked()):
        measured, study = stored_measurements(asked, folder), REPLICATIONS[asked.study]
        if measured is None:
            continue
        table = with_quoted(measured, study.quoted())
        verdicts = list(study.judge(table))
        counted = count(verdict.verdict for verdict in verdicts)
        told = [f"{study.source}.", f"Checked: {study.checked}.", f"{counted.capitalize()}."]
        names = list(Verdict.__dataclass_fields__)
        rows = [[_short(vars(verdict)[name]) for name in names] for verdict in verdicts]
        listing = Listing("Published numbers beside ours", names, rows)
        yield Section(f"Replication: {study.name}", table, told, listings=[listing],
                      drawings=drawn([(study.name, study.draw(table))]))  # fmt: skip


def _short(value: Any) -> str:
    return ("-" if value != value else f"{value:.4g}") if isinstance(value, float) else str(value)


def _worked_example(folder: Path, configs: Sequence[Config]) -> Iterator[Section]:
    import pandas as pd

    for config in configs:
        example = construct(worked_example.ThreePairs, config)
        grid = figures.worked_example(example)
        yield Section("Worked example", pd.DataFrame(grid.table), [worked_example.tell(example)],
                      drawings=drawn([("worked_example", grid)]))  # fmt: skip


ANALYSES = {
    "capacity": Analysis(frozenset(HINTS), _capacity),
    "heads": Analysis(frozenset(f.name for f in fields(heads_analysis.HeadsAnalysis)), _heads),
    "replicate": Analysis(frozenset(f.name for f in fields(Replicate)), _replicate),
    "worked_example": Analysis(frozenset(f.name for f in fields(worked_example.ThreePairs)), _worked_example),
}
