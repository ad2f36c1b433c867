"""Memories: linear attention with a fixed state, and softmax attention, which keeps every pair."""

from capmem.memory.base import MEMORIES, Diagnostics, Memory, StateSize
from capmem.memory.linear import LinearMemory
from capmem.memory.softmax import SoftmaxMemory, SoftmaxState
from capmem.memory.state import MemoryState

__all__ = [
    "MEMORIES",
    "Diagnostics",
    "LinearMemory",
    "Memory",
    "MemoryState",
    "SoftmaxMemory",
    "SoftmaxState",
    "StateSize",
]
