"""What a common mean of the values costs: the sum of a reading's weights is not 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capmem.ensembles import OrthonormalKeys, PowerLawKeys, RademacherKeys
from capmem.feature_maps import ElementwiseMap, Identity
from capmem.theory.base import Floats, TheoryUnavailable, TrialMoments
from capmem.theory.case import Case
from capmem.theory.elementwise import scalar_function
from capmem.theory.laws import LAWS, axial_nodes, key_law, reduced
from capmem.theory.quadrature import normal_split
from capmem.theory.structured import linear_memory
from capmem.theory.values import ValueLaw

FORMULA = (
    "values w + vbar: e_raw = (|w|^2 e_0 + |vbar|^2 E (sum_j kappa_ij - 1)^2) / (|w|^2 + |vbar|^2), E (sum_j kappa_ij "
    "- 1)^2 = E(kappa_ii-1)^2 + (N-1) [m2 + 2 E(kappa_ii-1) kappa_ij] + (N-1)(N-2) E kappa_ij kappa_il"
)


class RowMoments(NamedTuple):
    """E kappa_ii kappa_ij and E kappa_ij kappa_il of three different keys (R,), given what a trial shares."""

    own: Floats
    pair: Floats


def common_mean_error(case: Case, moments: TrialMoments, values: ValueLaw) -> float:
    """Return e_raw for values with a common mean; see :data:`FORMULA`.

    Raises
    ------
    TheoryUnavailable
        Where the moments of three keys are not known.
    """
    rows = _row_moments(case)
    m1, M2, mu, m2 = moments.columns
    n = case.num_pairs
    plain = M2 - 2 * m1 + 1 + (n - 1) * m2
    sums = plain + 2 * (n - 1) * (rows.own - mu) + (n - 1) * (n - 2) * rows.pair
    return float(moments.weights @ (values.power * plain + values.common * sums) / (values.power + values.common))


def _row_moments(case: Case) -> RowMoments:
    memory, keys = linear_memory(case), reduced(case.keys)
    zero = RowMoments(np.zeros(1), np.zeros(1))
    identity = type(memory.feature_map) is Identity
    if identity and type(keys) in (OrthonormalKeys, PowerLawKeys, RademacherKeys):
        return zero  # all signs of one key are equally likely, given the others
    if type(keys) in LAWS and case.query_cosine == 1 and memory.feature_norm == "none":
        law = key_law(memory, keys, case.key_dim)
        if identity:
            return _identity_rows(*axial_nodes(law, case.key_dim)[1:], memory.feature_center == "mean")
        feature_map = memory.feature_map
        if isinstance(feature_map, ElementwiseMap) and law.independent and not law.unit:
            if memory.feature_center == "mean":
                return zero
            return _elementwise_rows(feature_map, case.key_dim, law.scale / case.key_dim**0.5)
    if identity and type(keys) in LAWS and LAWS[type(keys)](keys, case.key_dim).independent:
        return zero
    raise TheoryUnavailable("no formula for values with a common mean for such keys and maps: it takes three keys")


def _identity_rows(key_weights: Floats, along: Floats, across: Floats, centred: bool) -> RowMoments:
    """Return them for k = a u/|u| + b w, whose mean is (E a) u/|u|."""
    if centred:
        along = along - (along @ key_weights)[:, None]
    mean = along @ key_weights
    square = along**2 + across**2
    return RowMoments(mean * ((square * along) @ key_weights), mean**2 * (along**2 @ key_weights))


def _elementwise_rows(feature_map: ElementwiseMap, dim: int, spread: float) -> RowMoments:
    x, weights = normal_split(np.zeros(()), spread, 156)
    y = scalar_function(feature_map)(x)
    first, second, third = (float(weights @ y**p) for p in (1, 2, 3))
    own = first * dim * (third + (dim - 1) * second * first)
    pair = first**2 * dim * (second + (dim - 1) * first**2)
    return RowMoments(np.array([own]), np.array([pair]))
