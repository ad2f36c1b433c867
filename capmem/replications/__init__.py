"""Published experiments, regenerated without training: one module a study, each with verdicts that can fail."""

from capmem.replications.arora2024 import ARORA2024
from capmem.replications.base import Replication, Task
from capmem.replications.cabannes2024 import CABANNES2024
from capmem.replications.classical import CLASSICAL
from capmem.replications.feature_cosines import FEATURE_COSINES
from capmem.replications.measurement import Estimate, Measurement
from capmem.replications.nichani2024 import NICHANI2024
from capmem.replications.ramsauer2021 import RAMSAUER2021
from capmem.replications.schlag2021 import SCHLAG2021
from capmem.replications.verdict import Verdict, compare, not_comparable
from capmem.replications.zhong2025 import ZHONG2025

REPLICATIONS: dict[str, Replication] = {
    study.name: study
    for study in (
        SCHLAG2021,
        CABANNES2024,
        ZHONG2025,
        NICHANI2024,
        RAMSAUER2021,
        CLASSICAL,
        ARORA2024,
        FEATURE_COSINES,
    )
}

__all__ = ["REPLICATIONS", "Estimate", "Measurement", "Replication", "Task", "Verdict", "compare", "not_comparable"]
