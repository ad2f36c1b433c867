"""How far a sweep is: ``python -m analyses.status folder=FOLDER``, or ``capmem-status``."""

from typing import Any


def main() -> None:
    """Read the command line, and tell the state of each folder."""
    from capmem.sweeps.hydra_front import launch

    launch("status", tell)


def tell(job: Any) -> bool:
    """Print the state of each folder."""
    from capmem.schema import require
    from capmem.sweeps.status import status

    for config in job.configs:
        require(isinstance(config["folder"], str), "folder", config["folder"], "the folder of a sweep, folder=FOLDER")
    print("\n".join(str(status(config["folder"])) for config in job.configs))
    return True


if __name__ == "__main__":
    main()
