"""Capacity N*: the number of pairs up to which a criterion holds, with an interval and a flag; and its inverse.

N* depends on the criterion, so every estimate carries its own; and a search or a table that does not bracket it
gives a bound instead of a number.
"""

from capmem.capacity.criterion import CapacityEstimate, Criterion
from capmem.capacity.dimension import RequiredDim, required_dim, required_table
from capmem.capacity.estimate import estimate
from capmem.capacity.law import PowerLaw, power_law
from capmem.capacity.pareto import pareto
from capmem.capacity.table import crossing, from_curves, from_table

__all__ = [
    "CapacityEstimate",
    "Criterion",
    "PowerLaw",
    "RequiredDim",
    "crossing",
    "estimate",
    "from_curves",
    "from_table",
    "pareto",
    "power_law",
    "required_dim",
    "required_table",
]
