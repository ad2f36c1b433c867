"""Predictions: what a memory of given keys retrieves, in closed form or by quadrature."""

from capmem.theory import classical
from capmem.theory.base import Moments, Source, TheoryUnavailable, TrialMoments
from capmem.theory.by_age import AgePrediction, predict_by_age
from capmem.theory.dimension import effective_dimension
from capmem.theory.known import Known
from capmem.theory.moments import moments, trial_moments
from capmem.theory.predict import Prediction, predict

__all__ = [
    "classical",
    "AgePrediction",
    "Known",
    "Moments",
    "Prediction",
    "Source",
    "TheoryUnavailable",
    "TrialMoments",
    "effective_dimension",
    "moments",
    "predict",
    "predict_by_age",
    "trial_moments",
]
