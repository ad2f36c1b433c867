"""capmem: how many key/value pairs can a linear-attention state hold, and what decides it?"""

from capmem._version import NUMERICS
from capmem.experiment import Experiment, evaluate
from capmem.memory import LinearMemory, SoftmaxMemory

__version__ = "0.1.0"

__all__ = ["NUMERICS", "Experiment", "LinearMemory", "SoftmaxMemory", "__version__", "evaluate"]
