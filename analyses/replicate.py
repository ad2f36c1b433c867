"""Published numbers beside ours: ``python -m analyses.replicate``, or ``capmem-replicate`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.replications.application import show
    from capmem.sweeps.hydra_front import launch

    launch("replicate", show)


if __name__ == "__main__":
    main()
