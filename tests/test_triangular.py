"""Unit lower triangular systems: right where a general solver is not, in every library."""

import numpy as np
import pytest

from capmem import Experiment, LinearMemory
from capmem.ensembles import GaussianKeys, SphereValues
from capmem.feature_maps import Identity
from capmem.write_rules import Delta
from capmem.write_rules.triangular import _by_halves, solve_unit_lower


def substituted(system, right):
    """Row after row, in extended precision."""
    system, found = system.astype(np.longdouble), right.astype(np.longdouble)
    for row in range(system.shape[-1]):
        found[..., row, :] -= (system[..., row : row + 1, :row] @ found[..., :row, :])[..., 0, :]
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("solve", [solve_unit_lower, lambda a, b: _by_halves(np, a, b)], ids=["blas", "halves"])
def test_it_is_forward_substitution(rng, dtype, size, batch, solve):
    keys = rng.standard_normal((*batch, 64, 4)) * size**0.5 / 2
    system = np.asarray(keys @ np.swapaxes(keys, -1, -2), dtype)
    right = rng.standard_normal((*batch, 64, 5)).astype(dtype)
    expected, found = substituted(system, right), solve(system, right)
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert found.dtype == dtype
    assert np.median(np.abs(found - expected) / scale) < 300 * np.finfo(dtype).eps


def test_a_general_solver_loses_what_it_keeps(rng):
    """Negative control: the largest entry of each solution, by both."""
    lost = kept = 0
    for _ in range(40):
        keys = (rng.standard_normal((64, 4)) * 1.2).astype("float32")
        system, right = keys @ keys.T, rng.standard_normal((64, 1)).astype("float32")
        expected = substituted(system, right)
        place = np.abs(expected).argmax()
        kept += abs(solve_unit_lower(system, right).flat[place] / expected.flat[place] - 1) < 1e-3
        try:
            general = np.linalg.solve(np.tril(system, -1) + np.eye(64, dtype="float32"), right)
        except np.linalg.LinAlgError:
            lost += 1
        else:
            lost += abs(general.flat[place] / expected.flat[place] - 1) > 1e-2
    assert kept == 40 and lost >= 10


@pytest.mark.filterwarnings("ignore::capmem.write_rules.StabilityWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_delta_rule_that_diverges_says_how_far(rng):
    """Pair by pair in extended precision: what grew to 1e75 was stored as 1e50, or the solver failed."""
    keys, values = rng.standard_normal((128, 16)) * 3, rng.standard_normal((128, 4))
    state = np.zeros((16, 4), np.longdouble)
    for k, v in zip(keys.astype(np.longdouble), values, strict=True):
        state = state + np.outer(k, v - k @ state)
    memory = LinearMemory(Identity(), Delta())
    written = memory.write(memory.init(16, 4), keys, values).rule.S
    assert np.abs(state).max() > 1e50
    np.testing.assert_allclose(np.asarray(written / np.abs(state).max(), float), state / np.abs(state).max(), atol=1e-6)


@pytest.mark.filterwarnings("ignore::capmem.write_rules.StabilityWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(5))
def test_no_experiment_fails_for_a_singular_matrix(seed):
    asked = Experiment(
        LinearMemory(Identity(), Delta()), GaussianKeys(), SphereValues(), 64, 16, num_pairs=128, trials=8, seed=seed
    )
    assert {row["status"] for row in asked.run()} == {"ok"}
