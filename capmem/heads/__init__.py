"""Heads: keys, queries and values of real attention heads: loaded, confirmed, captured, replayed."""

from capmem.heads.capturing import Capture, capture
from capmem.heads.confirming import Confirmation, confirm
from capmem.heads.container import Head, Heads, Metadata
from capmem.heads.layer import Layer
from capmem.heads.loading import from_arrays, load
from capmem.heads.replaying import Errors, Replay, compare, replay
from capmem.heads.report import outliers, summary

__all__ = [
    "Capture",
    "Confirmation",
    "Errors",
    "Head",
    "Heads",
    "Layer",
    "Metadata",
    "Replay",
    "capture",
    "compare",
    "confirm",
    "from_arrays",
    "load",
    "outliers",
    "replay",
    "summary",
]
