"""How fast the sweep is: ``python -m analyses.benchmark``, or ``capmem-benchmark`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.benchmark import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
