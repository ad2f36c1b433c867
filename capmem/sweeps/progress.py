"""Progress: a bar in a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType

PLAIN_SECONDS = 5.0


class Progress:
    """Shows how many of `total` slabs are done.

    Parameters
    ----------
    total : int
        How many there are.
    show : bool
        False: silent.
    """

    def __init__(self, total: int, show: bool = True) -> None:
        self.total, self.done, self.show = total, 0, show and total > 0
        self.started = self.told = time.monotonic()
        self.bar = None

    def __enter__(self) -> Progress:
        if self.show and sys.stderr is not None and sys.stderr.isatty():
            from tqdm.auto import tqdm

            self.bar = tqdm(total=self.total, unit="slab", leave=True, dynamic_ncols=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def step(self) -> None:
        """Count one slab as done."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        elif self.show and (self.done == self.total or time.monotonic() - self.told >= PLAIN_SECONDS):
            self.told = time.monotonic()
            print(f"{self.done} of {self.total} slabs, {self.told - self.started:.0f} s", file=sys.stderr)
