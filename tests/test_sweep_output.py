"""What a sweep asks of the system and leaves for other programs: memory that is kept, and a table as text."""

import ctypes
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from capmem.sweeps.present import _write_csv

FAULTS = """
import resource, sys
import numpy as np
from capmem.sweeps.allocation import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def batch():
    return [np.ones(2**21) for _ in range(12)]


batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def has_mallopt():
    try:
        return hasattr(ctypes.CDLL(None), "mallopt")
    except (OSError, TypeError):
        return False


@pytest.mark.skipif(not has_mallopt(), reason="the C library has no mallopt")
def test_memory_that_is_kept_is_not_faulted_in_again():
    """Negative control: without it, what was freed comes back as new pages."""
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "given back")
    )
    assert kept < given_back / 3


def test_the_table_comes_back_from_text_as_it_was(tmp_path):
    frame = pd.DataFrame(
        {
            "words": ["plain", "a, comma", 'a "quote"', "two\nlines", None],
            "numbers": [0.1, 1 / 3, np.nan, np.inf, 1e-300],
            "whole": [1, 2, 3, 4, 2**62],
            "flags": [True, False, True, True, False],
            "mixed": pd.Series([True, None, "sqrt_dim", 1.5, None], dtype=object),
        }
    )
    _write_csv(frame, tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv")
    assert list(back.columns) == list(frame.columns)
    for name in ("numbers", "whole", "flags"):
        np.testing.assert_array_equal(back[name], frame[name])
    assert back["words"].fillna("-").tolist() == ["plain", "a, comma", 'a "quote"', "two\nlines", "-"]
    assert back["mixed"].fillna("-").tolist() == ["True", "-", "sqrt_dim", "1.5", "-"]
