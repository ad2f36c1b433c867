"""Log-spaced values on the command line: ``num_pairs=geomspace(8,1024,8)``."""

from __future__ import annotations

import math
import re

CALL = re.compile(r"\bgeomspace\(([^()]*)\)")
DIGITS = 12  # as many as a range keeps: 0.01, not 0.010000000000000002
MOST = 10_000


def expanded(text: str) -> str:
    """Write out every ``geomspace(start, stop, count)`` in a text as its values, with commas between them.

    Both ends are among them. Between whole numbers lie whole numbers, each of them once.

    Raises
    ------
    ValueError
        If it cannot be read, or the ends or the count are out of range.
    """
    return CALL.sub(lambda call: ",".join(_values(call.group(0), call.group(1).split(","))), text)


def _values(told: str, words: list[str]) -> list[str]:
    try:
        first, last, count = float(words[0]), float(words[1]), int(words[2])
        usable = len(words) == 3 and first > 0 and last > 0 and 2 <= count <= MOST
        usable = usable and math.isfinite(first) and math.isfinite(last)
    except (ValueError, IndexError):
        usable = False
    if not usable:
        raise ValueError(f"{told} must be geomspace(start, stop, count): two numbers above 0, and 2 to {MOST} values")
    step = (math.log(last) - math.log(first)) / (count - 1)
    inner = [math.exp(math.log(first) + step * i) for i in range(1, count - 1)]
    if all(word.strip().lstrip("+").isdigit() for word in words):
        return list(dict.fromkeys(str(round(value)) for value in (first, *inner, last)))
    return list(dict.fromkeys(f"{value:.{DIGITS}g}" for value in (first, *inner, last)))
