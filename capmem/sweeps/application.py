"""The sweep application: from plain configurations to stored results, tables and figures."""

from __future__ import annotations

from capmem.sweeps.command_line import RUN_KEYS
from capmem.sweeps.engine import run
from capmem.sweeps.grid import Config
from capmem.sweeps.hydra_front import Job
from capmem.sweeps.points import experiment_from
from capmem.sweeps.present import finish
from capmem.sweeps.record import save_configuration


def sweep(job: Job) -> bool:
    """Run a sweep and show it; return whether all slabs went well. All points are checked before the first runs."""
    options = run_options(job.configs)
    points = [experiment_from(config) for config in job.configs]
    save_configuration(job.folder, job.arguments, job.configs)
    report = run(points, job.folder, workers=options["workers"])
    finish(report, options["figures"])
    return report.ok


def run_options(configs: list[Config]) -> Config:
    """Take out of all configurations what says how to run, not what; it must be one for all.

    Raises
    ------
    ValueError
        If it is swept, or not valid.
    """
    options: Config = {}
    for key in RUN_KEYS:
        found = {repr(value): value for value in (config.pop(key) for config in configs)}
        if len(found) > 1:
            raise ValueError(f"{key} cannot be swept, got {', '.join(found)}")
        options[key] = next(iter(found.values()))
    if not isinstance(options["figures"], bool):
        raise ValueError(f"figures must be true or false, got {options['figures']!r}")
    workers = options["workers"]
    if workers is not None and (type(workers) is not int or workers < 1):
        raise ValueError(f"workers must be an integer of at least 1, or null, got {workers!r}")
    return options
