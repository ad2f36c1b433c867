"""How a memory fills: ``python -m analyses.memory_growth``, or ``capmem-memory-growth`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.memory_growth import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
