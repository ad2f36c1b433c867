"""The state of a linear memory: what its rule holds, its means, and what was counted."""

from __future__ import annotations

from dataclasses import dataclass

from capmem._arrays import Array
from capmem.write_rules import RuleState


@dataclass(frozen=True, eq=False)
class MemoryState:
    """The state of a :class:`LinearMemory`: a value that no call changes in place.

    Attributes
    ----------
    rule : RuleState
        S, z and what the write rule needs besides.
    key_mean, feature_mean : array or None
        The fixed vectors that are taken from keys and features, where the memory centres.
    num_pairs : int
        Pairs written so far.
    zero_rows : int
        Keys (or their features) so far that have no norm, and stayed zero.
    own_mean : bool
        Whether a mean is that of the first write; such a state takes no second one.
    """

    rule: RuleState
    key_mean: Array | None = None
    feature_mean: Array | None = None
    num_pairs: int = 0
    zero_rows: int = 0
    own_mean: bool = False
