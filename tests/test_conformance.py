"""Every registered piece passes the conformance suite, and broken ones fail it."""

import dataclasses
import json
from dataclasses import dataclass

import numpy as np
import pytest
from omegaconf import OmegaConf

from capmem.ensembles import KEYS, VALUES, AutoregressiveKeys, SphereKeys
from capmem.ensembles.base import LawStream
from capmem.feature_maps import (
    FEATURE_MAPS,
    CosFormer,
    Dpfp,
    EluPlusOne,
    PositiveRandomFeatures,
    RandomReLU,
    ReLU,
    Taylor,
)
from capmem.readouts import READOUTS
from capmem.write_rules import WRITE_RULES, GatedDelta
from tests import conformance
from tests.conftest import ROOT


@pytest.mark.parametrize("check", conformance.MAP_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("phi", conformance.FEATURE_MAPS, ids=str)
def test_feature_map_conforms(phi, check, rng):
    check(phi, rng)


def test_every_registered_feature_map_is_in_the_suite():
    assert {type(phi) for phi in conformance.FEATURE_MAPS} == {FEATURE_MAPS[n] for n in FEATURE_MAPS.names()}


@dataclass(frozen=True)
class NegatedDpfp(Dpfp):
    """The mistake -(relu(x)) for relu(-x), seen in a well-known library."""

    def __call__(self, x, positions=None):
        r = np.concatenate([np.maximum(x, 0), -np.maximum(x, 0)], axis=-1)
        return np.concatenate([r * np.roll(r, i, axis=-1) for i in range(1, self.nu + 1)], axis=-1)


class WrongWidth(ReLU):
    def width(self, key_dim):
        return key_dim + 1


class CompressedByNameOnly(Taylor):
    """Declares the compressed width, returns all d^2 products."""

    def __call__(self, x, positions=None):
        return Taylor(compressed=False)(x)


class NaiveEluPlusOne(EluPlusOne):
    """ELU formed first: in low precision (exp(x) - 1) + 1 is exactly 0 for keys well below zero."""

    def function(self, x, xp):
        return xp.where(x > 0, x, xp.exp(xp.where(x > 0, 0 * x, x)) - 1) + 1


class FlooredFeatures(PositiveRandomFeatures):
    """An epsilon added to every feature, after the largest exponent of all keys is taken off."""

    def __call__(self, x, positions=None):
        exponents = np.log(super().__call__(x))
        return (np.exp(exponents - exponents.max()) + 1e-4) / self.num_features**0.5


class MisscaledDirections(PositiveRandomFeatures):
    """Orthonormal blocks divided by the square root of their number: rows of length sqrt(d / m)."""

    def directions(self, key_dim):
        rows = super().directions(key_dim)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) * (key_dim / self.num_features) ** 0.5


class UnseededDirections(RandomReLU):
    """Drawn afresh at each call."""

    def directions(self, key_dim):
        return np.random.default_rng().standard_normal((self.num_features, key_dim))


class FalsySeed(RandomReLU):
    """`if seed:` makes 0 no seed, here by falling back to another one."""

    def directions(self, key_dim):
        return RandomReLU(self.num_features, self.seed or 1).directions(key_dim)


class ZeroBasedCosFormer(CosFormer):
    """Shifts every query by one place against the keys."""

    def kernel(self, x, y):
        return super().kernel(x, y, np.arange(1, x.shape[-2] + 1), None)


BROKEN_MAPS = [
    (NegatedDpfp(1), conformance.check_rank),
    (NegatedDpfp(1), conformance.check_sign),
    (NegatedDpfp(1), conformance.check_kernel),
    (NegatedDpfp(1), conformance.check_finite),  # rows of zeros that no warning tells of
    (WrongWidth(), conformance.check_width),
    (CompressedByNameOnly(), conformance.check_width),
    (NaiveEluPlusOne(), conformance.check_precision),
    (FlooredFeatures(), conformance.check_no_floor),
    (FlooredFeatures(), conformance.check_kernel),
    (MisscaledDirections(), conformance.check_kernel),
    (UnseededDirections(), conformance.check_draws),
    (FalsySeed(), conformance.check_draws),
    (ZeroBasedCosFormer(300), conformance.check_kernel),
]


@pytest.mark.parametrize("phi, check", BROKEN_MAPS, ids=lambda v: getattr(v, "__name__", type(v).__name__))
def test_suite_fails_a_broken_feature_map(phi, check, rng, monkeypatch):
    kind = next(cls for cls in type(phi).__mro__ if cls in conformance.REFERENCE)
    monkeypatch.setitem(conformance.REFERENCE, type(phi), conformance.REFERENCE[kind])
    check(kind(), rng)  # the sound one passes
    with pytest.raises(AssertionError):
        check(phi, rng)


def test_shape_and_finiteness_alone_would_pass_a_misplaced_minus(rng):
    features = NegatedDpfp(1)(rng.standard_normal((20, 16)))
    assert features.shape == (20, 32)
    assert np.isfinite(features).all()


@pytest.mark.parametrize("num_pairs", [5, 40, 150])
@pytest.mark.parametrize("rule", conformance.RULES, ids=str)
def test_write_rule_is_its_recurrence(rule, num_pairs, rng):
    conformance.check_rule_is_its_recurrence(rule, rng, num_pairs)


def test_every_registered_write_rule_is_in_the_suite():
    assert {type(rule) for rule in conformance.RULES} == {WRITE_RULES[n] for n in WRITE_RULES.names()}


@dataclass(frozen=True)
class DecaysAfterWriting(GatedDelta):
    """The order of decay and write swapped: off by one decay."""

    def write(self, state, features, values, **given):
        later = super().write(state, features, values, **given)
        return type(later)(later.S * self.rate, later.z)


def test_suite_fails_a_gated_rule_that_decays_too_late(rng):
    with pytest.raises(AssertionError):
        conformance.check_rule_is_its_recurrence(DecaysAfterWriting(0.7, 0.95), rng, 40)


LAWS = [(registry, choice) for registry in (KEYS, VALUES) for choice in registry.names()]


@pytest.mark.parametrize("check", conformance.ENSEMBLE_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize(("registry", "choice"), LAWS, ids=[f"{r.kind}-{c}" for r, c in LAWS])
def test_ensemble_conforms(registry, choice, check, pairs_file):
    files = {
        "array": {"kind": "array", "path": str(pairs_file), "name": registry.kind[0]},
        "heads": {"name": "heads", "path": str(ROOT / "samples" / "minilm"), "layer": 1, "head": 5},
    }
    ensemble = registry.build(files.get(choice, choice))
    check(ensemble, ensemble.file_dim() or 7)


@pytest.mark.parametrize(("registry", "choice"), LAWS, ids=[f"{r.kind}-{c}" for r, c in LAWS])
def test_the_configuration_file_of_an_ensemble_holds_its_fields_and_defaults(registry, choice):
    file = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / registry.kind / f"{choice}.yaml"))
    fields = [f for f in dataclasses.fields(registry[choice]) if f.init]
    defaults = {f.name: None if f.default is dataclasses.MISSING else f.default for f in fields}
    of_keys = {key: f"${{oc.select:keys.{key},{json.dumps(default)}}}" for key, default in defaults.items()}
    file |= {key: defaults[key] for key, given in file.items() if given == of_keys.get(key)}  # first those of the keys
    assert file == {"kind" if "name" in defaults else "name": choice} | defaults


class ForgetfulKeys(AutoregressiveKeys):
    """Starts the sequence again at each chunk."""

    def start(self, rng, dim):
        return LawStream(lambda source, n: AutoregressiveKeys.start(self, source, dim).draw(n), rng)


class ShuffledKeys(SphereKeys):
    """Draws the rows and their order from one generator: the first n rows depend on N."""

    def start(self, rng, dim):
        return LawStream(lambda source, n: source.permutation(SphereKeys().sample(source, n, dim)), rng)


@pytest.mark.parametrize("broken", [ForgetfulKeys(), ShuffledKeys()], ids=lambda e: type(e).__name__)
def test_suite_fails_rows_that_depend_on_the_chunks(broken):
    with pytest.raises(AssertionError):
        conformance.check_ensemble_draws_in_chunks(broken, 7)


class SelfishFork(SphereKeys):
    """Forks by taking rows from the stream itself."""

    def start(self, rng, dim):
        stream = super().start(rng, dim)
        object.__setattr__(stream, "fork", lambda other: stream)
        return stream


def test_suite_fails_a_fork_that_takes_rows_from_the_stream():
    with pytest.raises(AssertionError):
        conformance.check_ensemble_forks(SelfishFork(), 7)


@pytest.mark.parametrize("registry", [FEATURE_MAPS, WRITE_RULES, READOUTS, KEYS, VALUES], ids=lambda r: r.kind)
def test_what_a_registry_describes_it_builds_again(registry):
    for choice in registry.names():
        if choice in ("array", "heads"):
            continue
        built = registry.build(choice)
        assert registry.build(registry.describe(built)) == built
