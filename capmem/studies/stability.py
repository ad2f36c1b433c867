"""Where linear attention is numerically unstable: signed denominators, narrow states, FAVOR+ on large keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capmem import figures
from capmem.feature_maps import FEATURE_MAPS
from capmem.precision import StateDType
from capmem.schema import check_fields, require
from capmem.studies import Computed, Study, at_least
from capmem.studies._denominators import denominator_rows
from capmem.studies._kernel_variance import variance_rows
from capmem.studies._rounded_states import rounded_rows
from capmem.trial import Record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Stability:
    """What is stressed.

    Parameters
    ----------
    key_dim, value_dim : int
        d and v.
    num_pairs : tuple of int
        N.
    feature_maps : tuple of str
        Maps whose denominators are looked at, on keys from N(0, I).
    queries : int
        Denominators a map and N, at least.
    state_dtypes : tuple of str
        Formats of the state.
    round_every : tuple of int
        Pairs between two roundings of the state.
    trials : int
        Of the narrow states.
    key_squares : tuple of float
        |x|^2 = |k|^2 / sqrt(d) of the keys that FAVOR+ is given.
    num_features, draws : int
        Its directions, and how often they are drawn.
    seed : int
        Of everything.
    """

    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (16, 64, 256, 1024, 4096)
    feature_maps: tuple[str, ...] = ("identity", "silu", "elu_plus_one")
    queries: int = 16384
    state_dtypes: tuple[StateDType, ...] = ("bfloat16", "float16", "float8_e4m3", "int8")
    round_every: tuple[int, ...] = (1, 16, 256)
    trials: int = 2
    key_squares: tuple[float, ...] = (0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    num_features: int = 64
    draws: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 1, "key_dim", "value_dim", "num_pairs", "queries", "round_every", "trials", "num_features")
        at_least(self, 2, "draws")
        at_least(self, 0, "seed")
        squares = self.key_squares
        require(bool(squares) and 0 < min(squares) and max(squares) <= 16, "key_squares", list(squares),
                "a list, not empty, of numbers above 0, at most 16")  # fmt: skip
        for name in ("feature_maps", "state_dtypes"):
            require(bool(getattr(self, name)), name, [], "a list that is not empty")
        for name in self.feature_maps:
            FEATURE_MAPS.build(name, "feature_maps")


def rows(settings: Stability) -> Iterator[Record]:
    """Yield the table, by the column `part`: "denominator", "precision" and "favor"."""
    s = settings
    told = {"key_dim": s.key_dim, "value_dim": s.value_dim}
    parts = (
        denominator_rows(s.feature_maps, s.key_dim, s.value_dim, s.num_pairs, s.queries, s.seed),
        rounded_rows(s.state_dtypes, s.round_every, s.num_pairs, (s.key_dim, s.value_dim), s.trials, s.seed),
        variance_rows(s.key_squares, s.key_dim, s.num_features, s.draws, s.seed),
    )
    for part in parts:
        for row in part:
            yield told | row


def finding(table: pd.DataFrame) -> str:
    """Return a sentence for each kind of instability, at the largest N or the largest keys."""
    return " ".join([_denominators(table), _rounding(table), _variance(table)])


def _denominators(table: pd.DataFrame) -> str:
    part = table[table["part"] == "denominator"]
    last = part[part["num_pairs"] == part["num_pairs"].max()]
    signed = last[last["nonpositive_fraction"] > 0]
    worst = (signed if len(signed) else last).iloc[0]["feature_map"]
    normalized, normed = (last[(last["feature_map"] == worst) & (last["readout"] == r)].iloc[0]
                          for r in ("normalized", "rms_norm"))  # fmt: skip
    theory = normalized["theory_nonpositive_fraction"]
    expected = f" (Student t: {theory:.3f})" if theory == theory else ""
    return (
        f"With {normalized['num_pairs']:.0f} pairs, {normalized['nonpositive_fraction']:.3f} of the denominators of "
        f"{worst} features are not positive{expected}: the error of the normalised read-out has median "
        f"{normalized['median_error']:.3g} and mean {normalized['mean_error']:.2g}; with the output normed instead, "
        f"{normed['median_error']:.3g} and {normed['mean_error']:.3g}."
    )


def _rounding(table: pd.DataFrame) -> str:
    part = table[(table["part"] == "precision") & (table["feature_map"] == "identity")]
    last = part[part["num_pairs"] == part["num_pairs"].max()]
    errors = last.groupby(["state_dtype", "round_every"], sort=False)["added_error"].mean()
    low, high = last["round_every"].min(), last["round_every"].max()
    told = [f"{name} {errors[name, low]:.3g}" for name in dict.fromkeys(last["state_dtype"])]
    first = last["state_dtype"].iloc[0]
    rarely = f" (of {first} rounded every {high:.0f} pairs, {errors[first, high]:.3g})" if high > low else ""
    every = "pair" if low == 1 else f"{low:.0f} pairs"
    return (
        f"A state rounded after every {every} adds this share of |v|^2 at {last['num_pairs'].max():.0f} pairs: "
        f"{', '.join(told)}{rarely}."
    )


def _variance(table: pd.DataFrame) -> str:
    part = table[(table["part"] == "favor") & (table["directions"] == "independent")].sort_values("key_square")
    first, last = part.iloc[0], part.iloc[-1]
    return (
        f"FAVOR+ with {first['num_features']:.0f} features knows kappa(k, k) to a relative variance of "
        f"{first['relative_variance']:.2g} at |k|^2 / sqrt(d) = {first['key_square']:g} (closed form "
        f"{first['theory_relative_variance']:.2g}); at {last['key_square']:g} the closed form is "
        f"{last['theory_relative_variance']:.1e}, and the median estimate {last['median_ratio']:.1e} of the truth."
    )


STUDY = Study(
    "stability",
    Stability,
    Computed(rows),
    finding,
    {
        "stability": figures.stability,
        "precision": figures.precision,
        "kernel_variance": figures.kernel_variance,
    },
)
