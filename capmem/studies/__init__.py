"""Analyses: one module a study, each with its settings, its table, its finding and its figures; `frame` runs them."""

from capmem.studies.frame import Study
from capmem.studies.settings import at_least
from capmem.studies.sources import Computed, Options, Swept, Table

__all__ = ["Computed", "Options", "Study", "Swept", "Table", "at_least"]
