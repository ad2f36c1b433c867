"""What is done to rows before and after phi, and whether they fit the state."""

from __future__ import annotations

from typing import Literal

from capmem._arrays import Array, namespace, unit_rows
from capmem.write_rules import RuleState

Center = Literal["none", "mean"]
Norm = Literal["none", "l2", "sum"]


def normalize(rows: Array, norm: Norm) -> tuple[Array, int]:
    """Divide rows (..., N, D) by their norm; return them and the number of rows that have none."""
    xp = namespace(rows)
    if norm == "none":
        return rows, 0
    if norm == "l2":
        unit, is_zero = unit_rows(xp, rows)
        return unit, int(xp.count_nonzero(is_zero))
    size = xp.sum(rows, axis=-1, keepdims=True)
    is_zero = size == 0
    safe = xp.where(is_zero, xp.ones_like(size), size)
    return xp.where(is_zero, xp.zeros_like(rows), rows / safe), int(xp.count_nonzero(is_zero))


def check_fits(state: RuleState, features: Array, keys: Array) -> None:
    """Raise ValueError unless features (..., N, D) have the batch axes and the width of the state."""
    held = state.S.shape
    if features.shape[:-2] != held[:-2] or features.shape[-1] != held[-2]:
        raise ValueError(
            f"keys of shape {tuple(keys.shape)} have features of shape {tuple(features.shape)}, but the state holds "
            f"{held[-2]} features and batch axes {tuple(held[:-2])}"
        )
