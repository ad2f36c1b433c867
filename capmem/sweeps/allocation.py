"""How a process that computes sweeps asks the system for memory: rarely."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of malloc.h
LARGEST_KEPT = 2**25  # bytes: arrays up to this size are cut from memory that the process keeps; glibc allows no more
KEPT = 2**30  # bytes that are kept before any goes back to the system
AT_ONCE = 2**26  # bytes that are asked for at once


def keep_freed_memory() -> bool:
    """Let this process use freed memory again, where the C library is glibc; return whether it does.

    By default every array of a slab is given back to the system and comes back as new pages, each filled with zeros
    when it is first touched: a fifth of the time of a sweep.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    options = ((M_MMAP_THRESHOLD, LARGEST_KEPT), (M_TRIM_THRESHOLD, KEPT), (M_TOP_PAD, AT_ONCE))
    return all([mallopt(option, value) for option, value in options])
