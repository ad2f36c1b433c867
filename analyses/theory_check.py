"""Theory against simulation: ``python -m analyses.theory_check``, or ``capmem-theory-check`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.theory_check import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
