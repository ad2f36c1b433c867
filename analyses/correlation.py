"""Keys and features that share a mean: ``python -m analyses.correlation``, or ``capmem-correlation`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.correlation import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
