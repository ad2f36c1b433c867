"""Where it is unstable: ``python -m analyses.stability``, or ``capmem-stability`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.stability import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
