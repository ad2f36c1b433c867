"""Classical capacities of networks of neurons: patterns a neuron or an input, information in bits."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.special import ndtr

from capmem.schema import require


class HopfieldLimit(NamedTuple):
    """The Hopfield network at its critical load: patterns a neuron, overlap and share of wrong bits there."""

    load: float
    overlap: float
    error: float


def hopfield_limit() -> HopfieldLimit:
    """Return the largest load at which the Hopfield network still retrieves: alpha_c = 0.1379, replica symmetric.

    alpha_c = max over y of [(erf(y) / y - (2 / sqrt pi) exp(-y^2)) / sqrt 2]^2; the overlap there is erf(y).
    Replica symmetry breaking makes it 0.1382.

    References
    ----------
    Amit, Gutfreund, Sompolinsky 1985, Phys. Rev. Lett. 55:1530.
    """

    from scipy.optimize import minimize_scalar  # slow to import, and used here only

    def root_load(y: float) -> float:
        return (math.erf(y) / y - 2 / math.sqrt(math.pi) * math.exp(-y * y)) / math.sqrt(2)

    best = minimize_scalar(lambda y: -root_load(y), bounds=(0.5, 4.0), method="bounded", options={"xatol": 1e-10})
    overlap = math.erf(best.x)
    return HopfieldLimit(root_load(best.x) ** 2, overlap, (1 - overlap) / 2)


def willshaw_capacity() -> float:
    """Return ln 2, the bits a synapse of clipped binary weights, sparse patterns of the best activity.

    References
    ----------
    Willshaw, Buneman, Longuet-Higgins 1969, Nature 222:960.
    """
    return math.log(2)


def sparse_hebbian_capacity() -> float:
    """Return 1 / (2 ln 2), the bits a synapse of additive Hebbian weights in the limit of sparse patterns.

    References
    ----------
    Palm, Sommer 1996, in Models of Neural Networks III.
    """
    return 1 / (2 * math.log(2))


def gardner_capacity(margin: float = 0.0) -> float:
    """Return the most patterns an input that any weights of a perceptron classify, unbiased random patterns: 2.

    With a margin kappa, alpha_c = 1 / int_{-kappa}^inf Dt (t + kappa)^2
    = 1 / ((1 + kappa^2) Phi(kappa) + kappa phi(kappa)).

    References
    ----------
    Gardner 1988, J. Phys. A 21:257.
    """
    require(0 <= margin < math.inf, "margin", margin, "a number of at least 0")
    density = math.exp(-margin * margin / 2) / math.sqrt(2 * math.pi)
    return 1 / ((1 + margin * margin) * float(ndtr(margin)) + margin * density)


def mceliece_capacity(num_neurons: int, every_pattern: bool = False) -> float:
    """Return the patterns that a Hopfield network recalls without error: N / (2 ln N) for most of them.

    N / (4 ln N) where every one of them must be a fixed point.

    References
    ----------
    McEliece, Posner, Rodemich, Venkatesh 1987, IEEE Trans. Inf. Theory 33:461.
    """
    require(num_neurons >= 2, "num_neurons", num_neurons, "an integer of at least 2")
    return num_neurons / ((4 if every_pattern else 2) * math.log(num_neurons))
