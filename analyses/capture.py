"""Heads of a model that reads a text: ``python -m analyses.capture``, or ``capmem-capture``."""

from typing import Any


def main() -> None:
    """Read the command line, then capture."""
    from capmem.sweeps.hydra_front import launch

    launch("capture", show)


def show(job: Any) -> bool:
    """Capture what each configuration says; all are checked before the first model runs."""
    from capmem.heads.application import Task, run
    from capmem.schema import construct

    tasks = [construct(Task, config) for config in job.configs]
    for task in tasks:
        run(task, job.folder)
    return True


if __name__ == "__main__":
    main()
