"""Replications: each reproduces its study at a small size, and a wrong number or a wrong memory is found out."""

import dataclasses
import math

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from scipy.integrate import quad
from scipy.special import ndtr

from capmem.ensembles import GaussianKeys, OrthonormalKeys, SphereKeys, SphereValues, TightFrameKeys
from capmem.feature_maps import EluPlusOne, Identity
from capmem.figures._palette import styles
from capmem.memory import LinearMemory
from capmem.readouts import Normalized
from capmem.replications import (
    REPLICATIONS,
    arora2024,
    cabannes2024,
    classical,
    feature_cosines,
    nichani2024,
    ramsauer2021,
    schlag2021,
    zhong2025,
)
from capmem.replications.measurement import as_frame, measured, slope, with_quoted
from capmem.theory.classical import hebbian_bits, hopfield_limit, superposition_accuracy
from capmem.write_rules import Hebbian, LeastSquares


def judged(study, rows):
    """The verdicts of a study on rows of measurements, by quantity."""
    own = REPLICATIONS[study]
    return {v.quantity: v for v in own.judge(with_quoted(as_frame(rows), own.quoted()))}


def verdict(study, rows, quantity):
    return judged(study, rows)[quantity].verdict


# Schlag, Irie, Schmidhuber 2021


def floor_rows(widths, sizes=schlag2021.SIZES):
    """Both settings as their formulas say, each map with the feature dimension given."""
    for name, width in widths.items():
        for part in (schlag2021.INVERSE, schlag2021.FRAMES):
            for s in sizes:
                yield from [(part, name, s, trial, 0.5 * max(0, 1 - width / s)) for trial in range(6)]
        for s in sizes:
            yield from [(schlag2021.RANDOM, name, s, trial, 0.5 * (s - 1) / (s - 1 + width)) for trial in range(6)]
    for s in schlag2021.UPDATE_SIZES:
        yield from [(schlag2021.UPDATE, "hebbian", s, trial, schlag2021.stale_floor(s, s)) for trial in range(6)]
        yield from [(schlag2021.UPDATE, "delta", s, trial, 0.0) for trial in range(6)]


def test_the_logged_losses_agree_with_the_rank_floor_and_with_no_other_width():
    right = schlag2021.widths()
    assert {v.verdict for v in judged("schlag2021", floor_rows(right)).values()} == {"agrees", "not comparable"}
    halved = {name: width // 2 for name, width in right.items()}  # what a wrong DPFP does to the rank
    found = judged("schlag2021", floor_rows(halved))
    for name in right:
        assert found[f"{name}: logged loss, mean over S=20..600"].verdict == "differs"
        assert found[f"{name}: distance (rms) of the logs from ours"].verdict == "differs"


@pytest.mark.parametrize(
    ("memory", "keys", "dim", "metric"),
    [
        (LinearMemory(EluPlusOne(), LeastSquares()), GaussianKeys(), 8, "relative_squared_error"),
        (LinearMemory(Identity()), TightFrameKeys(), 8, "scale_optimal_error"),
    ],
)
def test_pseudo_inverse_and_tight_frames_lie_on_the_floor(memory, keys, dim, metric):
    np.testing.assert_allclose(schlag2021.loss(memory, keys, dim, 20, metric, 0, 2), 0.5 * (1 - 8 / 20), atol=1e-9)


def test_keys_without_norm_do_not_lie_on_the_floor():
    found = schlag2021.loss(LinearMemory(Identity()), GaussianKeys(), 8, 20, "scale_optimal_error", 0, 4)
    assert min(found) > 0.5 * (1 - 8 / 20) + 0.02


def test_the_floor_of_stale_values_is_what_averaging_leaves():
    """Values of a key averaged by hand, at S = 5 and L = 9; 4 standard errors of 4000 sequences."""
    rng, size, length = np.random.default_rng(3), 5, 9
    errors = []
    for _ in range(4000):
        asked, told = rng.integers(size, size=(2, length))
        for key in set(asked):
            counts = np.bincount(told[asked == key], minlength=size) / np.count_nonzero(asked == key)
            last = told[asked == key][-1]
            errors.append((counts @ counts - 2 * counts[last] + 1) / 2)
    error = 4 * np.std(errors) / len(errors) ** 0.5
    assert schlag2021.stale_floor(size, length) == pytest.approx(np.mean(errors), abs=error)
    without_equal_values = schlag2021.stale_floor(size, length) / (1 - 1 / size)
    assert abs(without_equal_values - np.mean(errors)) > error


def test_the_sum_rule_keeps_stale_values_only_if_it_is_normalised():
    keys = OrthonormalKeys().sample(np.random.default_rng(0), 4, 4)
    asked, told = np.array([0, 0, 1]), np.array([2, 3, 1])
    normalised = schlag2021.stale_errors(LinearMemory(Identity(), Hebbian(), Normalized()), keys, asked, told)
    np.testing.assert_allclose(normalised, [0.25, 0], atol=1e-12)  # |(e2 + e3)/2 - e3|^2 / 2
    plain = schlag2021.stale_errors(LinearMemory(Identity()), keys, asked, told)
    np.testing.assert_allclose(plain, [0.5, 0], atol=1e-12)


# Cabannes, Dohmatob, Bietti 2024


def test_a_weighted_memory_answers_as_the_dense_outer_product_does(rng):
    keys, outputs = GaussianKeys().sample(rng, 30, 12), SphereKeys().sample(rng, 5, 12)
    weights, targets = rng.random(30), np.arange(30) % 5
    dense = sum(w * np.outer(k, outputs[t]) for w, k, t in zip(weights, keys, targets, strict=True))
    right = (outputs @ dense.T @ keys.T).argmax(axis=0) == targets
    np.testing.assert_array_equal(cabannes2024.classified(keys, weights[:, None], outputs)[:, 0], right)


@pytest.fixture(scope="module")
def weighted():
    return list(cabannes2024.against_dimension(range(8), 0)) + list(cabannes2024.against_data(range(8), 0))


def test_the_slopes_of_the_weightings_agree(weighted):
    found = judged("cabannes2024", weighted)
    for line in ("q = 1[x < d/8]", "q = p^(1/4)"):
        assert found[f"{line}: slope in d"].verdict == "agrees"
    assert found["unseen inputs: slope in T"].verdict == "agrees"
    assert -0.33 < found["q = p: slope in d"].ours < -0.18


def test_a_weighting_under_another_name_differs(weighted):
    swap = {"q = p": "q = 1[x < d/8]", "q = 1[x < d/8]": "q = p"}
    found = judged("cabannes2024", [row._replace(line=swap.get(row.line, row.line)) for row in weighted])
    assert found["q = p: slope in d"].verdict == found["q = 1[x < d/8]: slope in d"].verdict == "differs"


def test_the_law_is_zipfs():
    p = cabannes2024.zipf()
    assert p.sum() == pytest.approx(1) and p[0] / p[9] == pytest.approx(100)
    assert p[8:].sum() == pytest.approx(0.0709, abs=1e-4) and p[64:].sum() == pytest.approx(0.0088, abs=1e-4)


# Zhong, Xu, Ao, Shi 2025


@pytest.mark.parametrize("name", zhong2025.KERNELS)
def test_the_kernels_noise_is_that_of_the_formula(name):
    """By quadrature over the cosine of two unit keys, density (1 - t^2)^((d - 3) / 2)."""
    d = 16
    score = zhong2025.KERNELS[name].score or {"linear": lambda t, d: t, "power 2": lambda t, d: t**2}[name]
    density = [quad(lambda t, f=f: f(t) * (1 - t * t) ** ((d - 3) / 2), -1, 1, points=[0])[0]
               for f in (lambda t: 1.0, lambda t: float(score(np.float64(t), d)) ** 2)]  # fmt: skip
    assert zhong2025.KERNELS[name].square(d) == pytest.approx(density[1] / density[0], rel=1e-6)


@pytest.mark.parametrize("name", zhong2025.KERNELS)
def test_the_memory_has_the_kernels_noise(name):
    found = [value for *_, value in zhong2025.inverse_snr(name, 16, (64,), 0, 24)]
    error = 4 * np.std(found) / len(found) ** 0.5
    assert np.mean(found) == pytest.approx(63 * zhong2025.KERNELS[name].square(16), abs=error)


def snr_rows(dim):
    for name, kernel in zhong2025.KERNELS.items():
        for trial in range(6):
            yield from [("against N", name, n, trial, (n - 1) * kernel.square(dim)) for n in zhong2025.PAIRS]
            yield from [("against d", name, d, trial, 255 * kernel.square(d)) for d in zhong2025.DIMS]


def test_another_dimension_differs_in_noise_not_in_slope():
    assert {v.verdict for v in judged("zhong2025", snr_rows(64)).values()} == {"agrees"}
    wrong = {quantity for quantity, v in judged("zhong2025", snr_rows(48)).items() if v.verdict == "differs"}
    assert wrong == {f"{name}: 1/SNR at N=256, d=64" for name in zhong2025.KERNELS}


# Nichani, Lee, Bietti 2024


def test_the_guide_is_solved():
    assert [round(nichani2024.trained_guide(d)) for d in (8, 16, 32, 64, 128, 256)] == [17, 50, 156, 506, 1695, 5816]


def accuracy_rows(stretch):
    """Curves that fall through .99 at `stretch` times the known capacity."""
    for dim in nichani2024.DIMS:
        middle = stretch * nichani2024.formula(dim)
        for factor in nichani2024.NEAR:
            n = round(middle * factor)
            yield from [
                ("top-1 accuracy", f"d={dim}", n, trial, 0.99 - 0.1 * math.log(n / middle)) for trial in range(6)
            ]


def test_the_hebbian_capacity_agrees_and_a_tenth_less_differs():
    for stretch, told in ((1.0, "agrees"), (0.9, "differs")):
        found = judged("nichani2024", accuracy_rows(stretch))
        assert {found[f"hebbian: pairs at 99%, d={d}"].verdict for d in nichani2024.GOLDEN} == {told}
        assert found["trained: pairs at 99%, d=64 (guide)"].verdict == "not comparable"


def test_measured_accuracies_cross_near_the_known_capacity():
    frame = as_frame(nichani2024.accuracies(32, 0, 64, 0))
    assert measured(frame, "top-1 accuracy", "d=32", 28).value == pytest.approx(0.99, abs=0.006)


# Ramsauer et al. 2021


@pytest.fixture(scope="module")
def patterns():
    rng = np.random.default_rng(0)
    patterns = SphereValues().sample(rng, 64, ramsauer2021.DIM)
    return patterns, patterns + 0.1 * rng.standard_normal(patterns.shape)


def test_one_update_stays_within_its_bound_and_not_within_that_of_another_beta(patterns):
    for beta in ramsauer2021.BETAS:
        found = ramsauer2021.one_update(*patterns, beta)
        assert (found.errors <= found.bounds + ramsauer2021.ROUNDING).all()
    wrong = ramsauer2021.one_update(*patterns, ramsauer2021.DIM**-0.5, bound_beta=1.0)  # the default of attention
    assert (wrong.errors > wrong.bounds).mean() > 0.9


@pytest.mark.slow
def test_patterns_beyond_the_bound_differ():
    rows = [row for size in ramsauer2021.SIZES[:2] for row in ramsauer2021.errors(size, 0, 6)]
    rows += [row._replace(line="N=800") for row in rows if row.line == "N=50"]
    assert "differs" not in {v.verdict for v in judged("ramsauer2021", rows).values()}
    beyond = [row._replace(value=0.01) if row.part == ramsauer2021.BROKEN else row for row in rows]
    assert verdict("ramsauer2021", beyond, "share of patterns beyond the bound, N=200, all beta") == "differs"


# the classics


def test_a_network_below_its_limit_keeps_its_patterns_and_above_it_does_not(rng):
    overlaps = [
        classical.settled_overlaps(np.sign(rng.standard_normal((round(load * 400), 400))).astype(np.float32), 20).mean()
        for load in (0.08, 0.3)
    ]
    assert overlaps[0] > 0.97 and overlaps[1] < 0.6


def test_the_overlap_below_the_limit_solves_the_mean_field_equations():
    """m = erf(m / sqrt(2 alpha r)), r = (1 - C)^-2, C = sqrt(2 / (pi alpha r)) exp(-m^2 / (2 alpha r))."""
    m, alpha, r = 1.0, 0.1, 1.0
    for _ in range(2000):
        c = math.sqrt(2 / (math.pi * alpha * r)) * math.exp(-(m**2) / (2 * alpha * r))
        m, r = math.erf(m / math.sqrt(2 * alpha * r)), (1 - c) ** -2
    assert classical.retrieval_overlap(alpha) == pytest.approx(m, abs=1e-9)
    limit = hopfield_limit()
    assert classical.retrieval_overlap(limit.load - 1e-12) == pytest.approx(limit.overlap, abs=1e-4)


def test_superpositions_are_decoded_as_the_integral_says():
    def density(h, s):
        return math.exp(-h * h / 2) / math.sqrt(2 * math.pi) * ndtr(h + s) ** 26

    found = [row.value for row in classical.superposition(40, 0, 16)]
    expected = quad(density, -12, 12, args=(classical.signal(40),))[0]
    assert superposition_accuracy(classical.signal(40), 27) == pytest.approx(expected, abs=1e-9)
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / 16**0.5)
    assert abs(np.mean(found) - superposition_accuracy(classical.signal(80), 27)) > 0.1


WRONG = "hopfield: share of wrong bits at a load"


def classical_rows(overlap=0.0, bits=1.0, accuracy=1.0):
    """All that is measured as the formulas say, but for what is changed."""
    for trial in range(6):
        for load in classical.LOADS:
            m = classical.retrieval_overlap(load) if load < 0.137 else 0.5
            yield (classical.OVERLAP, "N=1500", load, trial, m + overlap)
            yield (classical.OVERLAP, "N=300", load, trial, m + overlap)
        for load in classical.BIT_LOADS:
            yield (classical.BITS, "measured", load, trial, bits * hebbian_bits(load))
        for items in classical.ITEMS:
            told = accuracy * superposition_accuracy(classical.signal(items), 27)
            yield (classical.SUPERPOSITION, "measured", items, trial, told)


def test_each_classic_differs_when_its_measurement_is_changed():
    assert "differs" not in {v.verdict for v in judged("classical", classical_rows()).values()}
    for change, part in (({"overlap": -0.02}, WRONG), ({"overlap": 0.006}, WRONG), ({"bits": 0.9}, "hebbian"),
                         ({"accuracy": 0.9}, "superposition, 27 symbols, 500")):  # fmt: skip
        found = judged("classical", classical_rows(**change))
        wrong = {quantity for quantity, v in found.items() if v.verdict == "differs"}
        assert wrong == {quantity for quantity in found if quantity.startswith(part)}


def test_a_hebbian_state_holds_the_bits_of_the_formula():
    frame = as_frame(classical.hebbian_bits(0, 3))
    assert measured(frame, classical.BITS, "measured", 1.0).value == pytest.approx(0.3689, abs=0.01)


# Arora et al.


@pytest.fixture(scope="module")
def recalled():
    needed = [*arora2024.GOLDEN, "taylor, d=16, v=64", "softmax, d=64, v=64"]
    return [row for name in needed for row in arora2024.recall(name, 0, 2)]


def test_recall_follows_the_formula_at_every_state(recalled):
    found = judged("arora2024", recalled)
    for name in arora2024.GOLDEN:
        assert abs(found[f"{name}: recall, N=256"].ours - found[f"{name}: recall, N=256"].published) < 0.06


def test_states_under_another_size_differ(recalled):
    wide = {"identity, d=64, v=64": "identity, d=16, v=64", "identity, d=16, v=64": "identity, d=64, v=64"}
    rows = [row._replace(line=wide.get(row.line, row.line), trial=t) for row in recalled for t in range(6)
            if row.trial == 0]  # fmt: skip
    assert verdict("arora2024", rows, "identity, d=64, v=64: recall, N=256") == "differs"


def test_a_based_state_is_counted_with_its_denominator_and_softmax_with_its_pairs():
    assert [arora2024.held(name, 1) for name in arora2024.BASED] == [2925, 9945, 21125]
    assert arora2024.held("softmax, d=64, v=64", 256) == 256 * 128
    assert arora2024.held("identity, d=128, v=64", 256) == 128 * (64 + 1)


# linear-attention-memory-research


def test_mean_cosines_agree_for_unit_keys_and_not_for_gaussian_ones():
    unit = judged("feature_cosines", feature_cosines.cosines(0, 8))
    assert {v.verdict for v in unit.values()} == {"agrees"}
    plain = judged("feature_cosines", feature_cosines.cosines(0, 8, GaussianKeys()))
    assert plain["elu_plus_one: mean |cos|"].verdict == "differs"


# all of them


def made_up(study):
    """Whole tables of measurements, none of them measured here."""
    if study == "arora2024":
        return [("recall", name, n, t, 0.5) for name in arora2024.STATES for n in arora2024.PAIRS for t in range(2)]
    if study == "ramsauer2021":
        parts = (ramsauer2021.ERROR, ramsauer2021.BOUND, ramsauer2021.BROKEN)
        return [(part, f"N={n}", beta, t, 0.1) for part in parts for n in ramsauer2021.SIZES
                for beta in ramsauer2021.BETAS for t in range(2)]  # fmt: skip
    if study == "cabannes2024":
        rows = [("error against d", q, d, t, 1 / d) for q in cabannes2024.WEIGHTINGS for d in cabannes2024.DIMS
                for t in range(2)]  # fmt: skip
        return rows + [
            ("error against T", cabannes2024.SEEN, n, t, 1 / n) for n in cabannes2024.SAMPLES for t in (0, 1)
        ]
    own = {
        "schlag2021": lambda: floor_rows(schlag2021.widths()),
        "zhong2025": lambda: snr_rows(64),
        "nichani2024": lambda: accuracy_rows(1.0),
        "classical": classical_rows,
        "feature_cosines": lambda: feature_cosines.cosines(0, 2),
    }
    return own[study]()


@pytest.mark.parametrize("name", REPLICATIONS)
def test_every_figure_shows_what_was_measured_and_what_is_quoted(name):
    study = REPLICATIONS[name]
    table = with_quoted(as_frame(made_up(name)), study.quoted())
    grid = study.draw(table)
    drawn = set(zip(grid.table["part"], grid.table["line"], strict=True))
    assert set(zip(table["part"], table["line"], strict=True)) <= drawn
    assert all(len(ax.lines) >= 2 for ax in grid.axes.flat)
    assert all(ax.get_xlabel() for ax in grid.axes.flat)
    with pytest.raises((KeyError, ValueError, IndexError)):
        study.draw(table.iloc[:0])


def test_a_map_has_the_colour_that_it_has_in_other_figures():
    """Variants of DPFP begin at its colour and get darker; kernels have that of the map they belong to."""
    known = {name: to_rgb(style["color"]) for name, style in styles(["identity", "dpfp", "polynomial", "relu"]).items()}

    def drawn(name):
        study = REPLICATIONS[name]
        (legend,) = study.draw(with_quoted(as_frame(made_up(name)), study.quoted())).figure.legends
        handles = zip(legend.get_texts(), legend.legend_handles, strict=True)
        return {text.get_text(): to_rgb(handle.get_color()) for text, handle in handles}

    schlag, zhong = drawn("schlag2021"), drawn("zhong2025")
    assert schlag["DPFP-1, D=128"] == known["dpfp"]
    assert sum(schlag["DPFP-3, D=384"]) < sum(schlag["DPFP-2, D=256"]) < sum(known["dpfp"])
    assert [zhong[name] for name in ("linear", "power 2", "relu score")] == [
        known[name] for name in ("identity", "polynomial", "relu")
    ]


@pytest.mark.parametrize("name", REPLICATIONS)
def test_tasks_depend_on_seed_and_trial_alone(name):
    """The same seed gives the same numbers; checked on the last, shortest, task."""
    task = REPLICATIONS[name].tasks(3, 2)[-1]
    small = task._replace(arguments=tuple(range(1) if isinstance(a, range) else a for a in task.arguments))
    assert small.run() == small.run()


def test_names_are_those_of_the_registry():
    assert {name: study.name for name, study in REPLICATIONS.items()} == {name: name for name in REPLICATIONS}
    assert all(dataclasses.is_dataclass(study) and study.trials >= 8 for study in REPLICATIONS.values())


def test_a_slope_is_that_of_a_power_law():
    x = np.array([1.0, 2.0, 8.0])
    assert slope(x, 3 * x**-0.5) == pytest.approx(-0.5)


def test_widths_are_those_of_the_maps():
    assert schlag2021.widths() == {"elu_plus_one": 64, "dpfp, nu=1": 128, "dpfp, nu=2": 256, "dpfp, nu=3": 384}
