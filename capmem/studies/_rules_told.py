"""What the comparison of write rules finds, as sentences of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

RAW = "relative_squared_error"
PLAIN = "least_squares, ridge=0"


def finding(table: pd.DataFrame) -> str:
    """Return a sentence or two for each question: load, age, a repeated key, noisy cues."""
    told = [_load(table), _age(table), _repeats(table), _average(table), _noise(table), _ridge(table), _doubt(table)]
    return " ".join(sentence for sentence in told if sentence)


def _of(table: pd.DataFrame, part: str) -> pd.DataFrame:
    return table[table["part"] == part]


def _means(frame: pd.DataFrame, value: str = RAW) -> pd.DataFrame:
    """Return mean, its standard error, and theory, a row a rule, in the table's order."""
    groups = frame.groupby("rule", sort=False)
    theory = groups[f"theory_{value}"].mean() if f"theory_{value}" in frame else groups[value].mean() * float("nan")
    return groups[value].agg(["mean", "sem"]).assign(theory=theory)


def _named(means: pd.DataFrame) -> str:
    """Return "hebbian 0.98 +- 0.01 (closed form 0.984); ..."."""
    parts = []
    for rule, row in means.iterrows():
        spread = f" +- {row['sem']:.2g}" if row["sem"] > 1e-12 else ""
        closed = f" (closed form {row['theory']:.3f})" if row["theory"] == row["theory"] else ""
        parts.append(f"{_short(str(rule))} {abs(row['mean']):.3f}{spread}{closed}")
    return "; ".join(parts)


def _short(rule: str) -> str:
    return rule.partition(",")[0].replace("_", " ")


def _load(table: pd.DataFrame) -> str:
    load = _of(table, "load")
    d, told = load["key_dim"].iloc[0], []
    for n in dict.fromkeys([min(load["num_pairs"], key=lambda n: abs(n - d)), load["num_pairs"].max()]):
        told.append(f"at N = {n:g} ({n / d:g} d): {_named(_means(load[load['num_pairs'] == n]))}")
    return f"Mean errors of unit keys on one stream, {'. And '.join(told)}."


def _age(table: pd.DataFrame) -> str:
    age = _of(table, "age")
    new, old = (age[age["age_low"] == edge] for edge in (age["age_low"].min(), age["age_low"].max()))
    newest, oldest = (_means(part)["mean"] for part in (new, old))
    pairs = [f"{_short(str(rule))} {newest[rule]:.2f} and {oldest[rule]:.2f}" for rule in newest.index]
    return (
        f"By age, after {age['num_pairs'].iloc[0]:g} pairs, the newest {new['age_high'].iloc[0] + 1:g} and the oldest "
        f"{old['age_high'].iloc[0] - old['age_low'].iloc[0] + 1:g} are read with errors of: {'; '.join(pairs)}."
    )


def _repeats(table: pd.DataFrame) -> str:
    part = _of(table, "overwrite")
    low, high = part["fraction"].min(), part["fraction"].max()
    first, last = (_means(part[part["fraction"] == f])["mean"] for f in (low, high))
    pairs = [f"{_short(str(rule))} from {abs(first[rule]):.2f} to {abs(last[rule]):.2f}" for rule in first.index]
    return (
        f"When the chance that a pair of {part['num_pairs'].iloc[0]:g} repeats an earlier key goes from {low:g} to "
        f"{high:g}, the error of the latest values goes for {'; '.join(pairs)}."
    )


def _average(table: pd.DataFrame) -> str:
    part = _of(table, "replacement")
    most = part["num_pairs"].max()
    part = part[part["num_pairs"] == most]
    told = [f"{rule} {row['mean']:.4f} (closed form {row['theory']:.4f})" for rule, row in _means(part).iterrows()]
    return f"Of {most:g} pairs drawn with replacement from {most:g} orthonormal keys: {'; '.join(told)}."


def _noise(table: pd.DataFrame) -> str:
    part = _of(table, "noise")
    plain = part[part["rule"] == PLAIN]
    d, cosine = part["key_dim"].iloc[0], part["query_cosine"].iloc[0]
    if plain.empty:
        return ""
    means = plain.groupby("num_pairs")[RAW].mean()
    peak: Any = means.idxmax()
    last: Any = means.index.max()
    others = [rule for rule in part["rule"].unique() if rule.startswith("least_squares") and rule != PLAIN]
    at_peak = part[part["num_pairs"] == peak].groupby("rule")[RAW].mean()
    ridges = [f"a ridge of {rule.partition('=')[2]} makes that {at_peak[rule]:.3f}" for rule in others]
    return "; ".join([
        f"With cues of cosine {cosine:g} the pseudo-inverse errs by {means.iloc[0]:.2f} at N = {means.index[0]:g}, "
        f"{means[last]:.2f} at N = {last:g}, and most at N = {peak:g} (d = {d:g}), by {means[peak]:.3g} in these "
        f"trials: its mean is infinite within one pair of N = d",
        *ridges,
    ]) + "."  # fmt: skip


def _ridge(table: pd.DataFrame) -> str:
    part = _of(table, "ridge")
    means = part.groupby("ridge")[[RAW, f"theory_{RAW}"]].mean()
    best: Any = means[RAW].idxmin()
    theory = means[f"theory_{RAW}"].loc[best]
    closed = f" (closed form {theory:.3f})" if theory == theory else ""
    place = f"At N = d = {part['num_pairs'].iloc[0]:g}"
    return f"{place} the best of these ridges is {best:g}, with {means[RAW].loc[best]:.3f}{closed}."


def _doubt(table: pd.DataFrame) -> str:
    warned = list(table["warning"].dropna()) if "warning" in table else []
    return f"Not to be trusted: in {len(warned)} rows, {warned[0]}" if warned else ""
