"""The answers in sentences; every number in them comes from the tables of the analysis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from capmem.heads_analysis.conversion import KEY, WAYS, capacities, key_sets, rank_correlation, swap_ratios
from capmem.heads_analysis.fit import BASELINES, CONSTANT, UNIFORM
from capmem.heads_analysis.recall import MEAN, OWN, RANDOM, TEXT
from capmem.heads_analysis.rules import LEAST_SQUARES
from capmem.heads_analysis.tables import Tables
from capmem.heads_analysis.task import ALL

if TYPE_CHECKING:
    import pandas as pd

CRITERIA = {
    "top1_accuracy": "top-1 by index >= {:g}",
    "top1_by_token": "top-1 by token >= {:g}",
    "scale_optimal_error": "scale-optimal error <= {:g}",
}
NAMES = {**{way: f"keys {way}" for way in WAYS}, RANDOM: "random keys", MEAN: "the mean of the values"}


def sentences(tables: Tables) -> list[str]:
    """Return the answers, a paragraph a question; what the file does not have is left out."""
    parts = (remembered, dimensions, fitted, swapped, ruled, interfering, worth, oddities)
    return [text for part in parts for text in part(tables)]


def remembered(tables: Tables) -> Iterator[str]:
    """Say how many tokens are remembered, by each criterion, and against which baselines."""
    table = tables.capacity
    values = OWN if (table["values"] == OWN).any() else RANDOM
    for criterion, words in CRITERIA.items():
        found = {name: capacities(table, keys, values, criterion=criterion) for keys, name in NAMES.items()}
        parts = [f"{name} {_many(rows)}" for name, rows in found.items() if len(rows)]
        threshold = words.format(table[table["criterion"] == criterion]["threshold"].iloc[0])
        count = int(table["tokens"].max())
        yield f"Tokens remembered of {count}, {threshold}; median N* over {_heads(tables)}: {'; '.join(parts)}."


def dimensions(tables: Tables) -> Iterator[str]:
    """Say how many random dimensions the keys are worth."""
    rows = tables.dimensions[tables.dimensions["choice"] == ALL]
    plain, centred = (rows[rows["keys"] == way] for way in WAYS)
    dim = int(plain["key_dim"].iloc[0])
    filled = [
        f"{plain[name].median():.1f} by {name.replace('_', ' ')} ({centred[name].median():.1f} centred)"
        for name in ("participation_ratio", "effective_rank")
    ]
    yield (
        f"Keys of {dim} dimensions interfere like random ones of {_spread(plain['effective_dim'])} dimensions (1 / "
        f"mean cos^2), of {_spread(centred['effective_dim'])} once centred; their mean cosine is "
        f"{_spread(plain['mean_cosine'], 2)}. They fill {' and '.join(filled)} of them."
    )
    both = plain.merge(centred, on=KEY, suffixes=("", "_c"))
    gain = both.iloc[int(np.argmax(both["effective_dim_c"] / both["effective_dim"]))]
    plain_dim, centred_dim = (
        f"{gain[f'effective_dim{end}']:.1f}-dim one "
        f"({gain[f'effective_dim_low{end}']:.1f}-{gain[f'effective_dim_high{end}']:.1f})"
        for end in ("", "_c")
    )
    yield (
        f"Centring gains most in layer {gain['layer']}, key head {gain['head']}: this {dim}-dim head stores like a "
        f"random {plain_dim}; once centred, like a {centred_dim}."
    )


def fitted(tables: Tables) -> Iterator[str]:
    """Say which map fits the heads' own attention best, against uniform weights and the best constant."""
    if not len(tables.fit):
        yield "No fit to the heads' own attention: the file has no queries, or no values."
        return
    heads = tables.heads
    base = {name: tables.fit[tables.fit["map"] == name].set_index([*KEY, "query_head"])["error"] for name in BASELINES}
    for way, end in WAYS.items():
        best = heads.set_index([*KEY, "query_head"])[f"best_error{end}"]
        counts = heads[f"best_map{end}"].value_counts()
        first = ", ".join(f"{name}: {count}" for name, count in counts.head(4).items())
        lost = int((best > base[CONSTANT].reindex(best.index)).sum())
        yield (
            f"Best feature map for {len(heads)} query heads, keys {way}: {first}. Its error against the head's own "
            f"output is {_spread(best, 2)}; uniform weights {_spread(base[UNIFORM], 2)}, the best constant "
            f"{_spread(base[CONSTANT], 2)}, which beats every map for {lost} of the heads."
        )
    signed = tables.fit[tables.fit["nonpositive_share"] > 0]
    if len(signed):
        worst = signed.groupby("map")["nonpositive_share"].mean().sort_values(ascending=False)
        told = ", ".join(f"{name} {share:.0%}" for name, share in worst.head(4).items())
        yield f"Not to be trusted: denominators that are not positive, where there are any: {told}."


def swapped(tables: Tables) -> Iterator[str]:
    """Say what moved N* when keys, values or order were exchanged."""
    ratios = {name: ratio for name, ratio in swap_ratios(tables.capacity).items() if len(ratio)}
    if ratios:
        told = "; ".join(f"{name} x {_spread(ratio, 2)}" for name, ratio in ratios.items())
        yield f"Keys, values or order? N* (top-1 by index) changes by these factors: {told}."


def ruled(tables: Tables) -> Iterator[str]:
    """Say what share of the gap to least squares the delta rule and decay close."""
    rows = tables.rules
    for (name, way), part in rows.groupby(["map", "keys"], sort=False):
        error = part.groupby("rule")["scale_optimal_error"].median()
        closed = [
            f"{rule} closes {_percent(own['gap_closed'])}{' in text order' if order == TEXT else ''}"
            for (rule, order), own in part.groupby(["rule", "order"], sort=False)
            if order != "any"
        ]
        yield (
            f"All {int(part['tokens'].max())} tokens stored by {name}, keys {way}: error {error['hebbian']:.2f} by the "
            f"plain sum, {error[LEAST_SQUARES]:.2f} by least squares; of that gap {', '.join(closed)}."
        )


def interfering(tables: Tables) -> Iterator[str]:
    """Name the worst pair of different tokens, and how many tokens are recalled when all are stored."""
    pairs = tables.pairs[~tables.pairs["same_token"] & (tables.pairs["rank"] == 1)]
    for way in WAYS:
        recalled, worst = tables.tokens[tables.tokens["keys"] == way], pairs[pairs["keys"] == way]
        told = f"All tokens stored, keys {way}: {recalled['recalled'].mean():.1%} are recalled by index, "
        told += f"{recalled['recalled_token'].mean():.1%} by token"
        if len(worst):
            row = worst.iloc[int(np.argmax(worst["cosine"].abs()))]
            told += (
                f"; of different tokens {row['token_i']!r} ({row['i']}) and {row['token_j']!r} ({row['j']}) in layer "
            )
            told += f"{row['layer']}, key head {row['head']} interfere most, cosine {row['cosine']:.3f}"
        yield told + "."


def worth(tables: Tables) -> Iterator[str]:
    """Say what goes with a good fit and with capacity, over heads."""
    heads = tables.heads
    if "best_error" in heads:
        found = {way: rank_correlation(heads["attended"], heads[f"best_error{end}"]) for way, end in WAYS.items()}
        told = "; ".join(f"keys {way} {value}" for way, value in found.items())
        first = heads.nsmallest(5, "best_error_centred")
        named = ", ".join(f"L{r.layer}H{r.query_head} {r.best_error_centred:.2f}" for r in first.itertuples())
        yield f"Worth converting? Spearman(attended tokens, best fit error) over query heads: {told}."
        yield f"Best fits, keys centred: {named}."
    sets = key_sets(heads)
    correlation = rank_correlation(sets["effective_dim"], sets["pairs"])
    share = _spread(sets["pairs"] / sets["random_keys_hold"], 2)
    yield (
        f"Spearman(effective dimension, N* with random values) over key sets, both ways: {correlation}; N* is {share} "
        f"of what random keys of that dimension hold (closed form)."
    )


def oddities(tables: Tables) -> Iterator[str]:
    """Say what leaving out special tokens, and keys of outlying norm, changes."""
    table, held = tables.dimensions, tables.capacity[tables.capacity["criterion"] == "top1_accuracy"]
    for choice in [c for c in dict.fromkeys(table["choice"]) if c != ALL]:
        rows = _before_and_after(table, choice, "effective_dim")
        pairs = _before_and_after(held[(held["values"] == OWN) & (held["order"] != TEXT)], choice, "pairs")
        told = [
            f"keys {way} {_change(rows[rows['keys'] == way], 'effective_dim')}"
            + (f" and N* {_change(pairs[pairs['keys'] == way], 'pairs')}" if len(pairs) else "")
            for way in WAYS
        ]
        count = len(rows.drop_duplicates(KEY))
        yield f"{choice.capitalize()} ({count} key heads have some): effective dimension, {'; '.join(told)}."


def _before_and_after(table: pd.DataFrame, choice: str, column: str) -> pd.DataFrame:
    sides = [table[table["choice"] == c][[*KEY, "keys", column]] for c in (ALL, choice)]
    return sides[0].merge(sides[1], on=[*KEY, "keys"], suffixes=("_before", "_after"))


def _change(rows: pd.DataFrame, column: str) -> str:
    return f"{rows[f'{column}_before'].median():.1f} -> {rows[f'{column}_after'].median():.1f}"


def _many(rows: pd.DataFrame) -> str:
    """Return the median of N* and its spread, with how many heads are only bounded; of one head, its own interval."""
    tokens, bounds = int(rows["tokens"].iloc[0]), rows["bound"].value_counts()
    if len(rows) == 1:
        row = rows.iloc[0]
        shown = {"at least": f"at least {tokens}", "below": f"below {row['high']:.0f}"}
        return shown.get(row["bound"], f"{row['pairs']:.1f} ({row['low']:.1f}-{row['high']:.1f})")
    notes = {"at least": f"at least {tokens}", "below": f"below {rows['high'].min():.0f}"}
    told = "".join(f", {text} for {bounds[bound]}" for bound, text in notes.items() if bounds.get(bound, 0))
    return f"{_spread(rows['least'])}{told}"


def _spread(values: pd.Series[float], digits: int = 1) -> str:
    """Return "median (10 % - 90 %)" of finite values; of one value, that."""
    given = np.asarray(values, dtype=float)
    given = given[np.isfinite(given)]
    if not len(given):
        return "-"
    low, mid, high = np.quantile(given, [0.1, 0.5, 0.9])
    return f"{mid:.{digits}f}" + (f" ({low:.{digits}f}-{high:.{digits}f})" if len(given) > 1 else "")


def _percent(values: pd.Series[float]) -> str:
    given = np.asarray(values, dtype=float)
    given = given[np.isfinite(given)]
    return f"{np.median(given):.0%}" if len(given) else "nothing (there is no gap)"


def _heads(tables: Tables) -> str:
    count = len(tables.heads.drop_duplicates(KEY))
    return f"{count} key heads (10-90 % of them)" if count > 1 else "one key head (95% interval)"
