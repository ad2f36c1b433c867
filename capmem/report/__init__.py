"""One self-contained page of a folder of results: what was run, findings, figures, numbers, how to repeat it."""

from capmem.report.write import NAME, write

__all__ = ["NAME", "write"]
