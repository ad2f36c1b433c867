"""Fixtures that all tests share."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def rng():
    return np.random.default_rng(20240613)


@pytest.fixture
def pairs_file(tmp_path, rng):
    """A file with keys and values of 40 pairs, the keys sharing a mean."""
    path = tmp_path / "pairs.npz"
    keys = rng.standard_normal((40, 12)) + 1.0
    np.savez(path, k=keys, v=rng.standard_normal((40, 10)))
    return path
