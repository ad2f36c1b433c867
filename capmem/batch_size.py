"""How many trials go together: fewer where they need care, more again where they no longer do."""

from __future__ import annotations

from dataclasses import dataclass

MOST_TOGETHER = 64  # trials in a batch
ALWAYS_CAREFUL = 3  # trials in a row that need care: from then on each is run so at once
GROWING = 8  # batches in a row that go well: then they may be larger again


@dataclass
class BatchSize:
    """The size of the next batch, from how the last ones went.

    Parameters
    ----------
    alone : int
        Trials in a row that needed care, each by itself.
    most : int
        The largest batch that is tried.
    well : int
        Batches in a row that needed none.
    """

    alone: int = 0
    most: int = MOST_TOGETHER
    well: int = 0

    @property
    def careful(self) -> bool:
        """Whether each trial is run with care at once."""
        return self.alone >= ALWAYS_CAREFUL

    def next(self, possible: int) -> int:
        """Return the size of the next batch."""
        return 1 if self.careful else min(self.most, possible)

    def failed(self, size: int) -> None:
        """Take note that a batch needs care."""
        self.well, self.most = 0, max(1, size // 2)
        self.alone += size == 1

    def went_well(self) -> None:
        """Take note that a batch needed none."""
        self.well += 1
        if not self.careful:
            self.alone = 0
        if self.well >= GROWING:
            self.well, self.most = 0, min(MOST_TOGETHER, 2 * self.most)
