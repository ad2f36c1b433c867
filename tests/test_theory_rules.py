"""Predictions for write rules: golden numbers, simulations of another hand, and what is refused."""

import math

import numpy as np
import pytest

from capmem import Experiment, LinearMemory
from capmem.ensembles import (
    ArrayKeys,
    AutoregressiveKeys,
    EquicorrelatedKeys,
    GaussianKeys,
    GaussianValues,
    OneHotValues,
    OrthonormalKeys,
    RademacherKeys,
    RademacherValues,
    SphereKeys,
    SphereValues,
)
from capmem.feature_maps import CosFormer, Dpfp, EluPlusOne, Exp, Identity, RandomReLU, ReLU, Taylor
from capmem.memory import SoftmaxMemory
from capmem.readouts import Normalized
from capmem.theory.base import TheoryUnavailable
from capmem.theory.by_age import mean_by_age, predict_by_age
from capmem.theory.case import Case
from capmem.theory.curves import AgeCurve, Source, Term
from capmem.theory.isotropic import isotropic
from capmem.theory.rules import RULES
from capmem.theory.spectrum import shrinkage
from capmem.write_rules import Decay, Delta, GatedDecay, GatedDelta, Hebbian, LeastSquares, Oja

RAW, OPTIMAL, ODDS = "relative_squared_error", "scale_optimal_error", "signal_to_noise"
KEYS = {"sphere": SphereKeys(), "gaussian": GaussianKeys(), "signs": RademacherKeys()}
VALUES = {"sphere": SphereValues(), "gaussian": GaussianValues(), "signs": RademacherValues()}


def case_of(rule, d, n, v=16, keys="sphere", values="sphere", cosine=1.0, scale=1.0, **memory):
    """Keys of mean square norm scale^2."""
    factor = scale / math.sqrt(d) if keys == "gaussian" else scale
    held = LinearMemory(Identity(), rule, key_scale=factor, **memory)
    return Case(held, KEYS[keys], VALUES[values], d, v, n, cosine, None)


def predicted(case):
    return {name: number for name, (number, _) in RULES[type(case.memory.write_rule)](case).items()}


def raw(rule, d, n, **options):
    return predicted(case_of(rule, d, n, **options))[RAW]


def by_age(case):
    memory, keys, values, *sizes, cosine, _ = case
    return predict_by_age(memory, keys, *sizes, values, cosine)


# An independent hand: batches of trials, one pair after the other, in plain NumPy.


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def draw(rng, law, shape):
    rows = rng.standard_normal(shape)
    return {"sphere": unit, "gaussian": lambda x: x / math.sqrt(shape[-1]), "signs": lambda x: unit(np.sign(x))}[law](
        rows
    )


def cues(rng, keys, cosine):
    across = rng.standard_normal(keys.shape)
    along = unit(keys)
    across = unit(across - np.sum(across * along, axis=-1, keepdims=True) * along)
    length = np.linalg.norm(keys, axis=-1, keepdims=True)
    return length * (cosine * along + math.sqrt(1 - cosine**2) * across)


def written(rule, keys, values):
    """S after all pairs, (T, d, v)."""
    if isinstance(rule, LeastSquares):
        gram = keys @ keys.mT + rule.ridge * np.eye(keys.shape[1])
        return keys.mT @ np.linalg.solve(gram, values) if rule.ridge else np.linalg.pinv(keys) @ values
    state = np.zeros((keys.shape[0], keys.shape[2], values.shape[2]))
    for k, v in zip(keys.swapaxes(0, 1)[..., None], values.swapaxes(0, 1)[:, :, None], strict=True):
        state = getattr(rule, "rate", 1.0) * state
        if isinstance(rule, Delta | GatedDelta):
            state = state + rule.step_size * k @ (v - k.mT @ state)
        elif isinstance(rule, Oja):
            state = state + rule.step_size * (k - state @ v.mT) @ v
        else:
            state = state + k @ v
    return state


def simulate(case, trials, seed=5):
    """Per-pair errors by age (T, N), and the scale-optimal error (T,)."""
    memory, rng, d, n, v = case.memory, np.random.default_rng(seed), case.key_dim, case.num_pairs, case.value_dim
    names = {type(law): name for name, law in (*KEYS.items(), *VALUES.items())}
    keys_name = names[type(case.keys)]
    scale = memory.key_scale * (math.sqrt(d) if keys_name == "gaussian" else 1)
    keys = scale * draw(rng, keys_name, (trials, n, d))
    values = math.sqrt(v) * draw(
        rng, {SphereValues: "sphere", GaussianValues: "gaussian"}.get(type(case.values), "signs"), (trials, n, v)
    )
    queries = keys if case.query_cosine == 1 else cues(rng, keys, case.query_cosine)
    read = queries @ written(memory.write_rule, keys, values)
    total = np.sum(values**2, axis=(1, 2))
    errors = np.sum((read - values) ** 2, axis=2) / total[:, None] * n
    optimal = 1 - np.sum(read * values, axis=(1, 2)) ** 2 / (np.sum(read**2, axis=(1, 2)) * total)
    return errors[:, ::-1], optimal


def mean_and_error(samples):
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / math.sqrt(len(samples))


CASES = [
    case_of(Delta(1.0), 16, 8),
    case_of(Delta(1.0), 8, 24),
    case_of(Delta(0.3), 12, 12),
    case_of(Delta(1.7), 12, 30),
    case_of(Delta(0.8), 12, 20, cosine=0.6),
    case_of(Delta(0.8), 12, 20, cosine=-1.0),
    case_of(Delta(0.5), 12, 20, scale=1.4),
    case_of(Delta(0.8), 12, 20, keys="gaussian", cosine=0.7),
    case_of(Delta(0.8), 6, 20, keys="signs", cosine=0.7),
    case_of(Delta(0.8), 1, 4),
    case_of(GatedDelta(1.0, 0.95), 12, 30, values="gaussian"),
    case_of(GatedDelta(0.6, 0.9), 16, 8),
    case_of(GatedDelta(0.6, 0.97), 8, 24, keys="gaussian", cosine=0.5, values="signs"),
    case_of(Decay(0.9), 12, 30),
    case_of(Decay(0.97), 16, 8, keys="gaussian", cosine=0.6),
    case_of(Decay(0.8), 8, 20, keys="signs", values="gaussian"),
    case_of(Oja(1 / 16), 12, 30),
    case_of(Oja(0.02), 16, 8, keys="gaussian", cosine=0.8),
    case_of(Oja(0.1), 8, 40, values="signs"),
    case_of(LeastSquares(), 12, 30),
    case_of(LeastSquares(), 16, 8, cosine=0.7),
    case_of(LeastSquares(), 16, 8, cosine=0.7, keys="gaussian", scale=2.0),
    case_of(LeastSquares(), 12, 30, cosine=0.5, keys="gaussian"),
    case_of(LeastSquares(), 12, 12, cosine=-1.0),
]


def name_of(case):
    return f"{case.memory.write_rule}-{type(case.keys).__name__}-{case.key_dim}-{case.num_pairs}-{case.query_cosine}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_exact_errors_agree_with_simulation_in_the_mean_and_at_every_age(case):
    """4 standard errors in the mean, 5 at the worst of N ages: one in 5,000 for all cases together if all is right."""
    errors, _ = simulate(case, 1000)
    mean, error = mean_and_error(errors.mean(axis=1))
    assert abs(predicted(case)[RAW] - mean) < 4 * error + 1e-9
    means, spread = mean_and_error(errors)
    assert np.max(np.abs(by_age(case).relative_squared_error - means) / (spread + 1e-9)) < 5


@pytest.mark.parametrize("case", [c for c in CASES if c.key_dim >= 8 and c.query_cosine > -1], ids=name_of)
def test_scale_free_metrics_have_the_stated_error(case):
    """4 standard errors, and 1% (4% at N = 8) of the scale-optimal error, 10% of the signal-to-noise ratio."""
    _, optimal = simulate(case, 1000)
    found = predicted(case)
    mean, error = mean_and_error(optimal)
    assert abs(found[OPTIMAL] - mean) < 4 * error + (0.01 if case.num_pairs >= 12 else 0.04) * mean
    mean, error = mean_and_error(1 / optimal - 1)
    assert abs(found[ODDS] - mean) < 4 * error + 0.1 * mean


def test_a_ratio_of_means_is_not_the_mean_of_ratios_for_few_pairs():
    case = case_of(Delta(1.0), 16, 6, keys="gaussian", scale=0.9)
    mean, error = mean_and_error(simulate(case, 4000)[1])
    assert abs(predicted(case)[OPTIMAL] - mean) < 4 * error + 0.05 * mean
    assert abs(by_age(case).scale_optimal_error.mean() - mean) > 4 * error + 0.05 * mean


def test_scale_free_metrics_are_left_out_where_single_trials_decide_them():
    assert set(predicted(case_of(Delta(), 16, 2))) == {RAW}
    assert predicted(case_of(Delta(), 16, 1)) == {RAW: 0.0, OPTIMAL: 0.0, ODDS: math.inf}


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_mean_over_ages_is_the_error_of_the_whole_read(case):
    found = by_age(case)
    assert found.relative_squared_error.mean() == pytest.approx(predicted(case)[RAW], rel=1e-12, abs=1e-14)
    assert found.scale_optimal_error.mean() == pytest.approx(predicted(case)[OPTIMAL], rel=0.6 / case.num_pairs)


@pytest.mark.parametrize(
    ("memory", "keys", "key_dim", "num_pairs", "cosine"),
    [
        (LinearMemory(Identity(), Delta(0.7)), SphereKeys(), 16, 40, 1.0),
        (LinearMemory(Identity(), GatedDelta(1.0, 0.95), key_norm="l2"), GaussianKeys(), 16, 40, 0.6),
        (LinearMemory(Identity(), Delta(0.05), key_scale="sqrt_dim"), SphereKeys(), 16, 40, 1.0),
        (LinearMemory(EluPlusOne(), Decay(0.95)), GaussianKeys(), 16, 40, 1.0),
        (LinearMemory(ReLU(), Oja(0.03)), GaussianKeys(), 16, 40, 1.0),
        (LinearMemory(RandomReLU(48), Decay(0.95)), SphereKeys(), 16, 40, 1.0),
        (LinearMemory(Identity(), Decay(0.95)), EquicorrelatedKeys(0.4), 16, 40, 1.0),
        (LinearMemory(EluPlusOne(), LeastSquares()), GaussianKeys(), 16, 40, 1.0),
        (LinearMemory(Dpfp(1), LeastSquares()), SphereKeys(), 16, 50, 1.0),
    ],
    ids=str,
)
def test_experiments_measure_what_is_predicted(memory, keys, key_dim, num_pairs, cosine):
    """4 standard errors of 100 trials, and the error that the prediction states: 1% for maps, where it has moments."""
    sizes = {"key_dim": key_dim, "value_dim": 16, "num_pairs": num_pairs, "query_cosine": cosine}
    run = Experiment(memory, keys, SphereValues(), **sizes, trials=100, metrics=(RAW, OPTIMAL), max_queries=1000)
    records = run.run()
    numbers = RULES[type(memory.write_rule)](Case(memory, keys, SphereValues(), key_dim, 16, num_pairs, cosine, None))
    for metric in (RAW, OPTIMAL):
        mean, error = mean_and_error(np.array([r[metric] for r in records]))
        expected, source = numbers[metric]
        assert abs(expected - mean) < 4 * error + (1e-6 if source.exact else 0.01 * mean)
        assert error < 0.05 * mean  # the check has teeth


@pytest.mark.parametrize(
    ("n", "delta", "pseudo_inverse"),
    [
        (2, 0.0082, 0),
        (8, 0.0600, 0),
        (16, 0.1345, 0),
        (32, 0.2923, 0),
        (64, 0.5982, 0),
        (96, 0.8557, 0.3333),
        (128, 1.0583, 0.5),
        (192, 1.3327, 0.6667),
        (256, 1.4955, 0.75),
        (384, 1.6655, 0.8333),
        (512, 1.7498, 0.875),
        (1024, 1.8750, 0.9375),
    ],
)
def test_reference_numbers_at_64_dimensions(n, delta, pseudo_inverse):
    assert raw(Delta(1.0), 64, n) == pytest.approx(delta, abs=6e-5)
    assert raw(LeastSquares(), 64, n) == pytest.approx(pseudo_inverse, abs=6e-5)


@pytest.mark.parametrize(("load", "error"), [(0.25, 0.1407), (0.5, 0.2969), (1, 0.6004), (2, 1.0585), (4, 1.4953)])
def test_delta_rule_in_many_dimensions(load, error):
    d = 10**8
    limit = (2 - math.exp(-load)) * (1 - (1 - math.exp(-load)) / load)
    assert raw(Delta(1.0), d, int(load * d)) == pytest.approx(limit, rel=1e-6)
    assert limit == pytest.approx(error, abs=6e-5)


def test_ridge_reference_numbers():
    """Additive cue noise of variance 0.5/d, d = N, in the limit: e = tr (l/(G + l))^2/N + 0.5 tr G(G + l)^-2/N."""
    found = []
    for level in (0.1, 0.25, 0.5, 1.0, 2.0):
        first, second = shrinkage(64, 64, level, None)
        found.append(1 - first - level * second + 0.5 * second)
    assert found == pytest.approx([0.726, 0.538, 0.5, 0.533, 0.616], abs=6e-4)


def published_delta(d, n, b, across, trace):
    """The closed form as published, per age, for unit keys: factors of the traceless part and of the trace."""
    m = np.arange(n)
    own = (1 - 1 / d) * across**m + trace**m / d
    h = b / (2 - b)
    first = 1 - 2 * b * (1 - b / d) ** m + b * b * own + h * (1 - trace**m)
    return first + (trace**m - b * (2 - b) * own) * h * (1 - trace ** (n - 1 - m))


def test_delta_rule_is_the_published_form_and_neither_hebbian_nor_with_its_factors_swapped():
    d, n, b = 12, 24, 0.8
    across, trace = 1 - 2 * b / d + 2 * b * b / (d * (d + 2)), 1 - b * (2 - b) / d
    case = case_of(Delta(b), d, n)
    np.testing.assert_allclose(by_age(case).relative_squared_error, published_delta(d, n, b, across, trace), rtol=1e-12)
    errors, _ = simulate(case, 1500)
    mean, error = mean_and_error(errors.mean(axis=1))
    assert abs(published_delta(d, n, b, trace, across).mean() - mean) > 8 * error
    assert abs((n - 1) / d - mean) > 8 * error


def test_key_norms_count():
    """Gaussian keys are not unit keys, and signs not points of the sphere: the formula of one fails on the other."""
    for own, other, d, step in (("gaussian", "sphere", 12, 0.8), ("signs", "sphere", 2, 1.4)):
        errors, _ = simulate(case_of(Delta(step), d, 2 * d, keys=own), 6000)
        mean, error = mean_and_error(errors.mean(axis=1))
        assert abs(raw(Delta(step), d, 2 * d, keys=own) - mean) < 4 * error
        assert abs(raw(Delta(step), d, 2 * d, keys=other) - mean) > 6 * error


def test_rules_meet_where_they_are_the_same():
    d, n = 12, 20
    assert raw(GatedDelta(0.7, 1.0), d, n) == pytest.approx(raw(Delta(0.7), d, n), rel=1e-14)
    assert raw(Decay(1.0), d, n) == pytest.approx((n - 1) / d, rel=1e-13)
    assert raw(LeastSquares(1e9), d, n) == pytest.approx(1, abs=1e-6)
    flat = by_age(case_of(Hebbian(), d, n)).relative_squared_error
    assert flat == pytest.approx(np.full(n, (n - 1) / d), rel=1e-13)
    # a step in units of the norm: keys twice as long want a quarter of it
    assert raw(Delta(0.2), d, n, scale=2.0) == pytest.approx(raw(Delta(0.8), d, n), rel=1e-12)


def test_the_newest_pair_is_exact_under_a_whole_delta_step_and_the_oldest_is_not():
    found = by_age(case_of(Delta(1.0), 16, 30)).relative_squared_error
    assert found[0] == pytest.approx(0, abs=1e-12)
    assert found[-1] > 1


@pytest.mark.parametrize(("x", "y"), [(0.9, 1.0), (0.9, 0.9), (-0.4, 0.8), (0.0, 0.5), (0.0, 0.0), (1 - 1e-9, 1.0)])
@pytest.mark.parametrize(("n", "low", "high"), [(1, 0, 0), (40, 0, 39), (40, 3, 17), (5000, 10, 4000)])
def test_means_over_ages_are_those_of_the_values(x, y, n, low, high):
    case = case_of(Decay(), 4, n)
    curve = AgeCurve(case, Term(0.3, x, y), (Term(0.7, y, x),), (Term(0.1),), Source("", True, "none"))
    values, _ = curve.errors(np.arange(low, high + 1))
    assert curve.mean_error(low, high) == pytest.approx(values.mean(), rel=1e-10)


def test_runs_of_ages_average_to_the_whole():
    memory, bins = LinearMemory(Identity(), GatedDelta(0.9, 0.98)), [(0, 9), (10, 29), (30, 99)]
    means = mean_by_age(memory, SphereKeys(), 16, 16, 100, bins)
    found = predict_by_age(memory, SphereKeys(), 16, 16, 100)
    assert means == pytest.approx([found.relative_squared_error[a : b + 1].mean() for a, b in bins], rel=1e-12)


@pytest.mark.parametrize("unit_norm", [True, False])
@pytest.mark.parametrize(("d", "n"), [(16, 8), (16, 16), (16, 40), (32, 32)])
def test_the_spectrum_agrees_with_dense_matrices_where_the_limit_does_not(d, n, unit_norm):
    level, rng = 0.1, np.random.default_rng(3)
    keys = draw(rng, "sphere" if unit_norm else "gaussian", (2000, n, d))
    eigenvalues = np.linalg.eigvalsh(keys @ keys.mT).clip(0)
    mean, error = mean_and_error(np.mean((level / (eigenvalues + level)) ** 2, axis=1))
    traces = (shrinkage(n, d, level, law) for law in (unit_norm, None))
    found, limit = (1 - first - level * second for first, second in traces)
    assert abs(found - mean) < 4 * error + 0.015 * mean
    if n == d:
        assert abs(limit - mean) > 4 * error + 0.004 * mean


@pytest.mark.parametrize(("keys", "own"), [("sphere", -1), ("gaussian", 1)])
def test_a_large_ridge_leaves_the_hebbian_memory_up_to_scale(keys, own):
    d, n = 32, 20
    found = by_age(case_of(LeastSquares(1e6), d, n, keys=keys)).scale_optimal_error
    assert found == pytest.approx(np.full(n, (n + own) / (n + own + d)), rel=2e-5)


@pytest.mark.parametrize("keys", ["sphere", "gaussian"])
@pytest.mark.parametrize(("d", "n", "cosine"), [(16, 16, 1.0), (16, 40, 0.7), (32, 20, 0.4)])
@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_ridge_agrees_with_simulation(keys, d, n, cosine, ridge):
    case = case_of(LeastSquares(ridge), d, n, keys=keys, cosine=cosine, scale=1.3)
    errors, optimal = simulate(case, 500)
    for samples, name in ((errors.mean(axis=1), RAW), (optimal, OPTIMAL)):
        mean, error = mean_and_error(samples)
        assert abs(predicted(case)[name] - mean) < 4 * error + 0.01 * mean


def test_noisy_cues_of_many_keys_on_the_sphere_have_the_stated_error():
    for d, n in ((16, 24), (16, 60)):
        case = case_of(LeastSquares(), d, n, cosine=0.5)
        mean, error = mean_and_error(simulate(case, 800)[0].mean(axis=1))
        assert abs(predicted(case)[RAW] - mean) < 4 * error + 0.01 * mean


@pytest.mark.parametrize(
    ("feature_map", "rank"), [(EluPlusOne(), 32), (Dpfp(1), 64), (Dpfp(2), 128), (Dpfp(40), 32 * 62)]
)
def test_ranks_of_features(feature_map, rank):
    memory, n = LinearMemory(feature_map, LeastSquares()), 5000
    case = Case(memory, GaussianKeys(), SphereValues(), 32, 16, n, 1.0, None)
    assert predicted(case)[RAW] == pytest.approx(1 - rank / n, rel=1e-12)
    if rank <= 128:
        features = feature_map(np.random.default_rng(0).standard_normal((300, 32)))
        assert np.linalg.matrix_rank(features) == rank


def test_orthonormal_keys_are_read_exactly_by_least_squares():
    case = Case(LinearMemory(Identity(), LeastSquares()), OrthonormalKeys(), SphereValues(), 16, 16, 16, 1.0, None)
    assert predicted(case) == {RAW: 0.0, OPTIMAL: 0.0, ODDS: math.inf}


MEMORY = LinearMemory(Identity(), Delta())


def test_keys_of_a_file_are_covered_in_random_order_only(tmp_path):
    path = tmp_path / "keys.npy"
    np.save(path, np.random.default_rng(0).standard_normal((60, 16)))
    sizes = {"key_dim": 16, "value_dim": 16, "num_pairs": 40}
    held = LinearMemory(ReLU(), Decay(0.95))
    keys = ArrayKeys(str(path))
    run = Experiment(held, keys, SphereValues(), **sizes, trials=100, age_bins=2, metrics=(RAW,))
    found = np.array([[r[RAW] for r in run.run_with_ages()[1]]]).reshape(100, 2)
    mean, error = mean_and_error(found)
    expected = mean_by_age(held, keys, **sizes, bins=[(0, 19), (20, 39)])
    assert np.all(np.abs(mean - expected) < 4 * error)
    ordered = ArrayKeys(str(path), order="given")
    for law, memory in ((ordered, held), (keys, LinearMemory(RandomReLU(8), Decay()))):
        with pytest.raises(TheoryUnavailable, match="keys of a file"):
            predict_by_age(memory, law, **sizes)


@pytest.mark.parametrize(
    ("memory", "keys", "options", "told"),
    [
        (LinearMemory(Identity(), Delta(2.0)), SphereKeys(), {}, "is not below 2"),
        (LinearMemory(Identity(), Delta(0.9), key_scale=1.5), SphereKeys(), {}, "is not below 2"),
        (LinearMemory(Identity(), GatedDelta(1.0)), GaussianKeys(), {}, "is not below 2"),
        (LinearMemory(Identity(), Oja(0.2)), SphereKeys(), {}, r"step_size \|v\|\^2 = 3.2"),
        (LinearMemory(Identity(), GatedDecay()), SphereKeys(), {}, "gates depend on the stored features"),
        (LinearMemory(ReLU(), Delta()), SphereKeys(), {}, "identity map only"),
        (LinearMemory(CosFormer(), Decay()), SphereKeys(), {}, "the place of a key"),
        (MEMORY, EquicorrelatedKeys(0.5), {}, "independent isotropic keys"),
        (MEMORY, AutoregressiveKeys(0.5), {}, "AutoregressiveKeys"),
        (LinearMemory(Identity(), Delta(), Normalized()), SphereKeys(), {}, "Normalized"),
        (LinearMemory(Identity(), Delta(), feature_norm="sum"), SphereKeys(), {}, "divided by their sum"),
        (LinearMemory(Identity(), Delta(), state_dtype="bfloat16"), SphereKeys(), {}, "bfloat16"),
        (MEMORY, SphereKeys(), {"values": SphereValues(mean=0.1)}, "mean zero"),
        (MEMORY, SphereKeys(), {"values": OneHotValues()}, "independent, isotropic"),
        (LinearMemory(Exp(), Decay()), GaussianKeys(), {"query_cosine": 0.5}, "identity map only"),
        (LinearMemory(Taylor(2), LeastSquares()), SphereKeys(), {}, "rank of the feature map Taylor"),
        (LinearMemory(Identity(), LeastSquares()), RademacherKeys(), {}, "rank of keys"),
        (LinearMemory(Identity(), LeastSquares(1.0)), RademacherKeys(), {}, "keys of signs"),
        (LinearMemory(Identity(), LeastSquares()), SphereKeys(), {"query_cosine": 0.5}, "is infinite"),
        (LinearMemory(Identity(), LeastSquares(1e-4)), SphereKeys(), {}, "out of reach of an expansion"),
        (SoftmaxMemory(), SphereKeys(), {}, "SoftmaxMemory"),
    ],
)
def test_what_no_formula_covers_is_refused_in_words(memory, keys, options, told):
    with pytest.raises(TheoryUnavailable, match=told):
        predict_by_age(memory, keys, 16, 16, 16, **options)


def test_centring_makes_correlated_keys_isotropic_but_not_their_noisy_cues():
    memory = LinearMemory(Identity(), Delta(), key_center="mean")
    keys = EquicorrelatedKeys(0.5, unit_norm=False)
    exact = Case(memory, keys, SphereValues(), 16, 16, 20, 1.0, None)
    assert isotropic(exact).square == pytest.approx(0.5)
    with pytest.raises(TheoryUnavailable, match="noisy cues"):
        isotropic(exact._replace(query_cosine=0.5))
    assert isotropic(exact._replace(keys=AutoregressiveKeys(0.0), query_cosine=0.5)).unit


def test_ages_and_sizes_out_of_range_are_errors_that_name_the_argument():
    for given in ([-1], [16], []):
        with pytest.raises(ValueError, match="ages must be one or more integers from 0 to 15"):
            predict_by_age(MEMORY, SphereKeys(), 8, 8, 16, ages=given)
    with pytest.raises(ValueError, match="key_dim"):
        predict_by_age(MEMORY, SphereKeys(), 0, 8, 16)


def test_every_number_says_where_it_comes_from():
    for case in CASES:
        for number, source in RULES[type(case.memory.write_rule)](case).values():
            assert source.formula and source.known_error
            assert not math.isnan(number)
