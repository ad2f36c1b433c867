"""The replication analysis: measure or reuse, judge, print the table, draw."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capmem.figures import save
from capmem.files import replace_file
from capmem.replications import REPLICATIONS
from capmem.replications.base import Replication
from capmem.replications.measurement import with_quoted
from capmem.replications.stored import Asked, tables
from capmem.replications.verdict import Verdict, as_text, count, differing
from capmem.schema import check_fields, construct, require, unknown
from capmem.studies.frame import take_options

if TYPE_CHECKING:
    import pandas as pd

    from capmem.sweeps.hydra_front import Job

ALL = "all"


@dataclass(frozen=True)
class Replicate:
    """What is regenerated.

    Parameters
    ----------
    study : str
        A name in ``REPLICATIONS``, or "all".
    trials : int, optional
        Repetitions (default: each study's own number). With few, intervals are too wide to judge anything.
    seed : int
        Of all draws.
    """

    study: str = ALL
    trials: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.study != ALL and self.study not in REPLICATIONS:
            raise ValueError(unknown("study", self.study, [ALL, *REPLICATIONS]))
        require(self.trials is None or self.trials >= 1, "trials", self.trials, "an integer of at least 1, or null")
        require(self.seed >= 0, "seed", self.seed, "an integer of at least 0")

    def asked(self) -> list[Asked]:
        """Return what is to be measured."""
        chosen = REPLICATIONS.values() if self.study == ALL else [REPLICATIONS[self.study]]
        return [Asked(study.name, self.trials or study.trials, self.seed) for study in chosen]


def show(job: Job) -> bool:
    """Run the analysis of a command line; return whether no verdict differs."""
    from capmem.sweeps.folder import check_folder
    from capmem.sweeps.record import save_configuration

    configs = copy.deepcopy(job.configs)
    options = take_options(configs)
    settings = [construct(Replicate, config) for config in configs]
    if len({(s.trials, s.seed) for s in settings}) > 1:
        raise ValueError("trials and seed cannot be swept: one table has one of each; only study can")
    asked = list(dict.fromkeys(one for s in settings for one in s.asked()))
    check_folder(job.folder)
    save_configuration(job.folder, job.arguments, job.configs)
    found = tables(asked, job.folder, options.workers)
    studies = [REPLICATIONS[one.study] for one in asked]
    full = [with_quoted(table, study.quoted()) for study, table in zip(studies, found, strict=True)]
    verdicts = tell(studies, full)
    replace_file(job.folder / "verdicts.csv", lambda path: verdicts.to_csv(path, index=False))
    for study, table in zip(studies, full, strict=True) if options.figures else ():
        save(study.draw(table), job.folder / "figures", study.name)
    print(_places(job.folder, studies, options.figures))
    return differing(verdicts).empty


def tell(studies: Sequence[Replication], full: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Print a table of verdicts a study, and the sum of all; return all rows."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for study, table in zip(studies, full, strict=True):
        verdicts = list(study.judge(table))
        print(f"{study.name}: {study.source}\n  Checked: {study.checked}.\n")
        print(as_text(verdicts) + "\n")
        rows += [{"study": study.name, **vars(verdict)} for verdict in verdicts]
    frame = pd.DataFrame(rows, columns=["study", *Verdict.__dataclass_fields__])
    print(f"{len(frame)} numbers: {count(frame['verdict'])}.")
    for row in differing(frame).itertuples():
        print(f"  differs: {row.study}, {row.quantity}: {row.published:.4g}, ours {row.ours:.4g}")
    return frame


def _places(folder: Path, studies: Sequence[Replication], drawn: bool) -> str:
    lines = [f"\nIn {folder}:", "  verdicts.csv        every row", "  configuration.yaml  what was asked"]
    if drawn:
        lines += [f"  figures/{s.name}  .png .svg .pdf, and .csv with its numbers" for s in studies]
    return "\n".join(lines)
