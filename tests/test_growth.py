"""Time grows in step with the pairs, and memory does not grow: a state of fixed size, and nothing else is kept."""

import json
import subprocess
import sys

import numpy as np
import pytest

from capmem.sampling import CHUNK, Sampling

RUN = """
import json, resource, sys, time
from capmem.sweeps.points import experiment_from
rule, pairs = sys.argv[1], int(sys.argv[2])
def run(n):
    one = {"write_rule": rule, "keys": "sphere", "key_dim": 64, "value_dim": 64, "trials": 1, "max_queries": 256}
    return experiment_from(one | {"num_pairs": n}).run()
run(5000)  # what is imported late, and drawn once
times = []
while sum(times) < 0.5:  # short runs are repeated, and the fastest counts
    started = time.process_time()
    (record,) = run(pairs)
    times.append(time.process_time() - started)
taken = min(times)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "darwin" else 1024) / 1.024**2
print(json.dumps({"seconds": taken, "megabytes": peak, "queries": record["num_queries"], "status": record["status"]}))
"""


def measured(rule, num_pairs):
    """One trial in a process of its own: CPU seconds, and the largest memory that it ever took."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", RUN, rule, str(num_pairs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def slope_and_growth(rule, *num_pairs):
    """Slope of log time against log N, and the growth of memory in MB.

    Few pairs are read: that costs the same at any N, and is not what is asked about.
    """
    found = [measured(rule, n) for n in num_pairs]
    assert {f["queries"] for f in found} == {256}
    seconds = [f["seconds"] for f in found]
    slope = np.polyfit(np.log(num_pairs), np.log(seconds), 1)[0]
    return slope, found[-1]["megabytes"] - found[0]["megabytes"]


@pytest.mark.parametrize("rule", ["hebbian", pytest.param("delta", marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_pairs(rule):
    few, many = measured(rule, 10_000), measured(rule, 200_000)
    assert many["megabytes"] - few["megabytes"] < 20


@pytest.mark.slow
def test_time_is_linear_and_memory_constant_up_to_ten_million_pairs():
    slope, growth = slope_and_growth("hebbian", 10_000, 100_000, 1_000_000, 10_000_000)
    assert growth < 100
    assert 0.95 < slope < 1.05


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["delta", "least_squares"])
def test_time_is_linear_and_memory_constant_up_to_a_million_pairs(rule):
    slope, growth = slope_and_growth(rule, 10_000, 100_000, 1_000_000)
    assert growth < 100
    assert 0.95 < slope < 1.05


def by_listing_all_free_places(sampling, num_pairs):
    queries = sampling.queries(num_pairs)
    free = np.setdiff1d(np.arange(num_pairs), queries, assume_unique=True)
    rng = np.random.default_rng([*sampling.seed, num_pairs])
    return np.sort(np.concatenate([queries, rng.choice(free, size=CHUNK - queries.size, replace=False)]))


@pytest.mark.parametrize("num_pairs", [4097, 5000, 12_345, 300_000])
@pytest.mark.parametrize("max_queries", [1, 100, 4095])
def test_the_sample_of_codewords_is_that_of_all_free_places_without_listing_them(num_pairs, max_queries):
    sampling = Sampling(max_queries, None, (0, 3, 5))
    places = sampling.stored_codewords(num_pairs)
    np.testing.assert_array_equal(places, by_listing_all_free_places(sampling, num_pairs))
    assert np.unique(places).size == CHUNK
    assert places[-1] < num_pairs


def test_the_sample_of_codewords_takes_no_memory_of_the_size_of_the_pairs():
    places = Sampling(1024, None, (0, 0, 5)).stored_codewords(10**12)
    assert np.unique(places).size == CHUNK
    assert places[-1] < 10**12
