"""The notes' worked example: ``python -m analyses.worked_example``, or ``capmem-worked-example``."""

from typing import Any


def main() -> None:
    """Read the command line, then print and draw the example."""
    from capmem.sweeps.hydra_front import launch

    launch("worked_example", show)


def show(job: Any) -> bool:
    """Print and draw the example of each configuration."""
    from capmem import figures
    from capmem.schema import construct
    from capmem.studies.prose import wrapped
    from capmem.sweeps.application import run_options
    from capmem.sweeps.folder import check_folder
    from capmem.sweeps.record import save_configuration
    from capmem.worked_example import ThreePairs, tell

    draw = run_options(job.configs)["figures"]
    examples = [construct(ThreePairs, config) for config in job.configs]
    check_folder(job.folder)
    save_configuration(job.folder, job.arguments, job.configs)
    for example in examples:
        print(wrapped(tell(example)), end="\n\n")
        name = "worked_example" if len(examples) == 1 else f"worked_example_{example.cosine:g}_{example.beta:g}"
        if draw:
            paths = figures.save(figures.worked_example(example), job.folder, name)
            print(f"In {job.folder}: {', '.join(path.name for path in paths)}\n")
    return True


if __name__ == "__main__":
    main()
