"""Scales at which numbers leave the range of float64 are refused at once, without a warning or another error."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from capmem import LinearMemory
from capmem.ensembles import (
    DuplicatedKeys,
    EquicorrelatedKeys,
    GaussianKeys,
    PowerLawKeys,
    RademacherKeys,
    SphereKeys,
)
from capmem.feature_maps import ElementwiseMap, Exp, Identity, PositiveRandomFeatures
from capmem.readouts import Normalized
from capmem.theory import TheoryUnavailable, predict, predict_by_age, trial_moments
from capmem.theory.refusals import within_float64

HANGS = """
from capmem import LinearMemory
from capmem.ensembles import GaussianKeys, SphereKeys
from capmem.feature_maps import PositiveRandomFeatures
from capmem.theory import TheoryUnavailable, predict
for keys, scale, d, cosine in ((SphereKeys(), 1e8, 3, 1.0), (GaussianKeys(), 1e5, 1024, 0.5)):
    try:
        predict(LinearMemory(PositiveRandomFeatures(), key_scale=scale), keys, d, 2, 8, query_cosine=cosine)
    except TheoryUnavailable as error:
        print("refused", error)
"""


def test_exp_features_of_huge_keys_are_refused_at_once():
    # in a process of its own: nothing interrupts SciPy's 1F1
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.count("refused") == 2 and not done.stderr


def test_exp_features_of_moderate_keys_still_have_a_prediction():
    memory = LinearMemory(PositiveRandomFeatures(), key_scale=2.0)
    assert np.isfinite(predict(memory, SphereKeys(), 16, 16, 8).relative_squared_error)


def exp(scale, **options):
    return LinearMemory(Exp(), key_scale=float(scale), **options)


@pytest.mark.parametrize(
    ("memory", "keys", "dim", "cosine"),
    [
        (exp(50), PowerLawKeys(), 2, 1.0),
        (exp(1000), PowerLawKeys(), 16, 1.0),
        (exp(300), SphereKeys(), 200, -1.0),
        (exp(500), SphereKeys(), 1024, 0.5),
        (exp(317), DuplicatedKeys(), 197, 1.0),
        (exp(150, key_norm="l2"), RademacherKeys(), 2, 1.0),
        (exp(400, readout=Normalized()), RademacherKeys(), 16, 1.0),
    ],
    ids=lambda x: x if isinstance(x, int) else None,
)
def test_exp_of_large_keys_is_refused_without_a_warning(memory, keys, dim, cosine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TheoryUnavailable, match=r"float64|beyond"):
            predict(memory, keys, dim, 2, 4, query_cosine=cosine)


def test_the_other_doors_refuse_too():
    with pytest.raises(TheoryUnavailable, match=r"float64|beyond"):
        trial_moments(exp(500), SphereKeys(), 64)
    with pytest.raises(TheoryUnavailable, match=r"float64|beyond"):
        predict_by_age(exp(500), SphereKeys(), 64, 2, 4)


def test_only_overflow_is_turned_into_a_refusal():
    class Broken(ElementwiseMap):
        def function(self, x, xp):
            raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        trial_moments(LinearMemory(Broken()), GaussianKeys(), 4)
    with pytest.raises(ValueError, match="a bug") as raised, within_float64():
        raise ValueError("a bug")
    assert not isinstance(raised.value, TheoryUnavailable)
    with pytest.raises(TheoryUnavailable), within_float64():
        np.exp(np.array([1e3]))


def test_one_pair_has_no_error_up_to_scale_for_correlated_keys():
    found = predict(LinearMemory(Identity()), EquicorrelatedKeys(0.5), 16, 16, 1)
    assert found.scale_optimal_error == 0 and found.signal_to_noise == np.inf
