"""What heads remember: heads with known answers, exact identities, and what must fail."""

import numpy as np
import pandas as pd
import pytest

from capmem import geometry, heads, metrics
from capmem.attention import causal_attention, linear_attention, softmax_attention
from capmem.evaluation import evaluate
from capmem.feature_maps import Dpfp, EluPlusOne, Identity, Taylor
from capmem.heads_analysis import HeadsAnalysis, analyse
from capmem.heads_analysis.arrays import unit
from capmem.heads_analysis.attention import own_attention
from capmem.heads_analysis.conversion import capacities, rank_correlation
from capmem.heads_analysis.dimensions import dimensions, mean_cosine, spectrum
from capmem.heads_analysis.equivalents import random_keys_hold
from capmem.heads_analysis.fit import fits, input_factor, linear_output
from capmem.heads_analysis.halves import about, halves, of_rows
from capmem.heads_analysis.pairs import token_errors, worst_pairs
from capmem.heads_analysis.recall import recall, token_order, top1_shares
from capmem.heads_analysis.rules import best_linear, write_rules
from capmem.heads_analysis.task import Analysed
from capmem.memory import LinearMemory
from capmem.readouts import Normalized
from capmem.write_rules import Delta, Hebbian, LeastSquares

QUICK = HeadsAnalysis(
    num_pairs=(1, 2, 4, 8, 16, 32), trials=8, maps=("identity", "elu_plus_one", "taylor, order=2"),
    rule_maps=("identity",), random_draws=2,
)  # fmt: skip


def head(keys, values=None, queries=None, tokens=None, causal=False, special=None):
    """A head of known arrays; without values, random ones."""
    rng = np.random.default_rng(1)
    count, dim = keys.shape
    tokens = tuple(map(str, range(count))) if tokens is None else tuple(tokens)
    values = rng.standard_normal((count, dim)) if values is None else values
    asked = None if queries is None else queries[None]
    labels = np.unique(tokens, return_inverse=True)[1]
    return Analysed(0, 0, (0,), keys, values, asked, True, dim**-0.5, causal, tokens, labels, special)


def gaussian(count=48, dim=16, seed=0, mean=0.0):
    return np.random.default_rng(seed).standard_normal((count, dim)) + mean


def capacity_of(made, criterion="top1_accuracy", **case):
    _, rows = recall(made, QUICK)
    return capacities(pd.DataFrame(rows), **{"keys": "as they are", "criterion": criterion} | case).iloc[0]


def test_orthonormal_keys_hold_every_token_and_nothing_is_extrapolated():
    """All 16 are read exactly: the answer is "at least 16", not a number beyond the tokens."""
    row = capacity_of(head(np.eye(16)))
    assert (row["bound"], row["least"]) == ("at least", 16)
    assert np.isnan(row["pairs"])
    assert capacity_of(head(gaussian(mean=3.0)))["bound"] == ""  # keys that share a mean do not


def test_a_mean_key_ruins_what_centring_restores():
    made = head(gaussian(dim=32, mean=2.0))
    rows = {way: capacity_of(made, keys=way)["least"] for way in ("as they are", "centred", "random")}
    assert rows["as they are"] < 0.5 * rows["centred"]
    assert rows["centred"] == pytest.approx(rows["random"], rel=0.4)
    plain = head(gaussian(dim=32))
    expected = pytest.approx(capacity_of(plain, keys="centred")["least"], rel=0.3)
    assert capacity_of(plain, keys="as they are")["least"] == expected


def test_equal_tokens_count_as_right_by_token_only():
    """Every token comes twice with one key and two values: by index a coin toss, by token always right."""
    keys, values = np.repeat(np.eye(8), 2, axis=0), np.eye(16)
    curves, _ = recall(head(keys, values, tokens=np.repeat(list("abcdefgh"), 2)), QUICK)
    last = pd.DataFrame(curves).query("keys == 'as they are' and values == 'own' and order == 'shuffled'")
    last = last[last["num_pairs"] == 16].iloc[0]
    assert (last["top1_by_token"], last["top1_accuracy"]) == (1, 0.5)


def test_top1_is_the_metric_of_the_library_with_and_without_labels():
    rng = np.random.default_rng(3)
    retrieved, codebook = rng.standard_normal((2, 4, 12, 3))
    codebook[:, 5] = codebook[:, 2]  # ties
    retrieved[:, 2] = 10 * codebook[:, 2]
    labels = rng.integers(0, 5, (4, 12))
    by_index, by_token = top1_shares(retrieved, codebook, labels)
    for t in range(4):
        assert by_index[t] == pytest.approx(float(metrics.top1_accuracy(retrieved[t], codebook[t])))
        told = float(metrics.top1_accuracy(retrieved[t], codebook[t], labels=labels[t]))
        assert by_token[t] == pytest.approx(told)
    assert (by_token > by_index).any()


def test_curves_are_those_of_evaluate():
    """The same orders, memory and values through the library's own way in; dot products, as it scores."""
    made = head(gaussian(dim=8, mean=0.5))
    curves, _ = recall(made, HeadsAnalysis(num_pairs=(4, 16), trials=3, similarity="dot"))
    mine = pd.DataFrame(curves).query("keys == 'as they are' and values == 'own' and order == 'shuffled'")
    records = evaluate(LinearMemory(Identity(), key_norm="l2"), made.keys, made.values, num_pairs=[4, 16, 48], trials=3)
    theirs = pd.DataFrame(records).groupby("num_pairs").mean(numeric_only=True)
    for name in ("top1_accuracy", "scale_optimal_error", "relative_squared_error"):
        np.testing.assert_allclose(mine.set_index("num_pairs")[name], theirs[name], rtol=1e-9)


def test_random_values_give_the_crosstalk_that_is_claimed():
    """E relative error = (N - 1) mean cos^2 over subsets and values, within 4 standard errors."""
    made = head(gaussian(mean=0.4))
    curves, _ = recall(made, HeadsAnalysis(num_pairs=(32,), trials=64))
    row = pd.DataFrame(curves).query("keys == 'as they are' and values == 'random' and num_pairs == 32").iloc[0]
    expected = 31 * float(geometry.mean_squared_coherence(made.keys))
    error = (row["relative_squared_error_high"] - row["relative_squared_error"]) / 1.96
    assert abs(row["relative_squared_error"] - expected) < 4 * error
    centred = 31 * float(geometry.mean_squared_coherence(made.keys - made.keys.mean(axis=0)))
    assert abs(row["relative_squared_error"] - centred) > 4 * error


def test_the_mean_of_the_values_is_a_baseline_that_keys_must_beat():
    curves, _ = recall(head(gaussian()), QUICK)
    mean = pd.DataFrame(curves).query("keys == 'none: mean of values'").set_index("num_pairs")
    assert mean["top1_accuracy"][1] == 1
    np.testing.assert_allclose(mean["top1_accuracy"], 1 / mean.index, atol=1e-9)  # the same answer to every question
    np.testing.assert_allclose(mean["relative_squared_error"], mean["scale_optimal_error"], rtol=0.05, atol=1e-9)


def test_text_order_takes_neighbours_and_shuffled_order_does_not():
    order = token_order("text", 20, 0, 3)
    assert set(np.diff(order) % 20) == {1}
    assert sorted(order) == list(range(20)) == sorted(token_order("shuffled", 20, 0, 3))
    assert set(np.diff(token_order("shuffled", 20, 0, 3)) % 20) != {1}


def test_orthonormal_keys_have_infinite_effective_dimension_and_full_rank():
    rows = {row["keys"]: row for row in dimensions(head(np.eye(16)), 0)}
    assert np.isinf(rows["as they are"]["effective_dim"])
    assert rows["as they are"]["participation_ratio"] == pytest.approx(16)
    assert rows["as they are"]["effective_rank"] == pytest.approx(16)
    one = next(iter(dimensions(head(np.ones((16, 4)) * np.arange(1, 17)[:, None]), 0)))
    assert one["effective_dim"] == pytest.approx(1) and one["mean_cosine"] == pytest.approx(1)


def test_effective_dimension_is_one_over_the_mean_squared_cosine_of_pairs():
    made = head(gaussian(mean=0.5))
    row = next(iter(dimensions(made, 0)))
    cosines = unit(made.keys) @ unit(made.keys).T
    off = cosines[~np.eye(len(cosines), dtype=bool)]
    assert row["effective_dim"] == pytest.approx(1 / (off**2).mean())
    assert row["mean_cosine"] == pytest.approx(off.mean())
    assert row["effective_dim"] != pytest.approx(1 / (cosines**2).mean(), rel=0.05)  # with the diagonal: biased


def test_the_spectrum_adds_up_to_the_participation_ratio():
    made = head(gaussian(mean=0.5))
    shares = pd.DataFrame(spectrum(made)).groupby("keys")["share"]
    np.testing.assert_allclose(shares.sum(), 1)
    ratio = next(iter(dimensions(made, 0)))["participation_ratio"]
    assert 1 / (shares.get_group("as they are") ** 2).sum() == pytest.approx(ratio)


def test_half_samples_spread_as_the_mean_itself_does():
    """The interval of a mean of 64 normal numbers is 1.96 / sqrt(64) wide each way, to the noise of 32 halves."""
    widths = []
    for seed in range(40):
        found = of_rows(lambda x: x.mean(axis=(-2, -1)), lambda x: x, gaussian(64, 1, seed), seed, positive=False)
        widths.append(found.high - found.value)
    assert np.mean(widths) == pytest.approx(1.96 / 8, rel=0.1)
    assert halves(9, 0).shape == (32, 4) and (np.diff(halves(9, 0), axis=1) > 0).all()


def test_an_interval_of_a_positive_number_stays_positive():
    found = about(1.0, np.array([0.1, 1.0, 10.0]))
    assert 0 < found.low < 1 < found.high
    assert np.isnan(about(float("inf"), np.ones(4)).low)


@pytest.mark.parametrize("causal", [False, True])
def test_a_head_attends_as_softmax_attention_says(causal):
    q, k, v = gaussian(seed=1), gaussian(seed=2), gaussian(seed=3)
    own = own_attention(q, k, v, 0.3, causal)
    np.testing.assert_allclose(own.output, softmax_attention(q, k, v, beta=0.3, causal=causal), atol=1e-12)
    even = own_attention(0 * q, k, v, 0.3, causal).attended
    np.testing.assert_allclose(even, np.arange(1, 49) if causal else np.full(48, 48.0))
    assert own_attention(1e4 * q, k, v, 0.3, causal).attended.mean() < 1.01


@pytest.mark.parametrize("phi", [EluPlusOne(), Dpfp(2), Taylor(2)])
def test_a_fit_reads_what_linear_attention_reads(phi):
    q, k, v = gaussian(seed=1), gaussian(seed=2), gaussian(seed=3)
    made = linear_output(phi, q, k, v, causal=False).output
    np.testing.assert_allclose(made, linear_attention(q, k, v, phi, Normalized(), order="right"), atol=1e-9)
    causal = linear_output(phi, q, k, v, causal=True).output
    np.testing.assert_allclose(causal, causal_attention(q, k, v, phi, Hebbian(), Normalized()), atol=1e-9)


def test_a_kernel_near_the_softmax_fits_and_others_do_not():
    """Small scores: exp(u) = 1 + u + u^2 / 2 to u^3, so Taylor-2 is all but exact, centred or not."""
    made = head(0.3 * gaussian(seed=2), queries=0.3 * gaussian(seed=1))
    rows, _ = fits(made, QUICK)
    error = pd.DataFrame(rows).set_index(["keys", "map"])["error"]
    assert error["as they are", "taylor, order=2"] < 0.01
    assert error["as they are", "elu_plus_one"] > 10 * error["as they are", "taylor, order=2"]
    assert error["any", "mean output"] <= error["any", "uniform"]


def test_the_scale_of_a_head_reaches_the_map():
    """With scores multiplied by 1 in place of 1 / sqrt(d), Taylor-2 is of that same kernel."""
    q, k, v = 0.1 * gaussian(seed=1), 0.1 * gaussian(seed=2), gaussian(seed=3)
    made = head(k, v, q)._replace(scale=1.0)
    rows, _ = fits(made, QUICK)
    error = pd.DataFrame(rows).set_index(["keys", "map"])["error"]
    assert error["as they are", "taylor, order=2"] < 0.01
    wrong = linear_output(Taylor(2), q, k, v, False).output - own_attention(q, k, v, 1.0, False).output
    assert (wrong**2).sum() ** 0.5 / (own_attention(q, k, v, 1.0, False).output ** 2).sum() ** 0.5 > 0.01
    assert input_factor(16**-0.5, 16) == 1


def test_softmax_does_not_see_the_mean_key_and_the_maps_do():
    q, k, v = gaussian(seed=1), gaussian(seed=2, mean=1.0), gaussian(seed=3)
    outputs = [own_attention(q, keys, v, 0.25, True).output for keys in (k, k - k.mean(axis=0))]
    np.testing.assert_allclose(*outputs, atol=1e-12)
    both = own_attention(q - k.mean(axis=0), k - k.mean(axis=0), v, 0.25, True).output
    assert not np.allclose(both, outputs[0], atol=1e-3)  # the queries must keep theirs


def test_centred_identity_has_no_denominator_and_says_so():
    rows, _ = fits(head(gaussian(), queries=gaussian(seed=1)), QUICK)
    shares = pd.DataFrame(rows).set_index(["keys", "map"])["nonpositive_share"]
    assert shares["centred", "identity"] > 0.2 and shares["as they are", "elu_plus_one"] == 0


def test_least_squares_is_the_rule_of_the_library():
    features, values = unit(gaussian(24, 10)), gaussian(24, 5, seed=1)
    rule = LeastSquares()
    S = rule.matrix(rule.write(rule.init(10, 5), features, values))
    np.testing.assert_allclose(best_linear(features, values), features @ S, atol=1e-10)
    np.testing.assert_allclose(best_linear(unit(gaussian(8, 10)), values[:8]), values[:8], atol=1e-10)
    doubled = np.concatenate([features, features], axis=1)  # of deficient rank
    np.testing.assert_allclose(best_linear(doubled, values), best_linear(features, values), atol=1e-10)


def test_rules_lie_between_the_plain_sum_and_least_squares():
    made = head(gaussian(12, 16, mean=1.0))
    table = pd.DataFrame(write_rules(made, QUICK)).query("keys == 'as they are'").set_index(["rule", "order"])
    assert table.loc[("hebbian", "any"), "gap_closed"] == 0
    assert table.loc[("least_squares", "any"), "gap_closed"] == 1
    assert 0 < table.loc[("delta", "shuffled"), "gap_closed"] < 1
    assert table.loc[("decay", "shuffled"), "gap_closed"] < 0.2
    delta = Delta()
    keys = unit(made.keys)
    S = delta.matrix(delta.write(delta.init(16, 16), keys, made.values))
    expected = float(metrics.scale_optimal_error(keys @ S, made.values))
    assert table.loc[("delta", "text"), "scale_optimal_error"] == pytest.approx(expected)


def test_orthonormal_keys_leave_no_gap_to_close():
    table = pd.DataFrame(write_rules(head(np.eye(16)), QUICK))
    assert table.query("keys == 'as they are'")["gap_closed"].isna().all()


def test_the_worst_pair_is_found_and_equal_tokens_are_told_apart():
    keys = np.eye(10)
    keys[3] = keys[7] + 0.1 * np.eye(10)[0]
    keys[2] = -keys[9]
    pairs = pd.DataFrame(worst_pairs(head(keys, tokens="abcdefghij"), QUICK)).query("keys == 'as they are'")
    first = pairs.sort_values("rank").iloc[0]
    assert (first["token_i"], first["token_j"], first["cosine"]) == ("c", "j", -1)
    assert tuple(pairs[pairs["rank"] == 2][["i", "j"]].iloc[0]) == (3, 7)
    same = pd.DataFrame(worst_pairs(head(keys, tokens="abcdefghia"), QUICK))
    assert set(same[same["same_token"]]["token_i"]) == {"a"}


def test_token_errors_average_to_the_error_of_the_head():
    made = head(gaussian(mean=0.5))
    table = pd.DataFrame(token_errors(made, QUICK)).query("keys == 'as they are'")
    keys = unit(made.keys)
    expected = metrics.scale_optimal_error(keys @ (keys.T @ made.values), made.values)
    assert table["error"].mean() == pytest.approx(float(expected))
    assert (table["recalled"] <= table["recalled_token"]).all()


def test_rank_correlation_knows_order_alone():
    x = pd.Series([1.0, 2.0, 3.0, 10.0, 11.0])
    assert rank_correlation(x, np.exp(x)).value == pytest.approx(1)
    assert rank_correlation(x, -(x**3)).value == pytest.approx(-1)
    tied = pd.Series([1.0, 1.0, 2.0, 3.0, 3.0])
    assert rank_correlation(x, tied).value == pytest.approx(x.rank().corr(tied.rank()))
    assert np.isnan(rank_correlation(x[:2], x[:2]).value)


def test_random_keys_hold_what_a_simulation_of_them_says():
    """The closed form at d = v = 16, against recall of random keys and values; and at a dimension between two."""
    made = head(gaussian(64, 16), gaussian(64, 16))
    _, rows = recall(made, HeadsAnalysis(trials=64))
    table = pd.DataFrame(rows)
    found = capacities(table, "random", "random").iloc[0]
    assert found["low"] < random_keys_hold(16, 16, 0.9) < found["high"]
    assert random_keys_hold(16, 16, 0.9) < random_keys_hold(16.5, 16, 0.9) < random_keys_hold(17, 16, 0.9)
    assert not found["low"] < random_keys_hold(12, 16, 0.9) < found["high"]
    assert np.isnan(random_keys_hold(1.5, 16, 0.9)) and np.isnan(random_keys_hold(np.inf, 16, 0.9))


def test_special_tokens_and_sinks_are_left_out_in_turn():
    keys = gaussian()
    keys[0] *= 30
    special = np.arange(48) == 47
    found = {row["choice"]: row["tokens"] for row in dimensions(head(keys, special=special), 0)}
    assert found == {"all": 48, "without special": 47, "without outliers": 47}
    assert {row["choice"] for row in dimensions(head(gaussian()), 0)} == {"all"}


def test_mean_cosine_leaves_the_diagonal_out():
    assert mean_cosine(np.eye(4)) == 0


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    settings = HeadsAnalysis(
        path="samples/minilm", layers=(1,), heads=(0, 5), num_pairs=(2, 8, 32), trials=4,
        maps=("elu_plus_one", "taylor, order=2"), rule_maps=("identity",), gram_tokens=6,
    )  # fmt: skip
    return settings, folder, analyse(settings, folder, workers=1)


def test_tables_are_stored_and_read_back_without_computing(sample, monkeypatch):
    settings, folder, tables = sample
    monkeypatch.setattr("capmem.heads_analysis.tables.one_head", None)
    again = analyse(settings, folder, workers=1)
    for name, frame in tables._asdict().items():
        pd.testing.assert_frame_equal(frame, getattr(again, name), check_dtype=False)


def test_a_head_is_what_its_file_holds(sample):
    _, _, tables = sample
    layer = heads.load("samples/minilm").layer(1)
    expected = float(geometry.effective_dimension(unit(layer.keys[0].astype(float))))
    assert tables.heads.set_index("head")["effective_dim"][0] == pytest.approx(expected)
    assert list(tables.heads["query_head"]) == [0, 5]
    assert not np.isclose(*tables.heads["effective_dim"])


def test_other_heads_do_not_change_a_heads_numbers(sample):
    settings, _, tables = sample
    alone = analyse(HeadsAnalysis(**{f: getattr(settings, f) for f in settings.__dataclass_fields__} | {"heads": (5,)}))
    whole = tables.curves[tables.curves["head"] == 5].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.curves, whole)
