"""The notes' own example: two orthogonal keys, a third that is not, and what each memory makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capmem.feature_maps import Identity, Polynomial
from capmem.memory import LinearMemory, Memory, SoftmaxMemory
from capmem.metrics import interference
from capmem.schema import require
from capmem.trial import Record
from capmem.write_rules import Delta, LeastSquares

Matrix = NDArray[np.float64]

PASSES = 10
REPEATED = f"delta, {PASSES} passes"


@dataclass(frozen=True)
class ThreePairs:
    """Unit keys k1 and k2, orthogonal, and k3 with cosine c to k1, orthogonal to k2; three orthonormal values.

    Since the values are orthonormal, what a query retrieves is told by three shares, those of v1, v2 and v3.

    Parameters
    ----------
    cosine : float
        c, at least 0 and below 1.
    beta : float
        Inverse temperature of the softmax memory, above 0.
    """

    cosine: float = 0.6
    beta: float = 8.0

    def __post_init__(self) -> None:
        require(0 <= self.cosine < 1, "cosine", self.cosine, "a number of at least 0, below 1")
        require(self.beta > 0, "beta", self.beta, "a number above 0")

    @property
    def keys(self) -> Matrix:
        """The keys (3, 3), a row each."""
        return np.array([[1, 0, 0], [0, 1, 0], [self.cosine, 0, (1 - self.cosine**2) ** 0.5]], dtype=np.float64)

    @property
    def values(self) -> Matrix:
        """The values (3, 3), a row each."""
        return np.eye(3)

    @property
    def softmax(self) -> str:
        """The name of the softmax memory, with its beta."""
        return f"softmax, beta {self.beta:g}"

    def memories(self) -> dict[str, Memory]:
        """Return the memory of the notes, then its cures, by name."""
        return {
            "hebbian": LinearMemory(Identity()),
            "delta rule": LinearMemory(Identity(), write_rule=Delta()),
            REPEATED: LinearMemory(Identity(), write_rule=Delta()),
            "least squares": LinearMemory(Identity(), write_rule=LeastSquares()),
            "squared kernel": LinearMemory(Polynomial(2)),
            self.softmax: SoftmaxMemory(self.beta),
        }

    def shares(self) -> dict[str, Matrix]:
        """Return, in closed form, which share of v1, v2, v3 (columns) each key (rows) retrieves.

        Hebbian reads the Gram matrix. The delta rule, writing k3 last, takes out what k3 retrieves before: after
        p passes k1 keeps 1 - c^(2p) of v1, with c^(2p-1) of v3. Least squares inverts the Gram matrix, as long
        as the keys are independent. The kernel (x.y)^2 turns c into c^2. Softmax weighs by exp(beta x.y).
        """
        c, gram = self.cosine, self.keys @ self.keys.T

        def delta(p: int) -> Matrix:
            return np.array([[1 - c ** (2 * p), 0, c ** (2 * p - 1)], [0, 1, 0], [0, 0, 1]])

        weights = np.exp(self.beta * gram)
        return {
            "hebbian": gram,
            "delta rule": delta(1),
            REPEATED: delta(PASSES),
            "least squares": np.eye(3),
            "squared kernel": gram**2,
            self.softmax: weights / weights.sum(axis=1, keepdims=True),
        }

    def readings(self) -> list[Record]:
        """Store and read, and return a record for each memory and query.

        Fields: memory, pairs (written so far), query, v1, v2, v3 (shares measured), closed_v1, ... (closed
        form), error (squared, of unit values), and for the Hebbian memory signal and crosstalk, which add up.
        """
        records = []
        for name, memory in self.memories().items():
            if name == "hebbian":  # the stage before the third pair came
                records += self._read(name, memory, 2, np.eye(2, 3))
            records += self._read(name, memory, 3, self.shares()[name])
        return records

    def _read(self, name: str, memory: Memory, pairs: int, closed: Matrix) -> list[Record]:
        keys, values = self.keys[:pairs], self.values[:pairs]
        state = memory.init(3, 3)
        for _ in range(PASSES if name == REPEATED else 1):
            state = memory.write(state, keys, values)
        retrieved = memory.read(state, keys)
        parts: dict[str, Any] = {}
        if name == "hebbian":
            parts = interference(keys, values)._asdict()
        records = []
        for i in range(pairs):
            record: Record = {"memory": name, "pairs": pairs, "query": f"k{i + 1}"}
            record |= {f"v{j + 1}": float(retrieved[i, j]) for j in range(3)}
            record |= {f"closed_v{j + 1}": float(closed[i, j]) for j in range(3)}
            record["error"] = float(((retrieved[i] - values[i]) ** 2).sum())
            record |= {part: float(np.linalg.norm(rows[i])) for part, rows in parts.items()}
            records.append(record)
        return records


def tell(example: ThreePairs) -> str:
    """Return the example as paragraphs: what happens, then the cures; every number is measured."""
    readings = {(r["memory"], r["pairs"], r["query"]): r for r in example.readings()}
    before, after = readings["hebbian", 2, "k1"], readings["hebbian", 3, "k1"]
    untouched = readings["hebbian", 3, "k2"]
    worst = max(abs(r[f"v{j}"] - r[f"closed_v{j}"]) for r in readings.values() for j in (1, 2, 3))
    rows = [["memory", "k1 reads", "error k1", "error k2", "error k3"]]
    for name in example.memories():
        errors = [readings[name, 3, f"k{i}"]["error"] for i in (1, 2, 3)]
        rows.append([name, _sum(readings[name, 3, "k1"]), *map(_rounded, errors)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "  ".join(
            ["", *(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))]
        )
        for row in rows
    ]
    return "\n".join(
        [
            f"Two orthogonal unit keys are stored. Reading k1 gives {_sum(before)}: exact. A third key with cosine "
            f"{example.cosine:g} to k1 is written. Reading k1 now gives {_sum(after)}: signal {after['signal']:.3g}, "
            f"crosstalk {after['crosstalk']:.3g}. Reading k2 gives {_sum(untouched)}, as before. Nothing was "
            "overwritten: v1 is still there, and v3 has mixed in.",
            "",
            "The same three pairs in other memories (squared error of unit values):",
            "",
            *table,
            "",
            "One pass of the delta rule makes the newest pair exact at the expense of an older one; repeated, it comes "
            "to least squares. A kernel that pulls the keys apart, or a sharp softmax, shrinks what mixes in. "
            f"Closed form and measurement differ by {worst:.1e} at most.",
        ]
    )


def _rounded(error: float) -> str:
    return "0" if error < 1e-12 else f"{error:.3g}"


def _sum(reading: Record) -> str:
    """Write the shares that are not 0 to three decimals as a sum: v1 + 0.6 v3."""
    shares = {f"v{j}": round(reading[f"v{j}"], 3) for j in (1, 2, 3)}
    terms = [name if share == 1 else f"{share:g} {name}" for name, share in shares.items() if share]
    return " + ".join(terms) or "0"
