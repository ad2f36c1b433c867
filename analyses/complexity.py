"""What attention costs: ``python -m analyses.complexity``, or ``capmem-complexity`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.complexity import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
