"""What the check of the theory found, in sentences, and one number of it as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capmem.studies._theory_verdict import AGREES, FAILS, UNTESTED

if TYPE_CHECKING:
    import pandas as pd


def finding(table: pd.DataFrame) -> str:
    """Return how many numbers agree, the furthest of either kind, and those that cannot be told."""
    count = {told: int((table["verdict"] == told).sum()) for told in (AGREES, FAILS, UNTESTED)}
    agreement = (
        f"{count[AGREES]} of {len(table)} numbers agree" if count[FAILS] else f"All {count[AGREES]} numbers agree"
    )
    if count[UNTESTED] and not count[FAILS]:
        agreement = f"No number fails: {count[AGREES]} of {len(table)} agree"
    combinations = table.drop_duplicates("combination")["combination"].size
    told = [
        f"{agreement} with simulation, over {combinations} combinations ({table['trials'].min()} trials each, "
        f"{table['limit'].iloc[0]:.2f} standard errors allowed)."
    ]
    judged = table[table["verdict"] == AGREES]
    exact, approximate = judged[judged["exact"]], judged[~judged["exact"]]
    if len(exact):
        worst = exact.iloc[int(exact["z"].abs().argmax())]
        told.append(f"Furthest of {len(exact)} exact numbers: z = {worst['z']:.2f} ({_what(worst)}).")
    if len(approximate):
        worst = approximate.iloc[int(approximate["deviation"].abs().argmax())]
        told.append(
            f"Furthest of {len(approximate)} approximate ones: {worst['deviation']:+.1%}, {worst['stated_error']:.0%} "
            f"stated and {abs(worst['standard_error'] / worst['measured']):.1%} standard error ({_what(worst)})."
        )
    if count[FAILS]:
        told.append(f"{count[FAILS]} fail.")
    if count[UNTESTED]:
        told.append(
            f"{count[UNTESTED]} cannot be told: one trial decides the mean, or no error is stated for the size."
        )
    return " ".join(told)


def line(row: pd.Series[Any]) -> str:
    """Return one number as a line."""
    return (
        f"{_what(row)}: predicted {row['predicted']:.6g}, measured {row['measured']:.6g} +- "
        f"{row['standard_error']:.2g}, z = {row['z']:.1f}, stated error {row['stated_error']:.2%}"
    )


def _what(row: pd.Series[Any]) -> str:
    ages = f", ages {row['age_low']}-{row['age_high']}" if row["age_low"] >= 0 else ""
    sizes = f"d = {row['key_dim']}, v = {row['value_dim']}, N = {row['num_pairs']}"
    return f"{row['metric']} of {row['combination']}, {sizes}{ages}"
