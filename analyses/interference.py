"""What mixes into a value: ``python -m analyses.interference``, or ``capmem-interference`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.interference import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
