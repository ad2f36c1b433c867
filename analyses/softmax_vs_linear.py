"""Index against sheet: ``python -m analyses.softmax_vs_linear``, or ``capmem-softmax-vs-linear`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.softmax_vs_linear import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
