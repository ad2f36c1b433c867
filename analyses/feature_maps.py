"""Feature maps side by side: ``python -m analyses.feature_maps``, or ``capmem-feature-maps`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.feature_maps import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
