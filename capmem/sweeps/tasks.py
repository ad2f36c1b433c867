"""Start, watch and cancel the tasks of a sweep: on SLURM, as processes here, or one after the other."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from capmem.sweeps.cluster import Cluster
from capmem.sweeps.shard import Shard, run_shard, run_task

FLUSH_SECONDS = 1.5  # that a cancelled task has to store what is finished
QUEUE_SECONDS = 10.0  # between two questions to SLURM
SUBMITIT = ("array_parallelism", "setup", "signal_delay_s", "srun_args", "teardown", "use_srun")  # no sbatch options


class Tasks(Protocol):
    """The tasks of one run.

    Attributes
    ----------
    settling : float
        Seconds after their end until all that they have stored can be seen here.
    """

    settling: float

    def running(self) -> bool:
        """Whether one of them still runs, or waits to."""

    def cancel(self) -> None:
        """End those that run; they store what they have."""

    def told(self) -> list[str]:
        """Return how those ended that did not do all their work, a line each."""


class DebugTasks:
    """Tasks that run in this process, one whenever somebody asks whether they run."""

    settling = 0.0

    def __init__(self, cluster: Cluster, shards: list[Shard], work: Path) -> None:
        self.waiting = list(shards)

    def running(self) -> bool:
        if self.waiting:
            run_shard(self.waiting.pop(0))
        return bool(self.waiting)

    def cancel(self) -> None:
        self.waiting.clear()

    def told(self) -> list[str]:
        return []


class LocalTasks:
    """Tasks that are processes of this machine; none outlives whoever started it, however that ends."""

    settling = 0.0

    def __init__(self, cluster: Cluster, shards: list[Shard], work: Path) -> None:
        import fcntl

        import submitit

        self.lease = (work / "lease").open("w")
        fcntl.flock(self.lease, fcntl.LOCK_EX)
        executor = submitit.LocalExecutor(work, python=interpreter())
        executor.update_parameters(timeout_min=cluster.timeout_min, stderr_to_stdout=True)
        held = [Shard(s.slabs, s.folder, s.workers, work / "lease") for s in shards]
        self.jobs = [executor.submit(run_task, shard) for shard in held]

    def running(self) -> bool:
        return any(not job.done() for job in self.jobs)

    def cancel(self) -> None:
        self._signal(signal.SIGTERM)
        _wait(lambda: not self.running())
        self.lease.close()
        _wait(lambda: not self.running())
        self._signal(signal.SIGKILL)

    def told(self) -> list[str]:
        return _told(self.jobs)

    def _signal(self, number: int) -> None:
        """Signal the process that started each task; it passes on what it can."""
        for job in self.jobs:
            if not job.done():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(job.job_id), number)


class SlurmTasks:
    """Tasks of one SLURM array."""

    settling = 30.0  # a network file system may show a folder as it was so long ago

    def __init__(self, cluster: Cluster, shards: list[Shard], work: Path) -> None:
        import submitit

        executor = submitit.SlurmExecutor(work, python=interpreter())
        options = cluster.options or {}
        own = {name: value for name, value in options.items() if name in SUBMITIT}
        further = {name: value for name, value in options.items() if name not in SUBMITIT}
        asked: dict[str, Any] = {"partition": cluster.partition, "additional_parameters": further} | own
        if cluster.mem_gb is not None:
            asked["mem"] = f"{max(round(cluster.mem_gb * 1024), 1)}MB"
        asked |= {"time": cluster.timeout_min, "cpus_per_task": cluster.cores, "job_name": "capmem"}
        executor.update_parameters(stderr_to_stdout=True, **asked)
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # submitit prints what it raises
                self.jobs = executor.map_array(run_task, shards)
        except submitit.core.utils.FailedJobError as error:
            told = "; ".join(line.removeprefix("sbatch: error: ") for line in str(error).splitlines())
            raise RuntimeError(f"sbatch refused the tasks: {told}") from None
        self.ids = {job.job_id for job in self.jobs}
        self.asked = time.monotonic()

    def running(self) -> bool:
        unfinished = {job.job_id for job in self.jobs if not job.paths.result_pickle.exists()}
        if unfinished and time.monotonic() - self.asked > QUEUE_SECONDS:
            return bool(unfinished & self._queued())
        return bool(unfinished)

    def cancel(self) -> None:
        if not self.told():
            return
        arrays = sorted({job.split("_")[0] for job in self.ids})
        subprocess.run(["scancel", *arrays], capture_output=True)
        _wait(lambda: not self._queued())
        subprocess.run(["scancel", "--signal=KILL", "--full", *arrays], capture_output=True)

    def told(self) -> list[str]:
        return _told(self.jobs)

    def _queued(self) -> set[str]:
        """Return the tasks that SLURM runs or will run; all, if it does not answer."""
        self.asked = time.monotonic()
        ask = ["squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i"]
        answer = subprocess.run(ask, capture_output=True, text=True)
        return self.ids & set(answer.stdout.split()) if answer.returncode == 0 else self.ids


RUNNERS: dict[str, Callable[[Cluster, list[Shard], Path], Tasks]] = {
    "slurm": SlurmTasks,
    "local": LocalTasks,
    "debug": DebugTasks,
}


def interpreter() -> str:
    """Return the shell command of a Python that finds modules where this process finds them."""
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    return shlex.join(["env", f"PYTHONPATH={places}", sys.executable])


def _told(jobs: list[Any]) -> list[str]:
    lines = []
    for job in jobs:
        outcome, value = "lost", f"it was killed, or ran out of time or memory; its log is {job.paths.stdout}"
        with contextlib.suppress(FileNotFoundError):
            outcome, value = pickle.loads(job.paths.result_pickle.read_bytes())
        if outcome != "success":
            lines.append(f"task {job.job_id}: {str(value).strip().splitlines()[-1]}")
    return lines


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + FLUSH_SECONDS
    while not until() and time.monotonic() < deadline:
        time.sleep(0.1)
