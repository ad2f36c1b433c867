"""Write rules: how a pair enters the state, and their registry."""

from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule
from capmem.write_rules.decay import Decay, GatedDecay
from capmem.write_rules.delta import Delta, GatedDelta, Oja, StabilityWarning
from capmem.write_rules.hebbian import Hebbian
from capmem.write_rules.least_squares import LeastSquares

register = WRITE_RULES.register

__all__ = [
    "WRITE_RULES",
    "Decay",
    "Delta",
    "GatedDecay",
    "GatedDelta",
    "Hebbian",
    "LeastSquares",
    "Oja",
    "RuleState",
    "StabilityWarning",
    "WriteRule",
    "register",
]
