"""A metric over two axes of a sweep: ``python -m analyses.heatmap``, or ``capmem-heatmap`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.heatmap import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
