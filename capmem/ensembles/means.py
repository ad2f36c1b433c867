"""Values with a common mean: what most formulas leave out, and what ruins memories with positive features."""

from __future__ import annotations

import math
from dataclasses import dataclass

from capmem.ensembles.base import Ensemble, Rows
from capmem.schema import require


@dataclass(frozen=True)
class MeanValues(Ensemble):
    """Values of mean zero, plus a vector that all of them share.

    Parameters
    ----------
    mean : float
        Added to every coordinate: the common vector is mean * (1, ..., 1), of norm |mean| sqrt(v).

    Raises
    ------
    ValueError
        If the mean is not finite.

    Notes
    -----
    Formulas of the theory are for values of mean zero. A common mean vbar adds to E|y - v|^2 a term
    (N-1)(N-2) |vbar|^2 E kappa_ij kappa_il (i, j, l distinct), which grows as N^2 where features are positive.
    """

    mean: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_finite_mean(self.mean)

    def about_mean(self, rows: Rows) -> Rows:
        """Return rows (n, v) of mean zero, moved to the common mean."""
        return about_mean(rows, self.mean)


def about_mean(rows: Rows, mean: float) -> Rows:
    """Return rows + mean; the very same rows where that is 0."""
    return rows + mean if mean else rows


def require_finite_mean(mean: float) -> None:
    """Raise ValueError unless the mean is finite."""
    require(math.isfinite(mean), "mean", mean, "a finite number")
