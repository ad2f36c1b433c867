"""Progress: a bar in a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from textwrap import shorten
from types import TracebackType

PLAIN_SECONDS = 5.0
NAME_WIDTH = 100  # letters of a slab's name that are shown


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
        self.total, self.done, self.show = total, 0, show
        self.started = self.told = time.monotonic()
        self.bar = None

    def __enter__(self) -> Progress:
        if self.show and self.total and _shows_bars():
            from tqdm.auto import tqdm

            self.bar = tqdm(total=self.total, unit="slab", leave=True, dynamic_ncols=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def step(self, name: Callable[[], str] = str) -> None:
        """Count one slab as done; its name is asked for only where it is shown."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        elif self.show and (self.done == self.total or time.monotonic() - self.told >= PLAIN_SECONDS):
            self.told = time.monotonic()
            line = f"{self.done} of {self.total} slab{'s' * (self.total != 1)}, {self.told - self.started:.0f} s"
            told = shorten(name(), NAME_WIDTH, placeholder=" ...") if self.total > 1 else ""
            print(f"{line}; last: {told}" if told else line, file=sys.stderr)

    def tell(self, line: str) -> None:
        """Say something that must not get lost in a bar."""
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)
        elif self.show:
            print(line, file=sys.stderr)


def _shows_bars() -> bool:
    """Whether somebody watches: a terminal, or the kernel of a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
