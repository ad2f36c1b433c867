"""One page of a folder of results: ``python -m analyses.report folder=FOLDER``, or ``capmem-report``."""

from typing import Any


def main() -> None:
    """Read the command line, and write the page of each folder."""
    from capmem.sweeps.hydra_front import launch

    launch("report", tell)


def tell(job: Any) -> bool:
    """Write the page of each folder, and say where it is."""
    from capmem.report.application import show

    return show(job)


if __name__ == "__main__":
    main()
