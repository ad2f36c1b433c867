"""What the capacity analysis tells: its tables as text, and its findings, every number taken from the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from capmem import capacity, results, tables
from capmem.catalogue import GROUPS
from capmem.studies.prose import wrapped

if TYPE_CHECKING:
    import pandas as pd

MEASURED = {
    "pairs", "low", "high", "bracketed", "bound", "method", "trials", "narrow", "source", "theory_pairs",
    "criterion", "state_elements", "state_bytes", "pairs_per_byte", "pareto", "num_pairs", "shown",
}  # fmt: skip
KNOWN = " (known error: "  # what stands between a formula and what is known of it
FOLLOWS = ("feature_dim", "value_dim")  # from key_dim and the map, unless they vary at one of these


def axes_of(table: pd.DataFrame) -> list[str]:
    """Return the settings that vary in a table of capacities, without those that follow from the others."""
    axes = results.varying(table.drop(columns=[c for c in table.columns if c in MEASURED]))
    for name in FOLLOWS:
        others = [axis for axis in axes if axis not in FOLLOWS]
        alone = not others or (table.groupby(others, dropna=False)[name].nunique(dropna=False) == 1).all()
        axes = [axis for axis in axes if axis != name] if alone and name in axes else axes
    return axes


def memories_of(table: pd.DataFrame) -> list[str]:
    """Return the axes other than the key dimension, at least one: what tells the memories of a table apart."""
    usual = "feature_map" if "feature_map" in table and table["feature_map"].notna().any() else "memory"
    return [axis for axis in axes_of(table) if axis != "key_dim"] or [usual]


def laws(table: pd.DataFrame) -> list[tuple[str, capacity.PowerLaw]]:
    """Return the law along the key dimension of each memory of the table, by name."""
    codes, names = results.group(table, memories_of(table))
    parts = [table[codes == code] for code in range(len(names))]
    found = [capacity.power_law(*part[["key_dim", "pairs"]].to_numpy(dtype=float).T) for part in parts]
    return [(name, law) for name, law in zip(_names(names), found, strict=True) if law.points > 1]


def tell(table: pd.DataFrame, needed: pd.DataFrame) -> str:
    """Return all that is told on a terminal: capacities, laws, the dimensions needed, findings, doubts."""
    rows = memories_of(table)
    by_theory = (table["method"] == "theory").all()
    shown = table.drop(columns="trials") if by_theory else table
    parts = ["", tables.summary_table(shown, rows, "key_dim"), *_theory(table)]
    if found := laws(table):
        width = max(len(name) for name, _ in found)
        lines = [f"{name.ljust(width)}  {law}" for name, law in found]
        known = any(law.interval_text for _, law in found)
        bars = "95% interval of the exponent" if known else "two points: no interval"
        parts += ["", f"Along the key dimension (least squares of logarithms; {bars}):", "", *lines]
    if len(needed):
        parts += ["", needed_table(needed)]
    return "\n".join([*parts, "", *map(wrapped, [*findings(table, needed), *doubts(table)]), ""])


def _theory(table: pd.DataFrame) -> Iterator[str]:
    """Yield what is stated of the error of the formulas that capacities come from, with the memories that it is of."""
    used = (table["method"] == "theory").to_numpy()
    if not used.any():
        return
    yield f"\n{'All' if used.all() else 'Some'} by theory (formulas: source in capacity.csv). Known errors:"
    memories: dict[str, list[str]] = {}
    names = np.array(_names(table[memories_of(table)]))
    for name, source in dict.fromkeys(zip(names[used], table["source"][used], strict=True)):
        of = memories.setdefault(_known_error(source), [])
        of += [name] if name not in of else []
    for error, of in memories.items():
        yield wrapped(f"{'; '.join(of)}: {error}.")


def _known_error(source: str) -> str:
    """Return what a source, "formula (known error: ...)" or "formula (exact)", states of its error."""
    return source.rpartition(" (")[2].removesuffix(")") if KNOWN not in source else source.partition(KNOWN)[2][:-1]


def needed_table(needed: pd.DataFrame) -> str:
    """Return the dimensions needed as text: memories down, wanted pairs across, each cell d and the state's size."""
    rows = [axis for axis in memories_of(needed) if axis in needed.columns]
    across = sorted(needed["num_pairs"].unique())
    codes, names = results.group(needed, rows)
    lines = [[*rows, *(f"N = {n}" for n in across)]]
    for code, name in enumerate(names.itertuples(index=False)):
        cells = {row["num_pairs"]: _needed(row) for _, row in needed[codes == code].iterrows()}
        lines.append([*map(str, name), *(cells.get(n, "-") for n in across)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    body = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([f"Least key dimension (state) for N pairs with {needed['criterion'].iloc[0]}:", "", *body])


def findings(table: pd.DataFrame, needed: pd.DataFrame) -> Iterator[str]:
    """Yield the main findings as sentences; of one memory alone nothing is ranked."""
    names = np.array(_names(table[memories_of(table)]))
    known = table.assign(name=names)[table["bracketed"].to_numpy(dtype=bool)]
    if not known.empty:
        yield _held(known[known["key_dim"] == known["key_dim"].max()])
        yield from _growth(laws(table))
        yield from _per_byte(known)
        yield from _needed_finding(needed)


def _held(at: pd.DataFrame) -> str:
    fewest, most = _ends(at, "pairs")
    lead = f"At d = {most['key_dim']}, v = {most['value_dim']}, {most['name']} holds"
    if len(at) == 1:
        return f"{lead} {_estimate(most)} pairs."
    return f"{lead} the most pairs, {_estimate(most)}, {fewest['name']} the fewest, {_estimate(fewest)}."


def _growth(found: list[tuple[str, capacity.PowerLaw]]) -> Iterator[str]:
    if len(found) == 1:
        yield f"Along d, {found[0][1]}."
    elif found:
        steep, flat = max(found, key=lambda x: x[1].exponent), min(found, key=lambda x: x[1].exponent)
        yield f"N* grows fastest along d for {steep[0]}: {steep[1]}, slowest for {flat[0]}: {flat[1]}."


def _per_byte(known: pd.DataFrame) -> Iterator[str]:
    """Yield which memories make the Pareto line of pairs by bytes, and the best ratio; of one memory that ratio."""
    _, best = _ends(known, "pairs_per_byte")
    ratio = f"one pair in {1 / best['pairs_per_byte']:.0f} bytes"
    if known["name"].nunique() == 1:
        yield f"Per byte of state it holds most at d = {best['key_dim']}: {ratio}." if len(known) > 1 else (
            f"That is {ratio} of state.")  # fmt: skip
        return
    line = known[known["pareto"]].sort_values("state_bytes")
    share = ", ".join(f"{n} ({c})" for n, c in line["name"].value_counts(sort=False).items())
    yield (
        f"Per byte of state, the most pairs are held by: {share} (points of the Pareto line, {len(line)} of "
        f"{len(known)}); {best['name']} at d = {best['key_dim']} has the best ratio, {ratio}."
    )


def doubts(table: pd.DataFrame) -> Iterator[str]:
    """Yield a line for what of the table is a bound, or less sure than was asked for."""
    if count := int((~table["bracketed"].astype(bool)).sum()):
        yield f"Of {len(table)} capacities, {count} are bounds, no numbers: the search did not bracket them."
    if count := int((~table["narrow"].astype(bool)).sum()):
        told = "the interval is wider than asked, or rests on few failures: raise trials, or precision"
        yield f"In {count} of {len(table)}, {told}."
    for note in sorted({s for s, m in zip(table["source"], table["method"], strict=True) if m == "simulation" and s}):
        yield f"In simulations {note}."


def _needed_finding(needed: pd.DataFrame) -> Iterator[str]:
    known = needed[needed["bracketed"].to_numpy(dtype=bool)] if len(needed) else needed
    if known.empty:
        return
    known = known.assign(name=_names(known[memories_of(needed)]))
    at = known[known["num_pairs"] == known["num_pairs"].max()]
    least, largest = _ends(at, "state_bytes")
    if needed[memories_of(needed)].drop_duplicates().shape[0] == 1:
        yield f"For {least['num_pairs']} pairs it needs d = {least['key_dim']:.0f}, {_size(least['state_bytes'])}."
        return
    yield f"For {least['num_pairs']} pairs the smallest state is that of {_state(least)}" + (
        f", the largest that of {_state(largest)}." if largest["state_bytes"] > least["state_bytes"] else "."
    )


def _ends(frame: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Return the rows with the least and the largest number in a column."""
    numbers = results.numbers(frame, column)
    return frame.iloc[int(np.nanargmin(numbers))], frame.iloc[int(np.nanargmax(numbers))]


def _state(row: Any) -> str:
    return f"{row['name']}, {_size(row['state_bytes'])} at d = {row['key_dim']:.0f}"


def _needed(row: Any) -> str:
    return f"{row['shown']} ({_size(row['state_bytes'])})" if row["bracketed"] else str(row["shown"])


def _size(count: float) -> str:
    """Return a number of bytes in three figures: 512 B, 66 kB, 353 kB, 1.0 MB."""
    units = ["GB", "MB", "kB", "B"]
    while len(units) > 1 and count >= 999.5:  # what would be written as 1000
        units.pop()
        count /= 1000
    text = f"{count:.3g}" if count < 999.5 else f"{count:.0f}"
    return f"{text}{'.0' if len(text) == 1 and units[-1] != 'B' else ''} {units[-1]}"


def _estimate(row: Any) -> str:
    return str(capacity.CapacityEstimate(row["pairs"], row["low"], row["high"], True))


def _names(memories: pd.DataFrame) -> list[str]:
    """Return one name a row: identity, hebbian, query_cosine=0.9."""

    def told(column: str, value: Any) -> str:
        return str(value) if column in GROUPS else f"{column.rpartition('.')[2]}={value}"

    names = [str(c) for c in memories.columns]
    return [", ".join(map(told, names, row)) for row in memories.itertuples(index=False)]
