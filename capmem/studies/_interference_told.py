"""What the interference analysis finds, as sentences of its table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy.special import ndtr, stdtrit

if TYPE_CHECKING:
    import pandas as pd

ERROR, TOP1 = "scale_optimal_error", "top1_accuracy"
SURE = 4  # standard errors that a difference is told from; with few trials, as many as are as rare
NAMES = {"correlation": "correlation {}", "feature_map": "{}", "write_rule": "{}", "readout": "the {} read-out"}


def _sure(trials: int) -> float:
    """Return how many estimated standard errors are as rare as SURE known ones (Student's t)."""
    return float(stdtrit(trials - 1, ndtr(SURE))) if trials > 1 else math.inf


def finding(table: pd.DataFrame) -> str:
    """Return sentences on the errors, on signal and crosstalk, on age, on agreement, and on what to doubt."""
    curve, signal, age = (table[table["part"] == part] for part in ("curve", "signal", "age"))
    told = [_curves(curve), _signal(signal) if len(signal) else "", _ages(age), _agreement(curve), _doubts(curve)]
    return " ".join(sentence for sentence in told if sentence)


def _name(frame: pd.DataFrame, level: object) -> str:
    return NAMES[str(frame["by"].iloc[0])].format(str(level).replace("_", " ").removesuffix(".0"))


def _curves(curve: pd.DataFrame) -> str:
    plain = curve[curve["centring"] == curve["centring"].iloc[0]]
    most = curve["num_pairs"].max()
    half = min(set(curve["num_pairs"]), key=lambda n: abs(n - curve["key_dim"].iloc[0]))
    means = {n: plain[plain["num_pairs"] == n].groupby("level", sort=False)[ERROR].mean() for n in (half, most)}
    centred = curve[(curve["centring"] != plain["centring"].iloc[0]) & (curve["num_pairs"] == half)]
    less = centred.groupby("level", sort=False)[ERROR].mean()
    parts = [
        f"{_name(curve, level)}: {error:.3f}" + (f" (centred {less[level]:.3f})" if level in less else "")
        for level, error in means[half].items()
    ]
    worst, best = means[most].idxmax(), means[most].idxmin()
    ends = f"At N = {most} they are between {means[most][best]:.3f} ({_name(curve, best)}) and {means[most][worst]:.3f}"
    note = " (centred: features less their mean)" if len(less) else ""
    return f"Scale-optimal errors at N = {half}{note} for {'; '.join(parts)}. {ends} ({_name(curve, worst)})."


def _signal(signal: pd.DataFrame) -> str:
    most = signal["num_pairs"].max()
    last = signal[(signal["num_pairs"] == most) & (signal["centring"] == signal["centring"].iloc[0])]
    groups = last.groupby("level", sort=False)[["signal", "crosstalk", "theory_crosstalk"]].mean()
    parts = []
    for level, row in groups.iterrows():
        closed = (
            f" (closed form {row['theory_crosstalk']:.3g})"
            if row["theory_crosstalk"] == row["theory_crosstalk"]
            else ""
        )
        parts.append(f"{_name(signal, level)}: {row['signal']:.3f} and {row['crosstalk']:.3g}{closed}")
    return (
        f"Signal and crosstalk at N = {most}, in units of what a pair alone reads, for {'; '.join(parts)}; they add "
        f"up to what is read, to {signal['closure'].max():.0e} of its largest value."
    )


def _ages(age: pd.DataFrame) -> str:
    plain = age[age["centring"] == age["centring"].iloc[0]]
    by = ["level", "trial"]
    new, old = (plain[plain["age_low"] == a].groupby(by, sort=False)[ERROR].mean() for a in
                (plain["age_low"].min(), plain["age_low"].max()))  # fmt: skip
    gaps = (old - new).groupby("level", sort=False).agg(["mean", "sem", "count"])
    parts = [
        f"{_name(age, level)}: {new[level].mean():.3f} and {old[level].mean():.3f}"
        for level, gap in gaps.iterrows()
        if abs(gap["mean"]) > _sure(int(gap["count"])) * gap["sem"] + 1e-9
    ]
    bins = f"of {plain['age_low'].nunique()} bins of age, the newest and the oldest"
    told = f"After {plain['num_pairs'].iloc[0]} pairs, {bins}"
    if not parts:
        return f"{told} are read alike ({SURE} standard errors): nothing that is lost is lost by age."
    return f"{told} differ by more than {SURE} standard errors for {'; '.join(parts)}."


def _agreement(curve: pd.DataFrame) -> str:
    theory, by = f"theory_{ERROR}", ["centring", "level", "num_pairs"]
    total, known = curve.groupby(by).ngroups, curve[curve[theory].notna()]
    if known.empty:
        return "There is no closed form to compare with."
    cells = known.groupby(by, sort=False).agg(mean=(ERROR, "mean"), sem=(ERROR, "sem"), theory=(theory, "mean"))
    gaps = (cells["mean"] - cells["theory"]).abs()
    at: Any = gaps.idxmax()
    centring, level, n = at
    spread = f" ({gaps[at] / cells['sem'][at]:.1f} standard errors)" if cells["sem"][at] > 0 else ""
    return (
        f"Of {total} means {len(cells)} have a closed form; the largest deviation is {gaps[at]:.3f}{spread}, for "
        f"{_name(curve, level)} at N = {n} ({centring})."
    )


def _doubts(curve: pd.DataFrame) -> str:
    bad = curve[curve["nonpositive_denominators"] > 0]
    told = []
    if len(bad):
        total = curve[curve["level"].isin(bad["level"])]["num_queries"].sum()
        levels = ", ".join(_name(curve, level) for level in dict.fromkeys(bad["level"]))
        told.append(
            f"{bad['nonpositive_denominators'].sum():.0f} of {total:.0f} denominators of {levels} were not positive."
        )
    if curve["warning"].notna().any():
        warned = curve["warning"].dropna()
        told.append(f"In {len(warned)} measurements, {warned.iloc[0]}")
    return f"Not to be trusted: {' '.join(told)}" if told else ""
