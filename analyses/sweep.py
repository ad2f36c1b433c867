"""The sweep: ``python -m analyses.sweep``, or ``capmem-sweep`` once installed. ``--help`` explains the keys."""


def main() -> None:
    """Read the command line and run the sweep; when it does not say what to run, the preset ``main``."""
    from capmem.sweeps.application import sweep
    from capmem.sweeps.hydra_front import launch

    launch("sweep", sweep, bare_preset="main")


if __name__ == "__main__":
    main()
