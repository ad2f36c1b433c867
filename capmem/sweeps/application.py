"""The sweep application: from plain configurations to stored results, tables and figures."""

from __future__ import annotations

import sys
from typing import Any

from capmem import results, store
from capmem.capacity import Criterion
from capmem.memory import LinearMemory
from capmem.schema import coerce, require, unknown
from capmem.sweeps.allocation import keep_freed_memory
from capmem.sweeps.command_line import RUN_KEYS
from capmem.sweeps.engine import run
from capmem.sweeps.folder import check_folder
from capmem.sweeps.grid import Config
from capmem.sweeps.hydra_front import Job
from capmem.sweeps.points import experiment_from, point_key
from capmem.sweeps.record import save_configuration

HINTS: dict[str, Any] = {
    "workers": int | None,
    "figures": bool,
    "retry_failed": bool,
    "criterion": str,
    "threshold": float,
}


def sweep(job: Job) -> bool:
    """Run a sweep and show it; return whether all slabs went well. All points are checked before the first runs."""
    options = run_options(job.configs)
    if options["criterion"] not in results.METRICS:
        raise ValueError(unknown("criterion", options["criterion"], results.METRICS))
    criterion = Criterion(options["criterion"], options["threshold"])
    points = [experiment_from(config) for config in job.configs]
    check_folder(job.folder)
    store.check(job.folder)  # a folder that cannot be resumed is refused as it is
    save_configuration(job.folder, job.arguments, job.configs)
    how = {name: options[name] for name in ("workers", "retry_failed")}
    cached = [point for point in points if not isinstance(point.memory, LinearMemory)]  # has no map, rule, read-out
    if repeated := len(cached) - len({(point_key(point), point.num_pairs, point.trials) for point in cached}):
        told = "what tells them apart has no effect there, as a feature map under memory=softmax"
        print(f"{repeated} of {len(points)} combinations repeat another one: {told}", file=sys.stderr)
    keep_freed_memory()
    report = run(points, job.folder, cluster=job.cluster, **how)
    from capmem.sweeps.present import finish  # pandas and figures are for the end

    finish(report, options["figures"], criterion)
    return report.ok


sweep.spreads = True  # type: ignore[attr-defined]  # it takes a cluster


def run_options(configs: list[Config]) -> Config:
    """Take out of all configurations what says how to run and show, not what; it must be one for all.

    Raises
    ------
    ValueError
        If it is swept, or not valid.
    """
    options: Config = {}
    for key in RUN_KEYS:
        found = {repr(config[key]): config.pop(key) for config in configs if key in config}
        if len(found) > 1:
            raise ValueError(f"{key} cannot be swept, got {', '.join(found)}")
        if found:
            options[key] = coerce(next(iter(found.values())), HINTS[key], key)
    workers = options.get("workers")
    require(workers is None or workers >= 1, "workers", workers, "an integer of at least 1, or null")
    return options
