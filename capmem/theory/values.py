"""What the theory needs of a value law: its power, how values overlap, and what they share."""

from __future__ import annotations

from typing import NamedTuple

from capmem.ensembles import Ensemble, GaussianValues, OneHotValues, RademacherValues, SphereValues
from capmem.theory.base import TheoryUnavailable

LAWS = (SphereValues, GaussianValues, RademacherValues, OneHotValues)


class ValueLaw(NamedTuple):
    """Values v_i = w_i + vbar.

    Attributes
    ----------
    dim : int
        v.
    power : float
        E|w|^2.
    overlap : float
        E(w_i . w_j)^2 / E|w|^2 squared: 1/v, or 0 for one-hot values, which are orthonormal.
    fixed_norm : bool
        |w| does not vary.
    one_hot : bool
        Each value has a coordinate of its own.
    common : float
        What a reading r_i vbar in place of vbar costs, for each (r_i - 1)^2: |vbar|^2, for one-hot values
        |vbar|^2 + 2 w . vbar. E|v|^2 = power + common.
    isotropic : bool
        w has the law of the sphere or of N(0, I).
    """

    dim: int
    power: float
    overlap: float
    fixed_norm: bool
    one_hot: bool
    common: float
    isotropic: bool


def value_law(values: Ensemble, dim: int) -> ValueLaw:
    """Return the law of values in `dim` dimensions.

    Raises
    ------
    TheoryUnavailable
        For values from a file, or of a law without formulas.
    """
    if type(values) not in LAWS:
        if values.file_dim() is not None:
            raise TheoryUnavailable("values of a file are not independent of one another and of the keys")
        raise TheoryUnavailable(f"no formula for values of the law {type(values).__name__}")
    mean = float(getattr(values, "mean", 0.0))
    one_hot = type(values) is OneHotValues
    return ValueLaw(
        dim,
        power=1.0 if one_hot else float(dim),
        overlap=0.0 if one_hot else 1 / dim,
        fixed_norm=type(values) is not GaussianValues,
        one_hot=one_hot,
        common=mean**2 * dim + (2 * mean if one_hot else 0.0),
        isotropic=type(values) in (SphereValues, GaussianValues),
    )
