"""Errors of the approximations, measured against simulation: by metric, kind of map and law of keys."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from capmem import ensembles, feature_maps
from capmem.theory.case import Case
from capmem.theory.known import Known
from capmem.theory.laws import reduced
from capmem.theory.structured import linear_memory

MAPS = {
    "identity": ("Identity",),
    "mild": ("ReLU", "CosFormer", "RandomReLU", "SiLU", "RandomFourierFeatures", "Taylor"),
    "offset": ("EluPlusOne", "Softplus", "PositiveRandomFeatures"),
    "exp": ("Exp",),
    "peaked": ("SquaredReLU", "Dpfp", "Polynomial"),
}
LAWS = {
    "plain": ("SphereKeys", "RademacherKeys", "OrthonormalKeys", "TightFrameKeys"),
    "gaussian": ("GaussianKeys",),
    "correlated": ("EquicorrelatedKeys",),
    "sequence": ("AutoregressiveKeys", "ClusteredKeys"),  # of a correlation up to 1/2; beyond it "drifting"
    "repeated": ("DuplicatedKeys",),
    "spectrum": ("PowerLawKeys",),
}
FAMILY = {getattr(feature_maps, name): family for family, names in MAPS.items() for name in names}
LAW = {getattr(ensembles, name): law for law, names in LAWS.items() for name in names}
# What is measured, the law of keys, then a column a family of maps in the order of MAPS: percents at d = v = 16 and
# N = 4, 8, 32, then at d = 48, v = 32 and N = 4, 8, 64. The largest found for exact cues and ones of cosine 0.7, all
# laws of values and all steps, beyond three standard errors, and a quarter more. Drifting keys: correlation .7 to .95,
# 4 and 16 clusters; repeated ones: fraction .1 to .8.
ERRORS = """
cosine           plain      1,1,2,1,1,1       1,2,3,1,1,2       1,1,1,1,1,1       1,1,1,1,1,1       1,3,4,1,1,2
cosine           gaussian   -                 3,3,4,1,1,3       1,1,1,1,1,1       16,26,35,7,11,23  4,8,9,1,3,3
cosine           correlated 1,2,6,1,1,3       3,5,9,1,4,6       2,2,1,1,1,1       2,4,10,1,3,4      8,11,17,2,5,8
cosine           sequence   1,2,1,1,1,2       -                 -                 -                 -
cosine           drifting   1,2,2,2,3,3       -                 -                 -                 -
cosine           repeated   6,11,3,8,13,2     10,13,5,7,7,2     2,2,1,1,1,1       22,20,4,22,18,3   37,41,30,23,24,10
cosine           spectrum   4,6,10,3,5,12     8,14,18,5,8,19    1,1,1,1,1,1       1,1,1,1,1,1       49,61,66,51,64,70
top1             plain      1,1,1,1,1,1       5,9,5,3,7,17      3,13,16,9,7,46    2,6,13,8,6,41     6,9,17,3,3,6
top1             gaussian   -                 3,5,8,2,3,5       3,5,15,2,1,43     28,35,47,16,19,39 1,11,8,2,3,4
top1             correlated 2,13,22,3,3,6     15,16,14,12,11,28 6,13,21,7,8,50    6,11,15,7,7,50    19,23,29,12,15,9
top1             sequence   7,9,17,3,2,10     -                 -                 -                 -
top1             drifting   11,16,17,7,9,28   -                 -                 -                 -
top1             spectrum   4,11,20,2,3,26    17,23,26,12,19,33 1,7,13,1,7,46     1,1,3,2,1,43      50,74,65,55,78,61
nearest          plain      1,1,-,1,1,-       -                 -                 -                 -
nearest          correlated 2,13,-,1,2,-      -                 -                 -                 -
nearest          sequence   7,11,-,2,2,-      -                 -                 -                 -
nearest          drifting   35,123,-,18,72,-  -                 -                 -                 -
nearest          spectrum   1,6,-,1,1,-       -                 -                 -                 -
linear_optimal   plain      1,1,1,2,1,1       1,1,1,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       2,2,1,1,1,1
linear_optimal   gaussian   1,1,1,1,1,1       15,2,1,2,1,1      1,1,1,1,1,1       81,48,14,84,80,10 28,11,1,13,2,1
linear_optimal   correlated 1,1,1,1,1,1       3,2,1,1,3,1       1,1,1,1,1,1       1,2,1,1,1,1       11,6,2,5,2,1
linear_optimal   sequence   3,1,1,17,7,1      -                 -                 -                 -
linear_optimal   drifting   3,1,1,17,7,1      -                 -                 -                 -
linear_optimal   repeated   8,6,2,17,8,1      8,7,2,7,5,1       3,3,1,1,1,1       10,8,2,11,7,1     26,12,4,27,11,1
linear_optimal   spectrum   10,6,2,15,5,1     26,13,2,11,10,2   1,1,1,1,1,1       1,1,1,1,1,1       25,15,3,28,15,2
linear_odds      plain      34,3,1,37,2,1     22,2,1,16,1,1     14,1,1,1,1,1      1,1,1,1,1,1       17,16,3,29,9,1
linear_odds      gaussian   14,4,1,27,2,1     1,1,2,1,1,1       2,1,1,1,1,1       18,40,53,30,67,29 22,16,3,8,4,1
linear_odds      correlated 1,2,1,1,2,1       1,6,8,1,7,10      1,1,1,1,1,1       1,2,1,1,1,1       4,8,7,1,1,1
linear_odds      sequence   22,3,3,40,19,1    -                 -                 -                 -
linear_odds      drifting   22,3,4,137,25,1   -                 -                 -                 -
linear_odds      repeated   43,46,13,203,45,5 40,57,18,31,35,1  20,28,10,10,9,3   44,69,22,38,56,6  61,106,44,89,75,10
linear_odds      spectrum   4,10,5,8,10,3     24,27,9,25,21,7   1,1,1,1,1,1       1,1,1,1,1,1       -,-,31,-,-,22
divided_raw      plain      -                 1,1,1,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       1,4,1,1,1,1
divided_raw      gaussian   -                 5,6,2,1,1,1       1,1,1,1,1,1       14,9,3,2,5,1      1,4,2,1,1,1
divided_raw      correlated -                 1,1,1,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       1,4,3,1,1,1
divided_optimal  plain      -                 1,1,1,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       4,7,1,1,1,1
divided_optimal  gaussian   -                 10,12,5,1,1,8     1,1,1,1,1,1       11,12,4,1,6,2     8,5,3,1,1,1
divided_optimal  correlated -                 1,2,2,1,2,1       1,1,1,1,1,1       1,1,1,1,1,1       1,2,5,1,1,2
divided_odds     plain      -                 1,1,2,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       11,7,2,18,1,1
divided_odds     gaussian   -                 16,11,9,1,1,11    1,1,1,1,1,1       12,30,32,1,14,12  5,4,6,30,14,3
divided_odds     correlated -                 1,5,11,1,5,7      5,1,1,1,1,1       1,1,1,1,1,1       1,10,31,1,1,14
normed_raw       plain      1,1,1,1,1,1       1,1,2,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       1,4,3,1,1,1
normed_raw       gaussian   1,1,1,1,1,1       15,7,4,1,4,6      1,1,1,1,1,1       23,23,8,18,10,3   9,22,11,1,1,1
normed_raw       correlated 1,1,3,1,1,2       2,3,3,1,2,1       1,1,1,1,1,1       1,1,1,1,1,1       19,12,8,5,6,2
normed_raw       sequence   1,1,1,1,1,2       -                 -                 -                 -
normed_raw       drifting   1,2,1,15,11,3     -                 -                 -                 -
normed_raw       repeated   8,8,2,13,11,1     -                 -                 -                 -
normed_raw       spectrum   3,16,8,10,12,8    -                 -                 -                 -
normed_optimal   plain      1,1,1,6,1,1       1,2,2,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       1,5,3,1,1,1
normed_optimal   gaussian   1,1,1,1,1,1       16,7,4,1,5,5      1,1,1,1,1,1       20,16,4,16,8,2    13,22,9,1,1,1
normed_optimal   correlated 1,2,2,1,1,1       3,3,2,1,2,1       1,1,1,1,1,1       1,1,1,1,1,1       18,10,5,6,6,2
normed_optimal   sequence   1,1,1,5,1,1       -                 -                 -                 -
normed_optimal   drifting   4,3,1,18,11,2     -                 -                 -                 -
normed_optimal   repeated   15,12,2,18,13,1   -                 -                 -                 -
normed_optimal   spectrum   5,15,5,11,12,5    -                 -                 -                 -
normed_odds      plain      25,2,1,28,1,1     1,3,5,1,1,1       1,1,1,1,1,1       1,1,1,1,1,1       27,12,5,1,12,1
normed_odds      gaussian   8,1,1,1,1,1       15,11,7,1,5,7     1,1,1,1,1,1       -,40,33,13,16,12  25,23,18,1,1,2
normed_odds      correlated 1,5,14,1,3,7      1,8,13,1,5,6      1,1,1,1,1,1       1,1,1,1,1,1       1,25,31,4,10,12
normed_odds      sequence   18,3,3,21,6,5     -                 -                 -                 -
normed_odds      drifting   19,7,3,134,40,8   -                 -                 -                 -
normed_odds      repeated   79,85,20,146,98,6 -                 -                 -                 -
normed_odds      spectrum   1,24,21,16,18,23  -                 -                 -                 -
rule_optimal     plain      2,2,1,1,1,1       9,3,1,7,1,1       10,3,1,9,3,1      8,3,1,6,2,1       1,1,1,1,1,1
rule_optimal     gaussian   2,1,1,8,1,1       1,2,1,1,1,1       9,3,1,8,3,1       -,9,2,1,3,1       -,4,2,1,1,1
rule_optimal     correlated 5,2,1,4,1,1       8,3,1,7,1,1       11,3,1,8,1,1      9,3,1,7,2,1       1,1,1,2,1,1
rule_odds        plain      23,3,1,2,1,1      72,16,4,63,5,1    75,19,8,72,15,3   69,17,9,60,9,1    37,13,1,19,6,1
rule_odds        gaussian   16,4,1,3,9,1      44,5,1,44,3,1     60,13,7,62,12,15  -,18,9,7,6,1      -,1,5,13,1,1
rule_odds        correlated 38,1,1,52,5,1     69,16,12,64,6,1   97,18,13,72,7,1   78,18,11,65,8,1   14,3,1,18,2,1
"""
PLACES = "{} at d = v = 16, N = 4, 8, 32, {} at d = 48, v = 32, N = 4, 8, 64"
LEAST_DIM, WIDE_KEYS, WIDE_VALUES = 16, 48, 32
NOT_MEASURED = Known("not measured for such maps, keys and values", math.inf)


class Percents(NamedTuple):
    """Errors at d = v = 16 and at d = 48, v = 32, for few, some and many pairs."""

    narrow: tuple[float, ...]
    wide: tuple[float, ...]

    def at(self, key_dim: int, value_dim: int, num_pairs: int) -> float:
        """Return the error that was measured at the nearest smaller sizes; between two numbers of pairs the larger."""
        if min(key_dim, value_dim) < LEAST_DIM or num_pairs < 4:
            return math.inf
        wide = key_dim >= WIDE_KEYS and value_dim >= WIDE_VALUES
        few, some, many = self.wide if wide else self.narrow
        if num_pairs >= (64 if wide else 32):
            return many / 100
        between = (few, some) if num_pairs < 8 else (some, many)
        return max((x for x in between if math.isfinite(x)), default=math.inf) / 100


def measured(what: str, case: Case) -> Known:
    """Return the errors of one metric for the map and keys of a case.

    Parameters
    ----------
    what : str
        The first word of a line of :data:`ERRORS`.
    case : Case
        Of a linear memory.
    """
    family = FAMILY.get(type(linear_memory(case).feature_map), "")
    keys: Any = reduced(case.keys)
    law = LAW.get(type(keys), "")
    if law == "correlated" and keys.correlation == 0:
        law = "plain" if keys.unit_norm else "gaussian"
    if law == "sequence" and abs(keys.correlation) > 0.5:
        law = "drifting"
    return _notes().get((what, law, family), NOT_MEASURED)


@lru_cache(maxsize=1)
def _notes() -> dict[tuple[str, str, str], Known]:
    found = {}
    for line in ERRORS.strip().splitlines():
        what, law, *cells = line.split()
        for family, cell in zip(MAPS, cells, strict=True):
            if cell != "-":
                numbers = [float(x) if x != "-" else math.inf for x in cell.split(",")]
                found[what, law, family] = _note(Percents(tuple(numbers[:3]), tuple(numbers[3:])))
    return found


def _note(percents: Percents) -> Known:
    narrow, wide = (", ".join("unknown" if math.isinf(x) else f"{x:g}%" for x in part) for part in percents)
    return Known("up to " + PLACES.format(narrow, wide) + "; not measured below", percents.at)
