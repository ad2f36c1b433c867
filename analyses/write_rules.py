"""Write rules on one stream: ``python -m analyses.write_rules``, or ``capmem-write-rules`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.studies.write_rules import STUDY
    from capmem.sweeps.hydra_front import launch

    launch(STUDY.name, STUDY.show)


if __name__ == "__main__":
    main()
