"""Every registered piece passes the conformance suite, and broken ones fail it."""

from dataclasses import dataclass

import numpy as np
import pytest

from capmem.ensembles import KEYS, VALUES
from capmem.feature_maps import FEATURE_MAPS, Dpfp, ReLU
from capmem.readouts import READOUTS
from capmem.write_rules import WRITE_RULES, GatedDelta
from tests import conformance


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


@pytest.mark.parametrize("check", [conformance.check_rank, conformance.check_sign, conformance.check_finite])
def test_suite_fails_a_dpfp_with_a_misplaced_minus(check, rng):
    if check is conformance.check_finite:
        check(NegatedDpfp(1), rng)  # finite and of the right shape: such a test alone would pass it
        return
    with pytest.raises(AssertionError):
        check(NegatedDpfp(1), rng)


def test_suite_fails_a_wrong_width(rng):
    with pytest.raises(AssertionError):
        conformance.check_width(WrongWidth(), rng)


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


@pytest.mark.parametrize("kind", ["keys", "values"])
@pytest.mark.parametrize("choice", sorted({*KEYS.names(), *VALUES.names()}))
def test_ensemble_draws_in_chunks(kind, choice, pairs_file):
    registry = {"keys": KEYS, "values": VALUES}[kind]
    if choice not in registry.names():
        pytest.skip(f"no {kind} are {choice}")
    if choice == "array":
        ensemble = registry.build({"kind": "array", "path": str(pairs_file), "name": kind[0]})
    else:
        ensemble = registry.build(choice)
    conformance.check_ensemble_draws_in_chunks(ensemble, ensemble.file_dim() or 7)


@pytest.mark.parametrize("registry", [FEATURE_MAPS, WRITE_RULES, READOUTS, KEYS, VALUES], ids=lambda r: r.kind)
def test_what_a_registry_describes_it_builds_again(registry):
    for choice in registry.names():
        if choice == "array":
            continue
        built = registry.build(choice)
        assert registry.build(registry.describe(built)) == built
