"""What the heads of a trained model would do in a linear memory: how much they hold, why, and which to convert."""

from capmem.heads_analysis.settings import HeadsAnalysis
from capmem.heads_analysis.tables import Tables, analyse
from capmem.heads_analysis.task import Analysed, analysed

__all__ = ["Analysed", "HeadsAnalysis", "Tables", "analyse", "analysed"]
