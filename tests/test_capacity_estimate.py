"""Capacity by theory and by simulation, its inverse, and the law along the dimension: known numbers and bounds."""

import math
from dataclasses import replace

import numpy as np
import pytest

from capmem import capacity, theory
from capmem.capacity import estimate, power_law, required_dim, required_table
from capmem.capacity.criterion import Criterion
from capmem.capacity.estimate import first_crossing
from capmem.ensembles import ArrayKeys, GaussianKeys, OneHotValues, OrthonormalKeys, SphereKeys
from capmem.feature_maps import Dpfp, EluPlusOne, Identity
from capmem.memory import LinearMemory
from capmem.readouts import RMSNorm
from capmem.theory import Prediction, TheoryUnavailable, predict
from capmem.write_rules import LeastSquares

HEBBIAN = LinearMemory(Identity())
KEYS = SphereKeys()
RAW = {"metric": "relative_squared_error", "threshold": 0.5}


@pytest.mark.parametrize(("dim", "pairs"), [(32, 28), (64, 113), (128, 443), (256, 1697)])
def test_top1_capacity_at_99_percent_is_the_known_one(dim, pairs):
    assert round(estimate(HEBBIAN, KEYS, key_dim=dim, value_dim=dim, method="theory").pairs) == pairs


@pytest.mark.parametrize(("threshold", "pairs"), [(0.9, 188), (0.5, 385)])
def test_top1_capacity_at_other_thresholds_is_the_known_one(threshold, pairs):
    assert round(estimate(HEBBIAN, KEYS, 64, threshold=threshold, method="theory").pairs) == pairs


@pytest.mark.parametrize("dim", [8, 33, 64])
def test_half_of_the_power_is_lost_at_one_plus_half_the_dimension(dim):
    """e_raw = (N - 1) / d."""
    assert estimate(HEBBIAN, KEYS, dim, **RAW).pairs == pytest.approx(1 + dim / 2, rel=1e-9)


def test_a_prediction_holds_below_its_crossing_and_fails_above():
    found = estimate(HEBBIAN, KEYS, 48, threshold=0.97)
    below, above = (predict(HEBBIAN, KEYS, 48, 48, n).top1_accuracy for n in (int(found.pairs), int(found.pairs) + 1))
    assert above < 0.97 <= below


def test_an_estimate_says_what_it_rests_on():
    found = estimate(HEBBIAN, KEYS, 32)
    assert (found.method, found.trials) == ("theory", 0)
    assert "known error" in found.source and str(found.criterion) == "top-1 accuracy >= 0.99"
    assert math.isnan(found.low) and math.isnan(found.high)
    assert "(exact)" in estimate(HEBBIAN, KEYS, 32, **RAW).source


def test_a_larger_codebook_lowers_the_capacity_and_limits_the_search():
    own, larger = (estimate(HEBBIAN, KEYS, 32, codebook_size=m).pairs for m in (None, 4096))
    assert larger < own
    assert estimate(HEBBIAN, KEYS, 32, codebook_size=16, threshold=0.5).bound == "at least"


def test_simulation_agrees_with_theory_within_its_interval():
    exact = estimate(HEBBIAN, KEYS, 32, **RAW).pairs
    found = estimate(HEBBIAN, KEYS, 32, **RAW, method="simulation", precision=0.05)
    assert (found.method, found.narrow) == ("simulation", True)
    assert found.low <= exact <= found.high
    assert found.high - found.low <= 0.1 * found.pairs
    assert not found.low <= 0.9 * exact <= found.high


def test_simulated_top1_capacity_agrees_with_theory():
    exact = estimate(HEBBIAN, KEYS, 32, threshold=0.9).pairs
    found = estimate(HEBBIAN, KEYS, 32, threshold=0.9, method="simulation", precision=0.1)
    assert found.low <= exact <= found.high


def test_a_simulation_does_not_depend_on_how_it_was_searched():
    """Common random numbers: a search that goes further sees the same curves."""
    short, long = (estimate(HEBBIAN, KEYS, 16, **RAW, method="simulation", trials=8, max_pairs=n) for n in (64, 4096))
    assert (short.pairs, short.low, short.high) == (long.pairs, long.low, long.high)
    other = estimate(HEBBIAN, KEYS, 16, **RAW, method="simulation", trials=8, max_pairs=64, seed=1)
    assert other.pairs != short.pairs


def test_trials_are_added_until_the_interval_is_narrow_or_they_are_spent():
    loose, tight, spent = (
        estimate(HEBBIAN, KEYS, 16, **RAW, method="simulation", precision=p, trials=t)
        for p, t in ((0.5, 64), (0.08, 64), (0.001, 16))
    )
    assert loose.trials == 8 and loose.narrow
    assert tight.trials > 8 and tight.narrow and tight.high - tight.low <= 0.16 * tight.pairs
    assert spent.trials == 16 and not spent.narrow


def test_an_accuracy_without_a_single_failure_is_not_taken_for_certain():
    """At 8 trials of two pairs none fails, and the bootstrap interval has no width."""
    found = estimate(HEBBIAN, KEYS, 8, threshold=0.99, method="simulation", trials=8, max_pairs=64)
    assert not found.narrow


def refused(*laws, **options):
    raise TheoryUnavailable("no formula")


@pytest.mark.parametrize("unknown", [refused, lambda *laws, **options: Prediction()])
def test_automatic_falls_back_to_simulation_where_theory_lacks_the_number(unknown, monkeypatch):
    options = {"threshold": 0.5, "trials": 8, "max_pairs": 64}
    assert estimate(HEBBIAN, KEYS, 16, **options).method == "theory"
    monkeypatch.setattr(theory, "predict", unknown)
    assert estimate(HEBBIAN, KEYS, 16, **options).method == "simulation"
    assert required_dim(3, HEBBIAN, KEYS, threshold=0.5, trials=8).method == "simulation"
    for ask in (estimate, lambda *laws, **given: required_dim(16, *laws[:2], **given)):
        with pytest.raises(TheoryUnavailable, match="no formula"):
            ask(HEBBIAN, KEYS, 16, method="theory")


@pytest.mark.parametrize("method", ["simulation", "auto"])
def test_a_memory_that_never_fails_holds_at_least_what_was_looked_at(method):
    found = estimate(HEBBIAN, KEYS, 8, metric="cosine_similarity", threshold=-1, method=method, max_pairs=300, trials=8)
    assert math.isnan(found.pairs) and not found.bracketed
    assert (found.bound, found.low, str(found)) == ("at least", 300, ">= 300")


@pytest.mark.parametrize("method", ["simulation", "theory"])
def test_a_criterion_that_one_pair_misses_gives_below_one(method):
    found = estimate(HEBBIAN, KEYS, 8, query_cosine=0.5, metric="relative_squared_error", threshold=0.1, method=method)
    assert (found.bound, found.high, found.bracketed) == ("below", 1, False)
    assert math.isnan(found.pairs)


def test_a_formula_that_is_not_known_to_be_close_is_not_gone_by():
    question = {"key_dim": 16, "metric": "scale_optimal_error", "threshold": 0.5, "precision": 0.2, "trials": 16}
    loose = estimate(LinearMemory(Dpfp(nu=1)), GaussianKeys(), **question)
    assert loose.method == "simulation"
    assert estimate(LinearMemory(Dpfp(nu=1)), GaussianKeys(), **question | {"method": "theory"}).method == "theory"
    assert estimate(HEBBIAN, KEYS, **question).method == "theory"


@pytest.mark.parametrize(("metric", "threshold"), [("top1_accuracy", 2), ("scale_optimal_error", 3)])
def test_a_threshold_that_no_number_can_have_is_refused(metric, threshold):
    with pytest.raises(ValueError, match=f"threshold must be .* for {metric}"):
        estimate(HEBBIAN, KEYS, 8, metric=metric, threshold=threshold)


def test_orthonormal_keys_end_at_their_number():
    found = estimate(HEBBIAN, OrthonormalKeys(), 24, **RAW, method="simulation", trials=8)
    assert str(found) == ">= 24"
    one_hot = estimate(HEBBIAN, KEYS, 16, value_dim=6, values=OneHotValues(), **RAW, method="simulation", trials=8)
    assert str(one_hot) == ">= 6"


def test_least_squares_holds_as_many_pairs_as_it_has_dimensions():
    memory = LinearMemory(Identity(), write_rule=LeastSquares())
    found = estimate(
        memory, KEYS, 20, metric="relative_squared_error", threshold=1e-6, method="simulation", dtype="float64"
    )
    assert 20 <= found.pairs < 21


def test_the_first_crossing_counts_where_a_metric_comes_back():
    curve = {1: 0.0, 2: 0.1, 3: 0.3, 4: 0.9, 5: 0.9, 8: 0.2, 16: 0.1}
    found = first_crossing(curve.__getitem__, 16, Criterion("relative_squared_error", 0.5))
    assert found.pairs == pytest.approx(3 + 0.2 / 0.6)


def test_an_infinite_value_beside_the_crossing_gives_the_last_integer_that_holds():
    found = first_crossing({1: math.inf, 2: 0.5}.__getitem__, 2, Criterion("signal_to_noise", 1.0))
    assert found.pairs == 1


@pytest.mark.parametrize(("pairs", "dim"), [(33, 64), (17, 32), (34, 66)])
def test_the_dimension_needed_inverts_the_capacity(pairs, dim):
    """N* = 1 + d / 2: a threshold that is met exactly counts, however it is rounded."""
    found = required_dim(pairs, HEBBIAN, KEYS, **RAW)
    assert (found.key_dim, found.value_dim, found.feature_dim, found.low) == (dim, dim, dim, dim - 1)
    assert (found.state_elements, found.state_bytes) == (dim * dim + dim, 4 * (dim * dim + dim))  # S and z
    assert found.capacity.pairs == pytest.approx(1 + dim / 2, rel=1e-9)
    assert found.bracketed and found.method == "theory"


def test_the_least_dimension_holds_the_pairs_and_the_one_below_does_not():
    found = required_dim(113, HEBBIAN, KEYS)
    assert estimate(HEBBIAN, KEYS, found.key_dim).pairs >= 113 > estimate(HEBBIAN, KEYS, found.key_dim - 1).pairs


def test_where_the_search_begins_changes_nothing():
    answers = {required_dim(50, HEBBIAN, KEYS, start=start).key_dim for start in (None, 2, 40, 1024)}
    assert len(answers) == 1


def test_orthonormal_keys_need_a_dimension_a_pair():
    assert required_dim(19, HEBBIAN, OrthonormalKeys(), **RAW, method="simulation", trials=8).key_dim == 19


def test_a_simulated_dimension_is_near_the_predicted_one():
    exact, found = (required_dim(16, HEBBIAN, KEYS, **RAW, method=m) for m in ("theory", "simulation"))
    assert (exact.key_dim, found.method) == (30, "simulation")
    assert found.key_dim == pytest.approx(30, abs=3)
    assert found.capacity.high >= 16


def test_a_fixed_value_dimension_is_kept():
    free, fixed = (required_dim(60, HEBBIAN, KEYS, value_dim=v) for v in (None, 16))
    assert fixed.value_dim == 16 and fixed.state_elements == 17 * fixed.key_dim
    assert fixed.key_dim > free.key_dim


def test_a_dimension_beyond_the_search_is_a_bound():
    above = required_dim(100, HEBBIAN, KEYS, **RAW, max_dim=64)
    assert (above.key_dim, above.bracketed, above.bound, str(above)) == (None, False, "more than", "> 64")
    below = required_dim(1, HEBBIAN, KEYS, **RAW)
    assert (below.key_dim, below.bound, str(below), below.capacity) == (None, "at most", "<= 2", None)


def test_a_table_of_dimensions_has_a_row_a_question():
    memories = {"identity": HEBBIAN, "rms_norm": LinearMemory(Identity(), readout=RMSNorm())}
    table = required_table([8, 100], memories, KEYS, max_dim=64, trials=8)
    assert table[["memory", "num_pairs"]].to_numpy().tolist() == [[m, n] for m in memories for n in (8, 100)]
    assert table.loc[0, "key_dim"] == required_dim(8, HEBBIAN, KEYS).key_dim
    # a norm of the reading changes no inner product's order
    assert table["method"].tolist()[:2] == ["theory", "theory"]
    assert table.loc[3, "key_dim"] == pytest.approx(table.loc[1, "key_dim"], abs=2)


def test_a_power_law_is_found_with_its_interval():
    dims = np.array([16, 32, 64, 128])
    exact = power_law(dims, 0.5 * dims**1.5)
    assert (exact.factor, exact.exponent) == (pytest.approx(0.5), pytest.approx(1.5))
    assert exact.high - exact.low < 1e-9
    assert str(exact).startswith("N* = 0.5 d^1.50 (1.50 to 1.50)")
    np.testing.assert_allclose(exact.at(np.array([9, 25])), [13.5, 62.5])


def test_the_interval_of_an_exponent_covers_it(rng):
    dims = np.array([16.0, 32, 64, 128, 256])
    fits = [power_law(dims, 0.3 * dims**1.2 * np.exp(0.1 * rng.standard_normal(5))) for _ in range(400)]
    covered = np.mean([fit.low <= 1.2 <= fit.high for fit in fits])
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 400))


def test_the_interval_of_an_exponent_is_that_of_linear_regression(rng):
    from scipy import stats

    dims = np.array([16.0, 32, 64, 128, 256])
    pairs = 0.3 * dims**1.2 * np.exp(0.1 * rng.standard_normal(5))
    line = stats.linregress(np.log(dims), np.log(pairs))
    half = stats.t.ppf(0.975, 3) * line.stderr
    found = power_law(dims, pairs)
    np.testing.assert_allclose([found.exponent, found.low, found.high], line.slope + half * np.array([0, -1, 1]))


def test_a_law_needs_points():
    assert math.isnan(power_law([16], [3]).exponent)
    two = power_law([16, 32, 64], [4, 8, math.nan])
    assert (two.exponent, two.points) == (pytest.approx(1), 2) and math.isnan(two.low)
    with pytest.raises(ValueError, match="positive"):
        power_law([0, 1], [1, 1])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"metric": "error"}, "metric must be one of"),
        ({"threshold": math.inf}, "threshold must be finite, got inf"),
        ({"method": "guess"}, "method 'guess' does not exist. Allowed: auto, theory, simulation"),
        ({"trials": 0}, "trials must be an integer of at least 1, got 0"),
        ({"precision": 0.0}, "precision must be a number above 0, got 0.0"),
        ({"max_pairs": 0}, "max_pairs must be an integer of at least 1, got 0"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
        ({"key_dim": 0}, "key_dim must be an integer of at least 1, got 0"),
        ({"query_cosine": 2.0}, "query_cosine must be a number from -1 to 1, got 2.0"),
        ({"codebook_size": 0}, "codebook_size must be at least num_pairs = 1, got 0"),
    ],
)
def test_bad_questions_are_refused_in_one_line(given, told):
    with pytest.raises(ValueError) as caught:
        estimate(HEBBIAN, KEYS, **{"key_dim": 16} | given)
    assert str(caught.value).startswith(told) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"num_pairs": 0}, "num_pairs must be an integer of at least 1, got 0"),
        ({"max_dim": 1}, "max_dim must be an integer of at least 2, got 1"),
        ({"start": 2000}, "start must be from 2 to max_dim = 1024, got 2000"),
        ({"codebook_size": 4}, "codebook_size must be at least num_pairs = 16, got 4"),
        ({"method": "guess"}, "method 'guess' does not exist. Allowed: auto, theory, simulation"),
    ],
)
def test_bad_questions_of_the_inverse_are_refused_in_one_line(given, told):
    with pytest.raises(ValueError) as caught:
        required_dim(**{"num_pairs": 16, "memory": HEBBIAN, "keys": KEYS} | given)
    assert str(caught.value) == told


def test_keys_of_a_file_have_one_dimension(pairs_file):
    keys = ArrayKeys(str(pairs_file), "k")
    with pytest.raises(ValueError, match="keys must be a law of any dimension, got ArrayKeys"):
        required_dim(16, HEBBIAN, keys)
    found = estimate(
        EluMemory, keys, 12, value_dim=10, metric="cosine_similarity", threshold=-1, method="simulation", trials=8
    )
    assert str(found) == ">= 40"


EluMemory = replace(HEBBIAN, feature_map=EluPlusOne())


def test_the_old_names_are_where_they_were():
    for name in ("Criterion", "CapacityEstimate", "from_table", "from_curves", "crossing"):
        assert hasattr(capacity, name)
