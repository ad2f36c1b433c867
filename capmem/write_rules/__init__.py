"""Write rules: how a pair enters the state, and their registry."""

from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule
from capmem.write_rules.hebbian import Hebbian

register = WRITE_RULES.register

__all__ = ["WRITE_RULES", "Hebbian", "RuleState", "WriteRule", "register"]
