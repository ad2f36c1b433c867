"""How much can the heads of a model remember: ``python -m analyses.heads``, or ``capmem-heads`` once installed."""


def main() -> None:
    """Read the command line and run the analysis."""
    from capmem.heads_analysis.application import show
    from capmem.sweeps.hydra_front import launch

    launch("heads", show)


if __name__ == "__main__":
    main()
