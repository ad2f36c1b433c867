"""The same numbers on every array library: NumPy, array-api-strict, PyTorch, JAX (where they are installed)."""

import timeit
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from capmem import LinearMemory, attention, evaluate, geometry, metrics
from capmem._arrays import namespace
from capmem.feature_maps import CosFormer, Dpfp, EluPlusOne, FeatureMap, Identity, ReLU
from capmem.memory import SoftmaxMemory
from capmem.readouts import Linear, Normalized, RMSNorm
from capmem.write_rules import Decay, Delta, GatedDecay, GatedDelta, Hebbian, LeastSquares, Oja
from tests.conformance import FEATURE_MAPS, RULES, unit

READOUTS = [Linear(), Normalized(), Normalized(0.5), RMSNorm(), RMSNorm(0.0)]
N, D, V = 12, 5, 4


class Pairs(NamedTuple):
    """What the cases compute with, all arrays of one library."""

    keys: Any
    values: Any
    queries: Any
    steps: Any
    gates: Any
    order: Any


def numpy_pairs(dtype):
    rng = np.random.default_rng(5)
    rows = [unit(rng.standard_normal((2, N, dim))).astype(dtype) for dim in (D, V, D)]
    gates = rng.uniform(0.1, 0.9, (2, 2, N)).astype(dtype)
    return Pairs(*rows, gates[0], -gates[1], np.arange(N)[::-1].copy())


class Library:
    """How arrays of a library are made from NumPy's, and looked at."""

    def __init__(self, name):
        self.xp = pytest.importorskip(name)
        if name.startswith("jax"):
            pytest.importorskip("jax").config.update("jax_enable_x64", True)

    def take(self, x):
        return self.xp.asarray(x)

    def look(self, x):
        return np.asarray(x)


class Torch(Library):
    """PyTorch, by a tensor that refuses to become a NumPy array."""

    def __init__(self, name):
        super().__init__(name)
        self.guarded = guarded_tensor(self.xp)

    def take(self, x):
        return self.xp.asarray(x).as_subclass(self.guarded)

    def look(self, x):
        return x.detach().as_subclass(self.xp.Tensor).numpy()


class Strict(Library):
    """array-api-strict, whose arrays are looked at by their private NumPy array."""

    def look(self, x):
        return x._array


def refuse_conversion(*args, **kwargs):
    raise AssertionError("converted to NumPy")


def guarded_tensor(torch):
    refused = dict.fromkeys(("__array__", "numpy", "tolist"), refuse_conversion)
    return type("Guarded", (torch.Tensor,), refused)


LIBRARIES = {"numpy": Library, "array_api_strict": Strict, "torch": Torch, "jax.numpy": Library}


@pytest.fixture(params=LIBRARIES)
def library(request, monkeypatch):
    library = LIBRARIES[request.param](request.param)
    if request.param == "array_api_strict":
        monkeypatch.setattr(library.xp._array_object.Array, "__array__", refuse_conversion)
        monkeypatch.setattr(library.xp._array_object.Array, "__buffer__", refuse_conversion, raising=False)
    return library


def write_twice(rule, pairs, **given):
    """S and z after two writes; the second call meets a state that is not empty."""
    state = rule.init(D, V, batch=(2,), like=pairs.keys)
    for part in (slice(0, 5), slice(5, N)):
        chosen = {name: x[:, part] for name, x in given.items()}
        state = rule.write(state, pairs.keys[:, part, :], pairs.values[:, part, :], **chosen)
    return [rule.matrix(state), state.z]


def gates_of(rule, pairs):
    given = {}
    if hasattr(rule, "step_size"):
        given["step_size"] = pairs.steps
    if isinstance(rule, Decay | GatedDecay | GatedDelta):
        given["log_decay"] = pairs.gates
    return given


def through_memory(memory, pairs, calibrate=True):
    means = memory.calibrate(pairs.keys) if calibrate else {}
    state = memory.init(D, V, batch=(2,), like=pairs.keys, **means)
    for part in (slice(0, 5), slice(5, N)) if calibrate else (slice(0, N),):
        state = memory.write(state, pairs.keys[:, part, :], pairs.values[:, part, :])
    retrieved, met = memory.read(state, pairs.queries, diagnostics=True)
    assert all(isinstance(count, int) for count in met)
    return [retrieved, memory.read(state, pairs.queries)]


def nonzero(phi):
    """A memory that takes every step there is, in a form that keeps its numbers apart from zero."""
    return LinearMemory(
        phi, GatedDelta(0.5, 0.9), RMSNorm(), "mean", "l2", "sqrt_dim", feature_center="mean", feature_norm="l2"
    )


MEMORIES = {
    "all steps": nonzero(EluPlusOne()),
    "all steps, dpfp": nonzero(Dpfp(2)),
    "positions": LinearMemory(CosFormer(40), readout=Normalized()),
    "sum norms": LinearMemory(EluPlusOne(), readout=Normalized(), key_scale=2.0, feature_norm="sum"),
    "least squares": LinearMemory(Identity(), LeastSquares(0.1), key_norm="sum"),
    "softmax": SoftmaxMemory(),
}

NOISY = {
    "relative squared error": metrics.relative_squared_error,
    "scale-optimal error": metrics.scale_optimal_error,
    "cosine": metrics.cosine_similarity,
    "signal to noise": metrics.signal_to_noise,
}

GEOMETRY = [
    geometry.gram,
    geometry.mean_coherence,
    geometry.mean_squared_coherence,
    geometry.max_coherence,
    geometry.effective_rank,
    geometry.participation_ratio,
    geometry.effective_dimension,
]


def map_case(phi, pairs):
    return [phi(pairs.keys), phi.kernel(pairs.queries, pairs.keys)]


def readout_case(readout, pairs):
    features = pairs.keys * pairs.keys
    S, z = features.mT @ pairs.values, namespace(features).sum(features, axis=-2)
    return [readout(S, z, features).retrieved]


def metric_case(metric, pairs):
    retrieved = pairs.values + 0.5 * pairs.queries[..., :V]
    return [metric(retrieved, pairs.values), metric(retrieved, pairs.values, per_pair=True)]


def top1_case(pairs):
    retrieved = pairs.values + 0.5 * pairs.queries[..., :V]
    plain = partial(metrics.top1_accuracy, retrieved, pairs.values)
    labels = pairs.order // 3
    return [plain(), plain(pairs.order), plain(labels=labels), plain(pairs.order, labels, "cosine")]


def causal_case(rule, form, pairs):
    given = gates_of(rule, pairs)
    return [
        attention.causal_attention(
            pairs.queries, pairs.keys, pairs.values, EluPlusOne() if not given else Identity(), rule,
            RMSNorm(), form, 5, **given,
        )
    ]  # fmt: skip


def whole_sequence_case(pairs):
    q = namespace(pairs.keys).concat([pairs.queries, pairs.keys], axis=0)  # two query heads a key head
    k, v, phi = pairs.keys, pairs.values, EluPlusOne()
    results = [attention.softmax_attention(q, k, v, causal=causal) for causal in (False, True)]
    results += [attention.kernel_attention(q, k, v, phi, causal=causal) for causal in (False, True)]
    return results + [attention.linear_attention(q, k, v, phi, Normalized(), order) for order in ("left", "right")]


def evaluate_case(memory, pairs):
    """All that a record says; the keys' library is not to be seen in it."""
    one = [x[0, ...] for x in (pairs.keys, pairs.values, pairs.queries)]
    records = evaluate(memory, *one, num_pairs=[4, N], trials=2)
    kept = [{k: v for k, v in r.items() if k not in ("elapsed_s", "state_bytes")} for r in records]
    assert all(isinstance(x, int | float) for r in kept for x in r.values())
    dtype = str(pairs.keys.dtype).split(".")[-1]
    return [np.array(list(r.values()), dtype) for r in kept]


CASES = (
    {f"map {phi}": partial(map_case, phi) for phi in FEATURE_MAPS}
    | {f"rule {rule}": partial(write_twice, rule) for rule in RULES}
    | {
        f"gates {rule}": lambda pairs, rule=rule: write_twice(rule, pairs, **gates_of(rule, pairs))
        for rule in (Decay(), GatedDecay(), Delta(), GatedDelta(), Oja())
    }
    | {f"readout {readout}": partial(readout_case, readout) for readout in READOUTS}
    | {f"memory, {name}": partial(through_memory, memory) for name, memory in MEMORIES.items()}
    | {"memory, its own mean": partial(through_memory, MEMORIES["all steps"], calibrate=False)}
    | {f"metric {name}": partial(metric_case, metric) for name, metric in NOISY.items()}
    | {"metric top-1": top1_case}
    | {"metric interference": lambda pairs: list(metrics.interference(pairs.keys, pairs.values, pairs.queries))}
    | {f"geometry {f.__name__}": lambda pairs, f=f: [f(pairs.keys)] for f in GEOMETRY}
    | {"attention": whole_sequence_case}
    | {
        f"causal {rule} {form}": partial(causal_case, rule, form)
        for rule in RULES
        for form in ("quadratic", "chunked", "recurrent")
        if rule != LeastSquares()
    }
    | {f"evaluate, {name}": partial(evaluate_case, memory) for name, memory in MEMORIES.items()}
)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_library_gives_the_numbers_of_numpy_in_the_dtype_that_it_was_given(case, dtype, library):
    pairs = numpy_pairs(dtype)
    expected = case(numpy_pairs("float64"))
    results = case(Pairs(*map(library.take, pairs)))
    for result, reference in zip(results, expected, strict=True):
        if not isinstance(result, np.ndarray):
            assert type(result) is type(library.take(reference))
            result = library.look(result)
        else:
            result = np.asarray(result)
        assert result.dtype == dtype
        tolerance = 1e-11 if dtype == "float64" else 2e-4
        scale = np.abs(reference).max(initial=0)
        np.testing.assert_allclose(result, reference, rtol=tolerance, atol=tolerance * scale)


@dataclass(frozen=True)
class ThroughNumpy(FeatureMap):
    """A map that leaves the library of its keys: what the guard has to see."""

    def width(self, key_dim):
        return key_dim

    def __call__(self, x, positions=None):
        return namespace(x).asarray(np.maximum(np.asarray(x), 0))


@pytest.mark.parametrize("library", ["array_api_strict", "torch"], indirect=True)
def test_the_guard_sees_a_conversion_to_numpy(library):
    keys = library.take(numpy_pairs("float64").keys)
    memory = LinearMemory(ThroughNumpy())
    with pytest.raises(AssertionError, match="converted to NumPy"):
        memory.write(memory.init(D, D, batch=(2,), like=keys), keys, keys)


@dataclass(frozen=True)
class Widening(ReLU):
    """A map that turns float32 into float64."""

    def __call__(self, x, positions=None):
        return super().__call__(x) * np.ones(1)


def test_the_suite_fails_a_map_that_widens():
    with pytest.raises(AssertionError):
        test_every_library_gives_the_numbers_of_numpy_in_the_dtype_that_it_was_given(
            partial(map_case, Widening()), "float32", Library("numpy")
        )


def smooth(rows):
    """Away from the kinks of ReLU and its kin, where no difference is a gradient."""
    return np.sign(rows) * (0.2 + np.abs(rows))


def gradient_cases():
    """Functions of (keys, values, queries) with scalar or array results, through which gradients have to flow."""
    cases = {f"map {phi}": (lambda k, v, q, phi=phi: phi(k)) for phi in FEATURE_MAPS}
    cases |= {f"kernel {phi}": (lambda k, v, q, phi=phi: phi.kernel(q, k)) for phi in FEATURE_MAPS}

    def read(memory, k, v, q):
        return memory.read(memory.write(memory.init(D, V, like=k), k, v), q)

    for rule in RULES:
        cases[f"memory {rule}"] = partial(read, LinearMemory(EluPlusOne(), rule, key_scale=0.3))
    for readout in READOUTS:
        cases[f"memory {readout}"] = partial(read, LinearMemory(EluPlusOne(), Hebbian(), readout))
    cases |= {f"memory, {name}": partial(read, memory) for name, memory in MEMORIES.items()}
    for name, metric in NOISY.items():
        cases[f"metric {name}"] = lambda k, v, q, metric=metric: metric(v + q[..., :V], v)
    for f in GEOMETRY:
        cases[f"geometry {f.__name__}"] = lambda k, v, q, f=f: f(k)
    cases["softmax attention"] = lambda k, v, q: attention.softmax_attention(q, k, v, causal=True)
    for form in ("quadratic", "chunked", "recurrent"):
        for rule in (GatedDecay(), GatedDelta(0.5, 0.9), Oja(0.3)):
            cases[f"causal {rule} {form}"] = lambda k, v, q, rule=rule, form=form: attention.causal_attention(
                q, k, v, write_rule=rule, form=form, chunk_size=3
            )
    cases["causal least squares"] = lambda k, v, q: attention.causal_attention(
        q, k, v, write_rule=LeastSquares(0.5), form="quadratic"
    )
    return cases


GRADIENT_CASES = gradient_cases()
JAX_CASES = [  # a selection, since JAX compiles every operation
    "map Dpfp(nu=2)",
    "memory Delta(step_size=1.0)",
    "memory LeastSquares(ridge=0.5)",
    "memory Normalized(epsilon=0.0)",
    "memory RMSNorm(epsilon=1e-05)",
    "memory, all steps",
    "memory, softmax",
    "metric signal to noise",
    "geometry max_coherence",
    "softmax attention",
    "causal Oja(step_size=0.3) quadratic",
    "causal least squares",
]


def gradient_inputs(case):
    rng = np.random.default_rng(8)
    wide = "LeastSquares(ridge=0.0)" in case  # full rank: below it the least-norm answer has no smooth gradient
    shapes = (9 if wide else 6, D), (9 if wide else 6, V), (9 if wide else 6, D)
    return [smooth(0.4 * rng.standard_normal(shape)) for shape in shapes]


@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_gradients_of_torch_are_finite_differences(case):
    torch = pytest.importorskip("torch")
    arrays = [torch.asarray(x).requires_grad_() for x in gradient_inputs(case)]
    assert torch.autograd.gradcheck(GRADIENT_CASES[case], arrays, atol=1e-6, rtol=1e-4, fast_mode=True)


def test_gradients_of_least_squares_with_fewer_pairs_than_dimensions():
    torch = pytest.importorskip("torch")
    keys, values, _ = (torch.asarray(x).requires_grad_() for x in gradient_inputs(""))
    rule = LeastSquares(0.5)

    def matrix(k, v):
        return rule.matrix(rule.write(rule.init(D, V, like=k), k[:1, :], v[:1, :]))

    assert torch.autograd.gradcheck(matrix, (keys, values), atol=1e-6, rtol=1e-4, fast_mode=True)


@pytest.mark.parametrize("case", JAX_CASES)
def test_gradients_of_jax_are_finite_differences(case):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    from jax.test_util import check_grads

    arrays = [jax.numpy.asarray(x) for x in gradient_inputs(case)]
    check_grads(GRADIENT_CASES[case], arrays, order=1, modes=["rev"], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", ["numpy", "torch", "jax.numpy"])
def test_looking_up_the_namespace_costs_microseconds(name):
    x = pytest.importorskip(name).ones((4, 3))
    fastest = min(timeit.repeat(lambda: namespace(x, x, None, x), number=500, repeat=20)) / 500
    assert fastest < 20e-6


def test_every_step_of_a_memory_is_in_the_suite():
    steps = MEMORIES["all steps"]
    default = LinearMemory(EluPlusOne())
    names = ("write_rule", "readout", "key_center", "key_norm", "key_scale", "feature_center", "feature_norm")
    assert all(getattr(steps, name) != getattr(default, name) for name in names)
    assert replace(steps, **{name: getattr(default, name) for name in names}) == default
