"""Softmax attention keeps an index, linear attention one sheet: error against pairs, at equal bytes, and capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capmem import figures
from capmem.ensembles import SphereKeys, SphereValues
from capmem.experiment import Experiment
from capmem.feature_maps import Dpfp, FeatureMap, Identity, Polynomial
from capmem.memory import LinearMemory, Memory, SoftmaxMemory
from capmem.schema import check_fields, require
from capmem.studies import Study, Swept, at_least
from capmem.studies._equal_bytes import ERROR, at_equal_bytes, capacities, errors

if TYPE_CHECKING:
    import pandas as pd

QUERIES = 1024  # above so many pairs, a sample of them is read


@dataclass(frozen=True)
class SoftmaxVsLinear:
    """What is compared: unit keys, read with themselves, in both kinds of memory.

    Parameters
    ----------
    key_dim, value_dim : int
        d and v.
    num_pairs : tuple of int
        N; the numbers at which a cache takes as many bytes as a linear state are added.
    betas : tuple of float
        Inverse temperatures of the softmax memories.
    degrees, nus : tuple of int
        Linear memories of growing width: polynomial kernels (1 is the identity), and DPFP.
    trials, seed : int
        Repetitions, more at small N; draws depend on seed and trial alone.
    """

    key_dim: int = 64
    value_dim: int = 64
    num_pairs: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    betas: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0)
    degrees: tuple[int, ...] = (1, 2)
    nus: tuple[int, ...] = (1, 3)
    trials: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        at_least(self, 2, "key_dim", "num_pairs")
        at_least(self, 1, "value_dim", "degrees", "nus", "trials")
        at_least(self, 0, "seed")
        valid = bool(self.betas) and 0 < min(self.betas) and max(self.betas) <= 100
        require(valid, "betas", list(self.betas), "a list, not empty, of numbers above 0, at most 100")


def linear_memories(settings: SoftmaxVsLinear) -> list[LinearMemory]:
    """Return the linear memories, narrow to wide; keys at the scale sqrt(d), which these kernels do not see."""
    maps: list[FeatureMap] = [Identity() if p == 1 else Polynomial(p) for p in sorted(set(settings.degrees))]
    maps += [Dpfp(nu) for nu in sorted(set(settings.nus))]
    maps.sort(key=lambda phi: phi.width(settings.key_dim))
    return [LinearMemory(phi, key_scale="sqrt_dim") for phi in maps]


def points(settings: SoftmaxVsLinear) -> Iterator[Experiment]:
    """Yield an experiment for each memory and N, all on the same draws; those of one memory are run as one."""
    d, v = settings.key_dim, settings.value_dim
    linear = linear_memories(settings)
    a_pair = SoftmaxMemory().state_size(d, v, num_pairs=1).bytes
    equal = [memory.state_size(d, v).bytes // a_pair for memory in linear]
    memories: list[Memory] = [*linear, *(SoftmaxMemory(beta) for beta in settings.betas)]
    for memory in memories:
        for n in {*settings.num_pairs, *(n for n in equal if n >= 2)}:
            yield Experiment(
                memory, SphereKeys(), SphereValues(), d, v, (n,), trials=trials_of(settings, n),
                seed=settings.seed, metrics=(ERROR,), max_queries=QUERIES,
            )  # fmt: skip


def trials_of(settings: SoftmaxVsLinear, num_pairs: int) -> int:
    """Return more trials for fewer pairs, up to 16 times as many: there, rare pairs of close keys decide the mean."""
    return settings.trials * min(16, max(1, QUERIES // num_pairs))


def finding(table: pd.DataFrame) -> str:
    """Return what either memory does at equal bytes, and how far their capacities go."""
    equal = at_equal_bytes(errors(table)).iloc[-1]
    told = (
        f"At {equal['state_bytes'] / 1e3:.0f} kB, room for {equal['num_pairs']} pairs in a cache, softmax (beta "
        f"{equal['softmax_beta']:g}) reads them with error {equal['softmax_error']:.2g} and the linear state of "
        f"{equal['label']} with {equal[ERROR]:.2g}."
    )
    return " ".join([told, *_capacities(capacities(table))])


def _capacities(held: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each kind of memory whose error comes to 0.5 on the grid."""
    softmax, linear = (held[held["memory"] == name] for name in ("softmax", "linear"))
    measured, last = softmax[softmax["bracketed"].astype(bool)], softmax.iloc[-1]
    if len(measured):
        best = measured.iloc[-1]
        beyond = ""
        if best["memory.beta"] < last["memory.beta"]:
            beyond = f", and by closed form at {last['closed_form']:.3g} for beta {last['memory.beta']:g}"
        yield (
            f"Softmax comes to error 0.5 (SNR 1) at N = {best['pairs']:.4g} for beta {best['memory.beta']:g} (closed "
            f"form {best['closed_form']:.4g}){beyond}."
        )
    reached = linear[linear["bracketed"].astype(bool)]
    if len(reached):
        yield f"The state of {reached.iloc[-1]['label']} comes to it at N = {reached.iloc[-1]['pairs']:.4g}."


def draw(table: pd.DataFrame) -> figures.Grid:
    """Draw errors, errors at equal bytes and capacities."""
    means = errors(table)
    return figures.softmax_vs_linear(means, at_equal_bytes(means), capacities(table))


STUDY = Study("softmax_vs_linear", SoftmaxVsLinear, Swept(points), finding, {"softmax_vs_linear": draw})
