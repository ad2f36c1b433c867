"""Where a sweep runs when it runs in tasks: how many there are, and what each asks for."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capmem.schema import coerce, require, unknown

KINDS = ("slurm", "local", "debug")
WHERE = "hydra.launcher"  # the configuration key of these settings
SETTINGS_OF = {"time": "timeout_min", "mem": "mem_gb", "partition": "partition", "cpus_per_task": "cpus_per_task"}
OURS = ("array", "error", "job_name", "nodes", "ntasks", "ntasks_per_node", "open_mode", "output", "signal")
HINTS: dict[str, Any] = {
    "kind": str,
    "shards": int,
    "workers": int,
    "cpus_per_task": int | None,
    "timeout_min": int,
    "mem_gb": float | None,
    "partition": str | None,
}


@dataclass(frozen=True)
class Cluster:
    """Runs a sweep in tasks, each with its share of the points and its own parts in the sweep's folder.

    Parameters
    ----------
    kind : str
        slurm: one array of tasks; local: the same on this machine, a process a task; debug: one task after the
        other in this process.
    shards : int
        Tasks; never more than there are slabs.
    workers : int
        Processes of a task, each with one BLAS thread.
    cpus_per_task : int, optional
        Cores that a task asks for (default: as many as it has workers). This and what follows next to
        timeout_min concerns slurm only.
    timeout_min : int
        Minutes after which a task is ended; it stores what it has, and a rerun computes the rest.
    mem_gb : float, optional
        Memory that a task asks for (default: the cluster's).
    partition : str, optional
        Where the tasks run (default: the cluster's).
    options : mapping, optional
        Further sbatch options, ``{"account": "x", "constraint": "avx2"}``, and submitit's own: setup, a list of
        shell commands that go before, array_parallelism, signal_delay_s.

    Raises
    ------
    ValueError
        For a setting that is not valid.
    """

    kind: str
    shards: int = 2
    workers: int = 1
    cpus_per_task: int | None = None
    timeout_min: int = 60
    mem_gb: float | None = None
    partition: str | None = None
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, hint in HINTS.items():
            object.__setattr__(self, name, coerce(getattr(self, name), hint, name))
        if self.kind not in KINDS:
            raise ValueError(unknown("cluster", self.kind, KINDS))
        for name in ("shards", "workers", "timeout_min"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer of at least 1")
        least = f"an integer of at least workers={self.workers}, or null"
        require((self.cpus_per_task or self.workers) >= self.workers, "cpus_per_task", self.cpus_per_task, least)
        require(self.mem_gb is None or 0 < self.mem_gb < float("inf"), "mem_gb", self.mem_gb, "a positive number")
        options: Any = {} if self.options is None else self.options
        require(isinstance(options, Mapping), "options", options, "a mapping of sbatch options")
        object.__setattr__(self, "options", {_option(name): value for name, value in options.items()})

    @property
    def cores(self) -> int:
        """Return how many cores a task asks for."""
        return self.cpus_per_task or self.workers

    def check_available(self) -> None:
        """Refuse a kind that this machine cannot start.

        Raises
        ------
        RuntimeError
            Without submitit, and for slurm without sbatch.
        """
        if self.kind != "debug" and importlib.util.find_spec("submitit") is None:
            raise RuntimeError(f"cluster={self.kind} needs submitit, which is not installed: install capmem[cluster]")
        lacking = [name for name in ("sbatch", "srun", "squeue", "scancel") if shutil.which(name) is None]
        if self.kind == "slurm" and lacking:
            raise RuntimeError(f"cluster=slurm: there is no {lacking[0]} here; start the sweep on a login node")


def cluster_from(settings: Mapping[str, Any]) -> Cluster | None:
    """Return the cluster that the launcher's settings describe; None where they name none.

    Raises
    ------
    ValueError
        For a setting that is not valid, or that says nothing without a cluster.
    RuntimeError
        For a cluster that this machine cannot start.
    """
    others = {name: value for name, value in settings.items() if name != "cluster"}
    defaults = {f.name: f.default for f in dataclasses.fields(Cluster)}
    for name, value in others.items():
        if name not in defaults or name == "kind":
            raise ValueError(unknown("key", f"{WHERE}.{name}", [f"{WHERE}.{key}" for key in settings if key != name]))
        if settings.get("cluster") is None and value != defaults[name]:
            kinds = ", ".join(KINDS)
            raise ValueError(f"{WHERE}.{name} says nothing without {WHERE}.cluster: set that to one of {kinds}")
    if settings.get("cluster") is None:
        return None
    try:
        cluster = Cluster(coerce(settings["cluster"], str, "cluster"), **others)
    except ValueError as error:
        raise ValueError(f"{WHERE}.{error}") from None
    cluster.check_available()
    return cluster


def _option(name: object) -> str:
    """Return the name of an sbatch option as submitit has it; what the cluster says itself is refused."""
    option = str(name).lstrip("-").replace("-", "_")
    if option in SETTINGS_OF:
        raise ValueError(f"options.{name} must not be given: set {SETTINGS_OF[option]}")
    if option in OURS:
        raise ValueError(f"options.{name} must not be given: it follows from the shards and the folder")
    return option
