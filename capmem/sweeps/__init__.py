"""Sweeps: points, and the engine that runs and stores them."""

from capmem.sweeps.engine import Failure, Stopped, SweepReport, run
from capmem.sweeps.points import experiment_from, point_key

__all__ = ["Failure", "Stopped", "SweepReport", "experiment_from", "point_key", "run"]
