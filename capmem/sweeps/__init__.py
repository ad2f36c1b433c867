"""Sweeps: points, and the engine that runs and stores them."""

from capmem.sweeps.engine import SweepReport, run
from capmem.sweeps.points import experiment_from, point_key

__all__ = ["SweepReport", "experiment_from", "point_key", "run"]
