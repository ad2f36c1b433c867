"""The classical capacities: what associative memories of other kinds hold, as lines to compare with.

Loads are patterns a neuron (or an input), information is in bits.
"""

from capmem.theory._information import (
    copy_bits_needed,
    copy_error_bound,
    hebbian_bits,
    rank_floor,
    superposition_accuracy,
    superposition_bits,
    welch_bound,
)
from capmem.theory._networks import (
    HopfieldLimit,
    gardner_capacity,
    hopfield_limit,
    mceliece_capacity,
    sparse_hebbian_capacity,
    willshaw_capacity,
)
from capmem.theory._softmax_capacity import (
    ExponentialCapacity,
    ramsauer_capacity,
    ramsauer_error_bound,
    ramsauer_separation,
)

__all__ = [
    "ExponentialCapacity",
    "HopfieldLimit",
    "copy_bits_needed",
    "copy_error_bound",
    "gardner_capacity",
    "hebbian_bits",
    "hopfield_limit",
    "mceliece_capacity",
    "ramsauer_capacity",
    "ramsauer_error_bound",
    "ramsauer_separation",
    "rank_floor",
    "sparse_hebbian_capacity",
    "superposition_accuracy",
    "superposition_bits",
    "welch_bound",
    "willshaw_capacity",
]
