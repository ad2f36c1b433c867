"""What a memory holds: ``python -m analyses.capacity``, or ``capmem-capacity`` once installed."""


def main() -> None:
    """Read the command line, then find capacities and the dimensions needed, and tell and draw them."""
    from capmem.capacity_study import show
    from capmem.sweeps.hydra_front import launch

    launch("capacity", show)


if __name__ == "__main__":
    main()
