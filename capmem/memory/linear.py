"""Linear attention as a memory: feature map, write rule, read-out, and what is done to keys and features before."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from capmem._arrays import Array, device, namespace, require_vectors
from capmem.feature_maps import FeatureMap
from capmem.memory.base import MEMORIES, Diagnostics, Memory, Prepared, StateSize, check_pairs, size_in
from capmem.memory.rounding import write_rounded
from capmem.memory.state import MemoryState
from capmem.memory.steps import Center, Norm, check_fits, normalize
from capmem.precision import StateDType, held_bytes
from capmem.readouts import Linear, Readout
from capmem.schema import require
from capmem.write_rules import Hebbian, WriteRule


@MEMORIES.register("linear")
@dataclass(frozen=True)
class LinearMemory(Memory):
    """Linear attention as an associative memory S = sum_i phi(k_i) v_i^T.

    Keys and queries pass the same steps in this order: centre, norm, scale, phi, centre, norm.

    Parameters
    ----------
    feature_map : FeatureMap
        phi: R^d -> R^D.
    write_rule : WriteRule
        How a pair enters S.
    readout : Readout
        How a query leaves S.
    state_dtype : {None, "float64", "float32", "bfloat16", "float16", "float8_e4m3", "int8"}
        The format that the state is held in (None: that of the pairs). What is held is rounded to it, to nearest
        even, but computed with in the dtype of the pairs; int8 has one scale a value column.
    round_every : int
        The state is rounded after every so many pairs, counted from the first, however the writes are cut.
    key_center, feature_center : {"none", "mean"}
        Whether one fixed vector is taken from every key, or every feature vector. The vector is given to
        ``init``, or is the mean of the first write, which must then be the only one.
    key_norm, feature_norm : {"none", "l2", "sum"}
        Divide each row by its Euclidean norm, or by its sum. A row without norm stays zero, and is counted.
    key_scale : float or "sqrt_dim"
        Keys are multiplied by it after the norm; "sqrt_dim" gives unit keys the scale of N(0, 1) coordinates.

    Raises
    ------
    ValueError
        For a choice that does not exist or a scale that is not positive.
    """

    feature_map: FeatureMap = field()  # without this, the None of a memory that has no map would be its default
    write_rule: WriteRule = Hebbian()
    readout: Readout = Linear()
    key_center: Center = "none"
    key_norm: Norm = "none"
    key_scale: float | Literal["sqrt_dim"] = 1.0
    feature_center: Center = "none"
    feature_norm: Norm = "none"
    state_dtype: StateDType | None = None
    round_every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature_center == "mean" and self.feature_map.positional:
            raise ValueError(
                "feature_center must be none, got 'mean': features that depend on the place have no one mean"
            )
        require(self.round_every >= 1, "round_every", self.round_every, "an integer of at least 1")
        if self.key_scale != "sqrt_dim":
            valid = 0 < self.key_scale < float("inf")
            require(valid, "key_scale", self.key_scale, "a positive number or sqrt_dim")

    def init(
        self,
        key_dim: int,
        value_dim: int,
        batch: tuple[int, ...] = (),
        like: Array | None = None,
        key_mean: Array | None = None,
        feature_mean: Array | None = None,
    ) -> MemoryState:
        """Return the empty state.

        Parameters
        ----------
        key_dim, value_dim : int
            d and v.
        batch : tuple of int
            Leading axes of keys and values.
        like : array, optional
            Its library, dtype and device are taken (default: NumPy float64).
        key_mean : array (..., d), optional
            The vector to take from keys; only where ``key_center="mean"``.
        feature_mean : array (..., D), optional
            The vector to take from features; only where ``feature_center="mean"``.

        Raises
        ------
        ValueError
            If a mean is given to a memory that does not centre, or has another last axis.
        """
        if self.state_dtype == "float64" and like is not None and namespace(like).finfo(like.dtype).bits < 64:
            raise ValueError(f"state_dtype must be no wider than the pairs, which are {like.dtype}, got 'float64'")
        width = self.feature_map.width(key_dim)
        for what, mean, dim in (("key", key_mean, key_dim), ("feature", feature_mean, width)):
            if mean is not None and getattr(self, f"{what}_center") == "none":
                raise ValueError(f"{what}_mean is given, but {what}_center is 'none'")
            if mean is not None and mean.shape[-1] != dim:
                raise ValueError(f"{what}_mean must have last axis {dim}, got shape {tuple(mean.shape)}")
        rule = self.write_rule.init(width, value_dim, batch, like)
        return MemoryState(rule, key_mean, feature_mean)

    def calibrate(self, keys: Array, key_mean: Array | None = None) -> dict[str, Array]:
        """Return the means that this memory centres by, from keys (..., N, d): ``init(..., **means)``.

        Features are those of keys centred by `key_mean` where it is given, else by the mean of `keys`.
        """
        xp = require_vectors(keys, "keys")
        means: dict[str, Array] = {}
        if self.key_center == "mean":
            means["key_mean"] = xp.mean(keys, axis=-2) if key_mean is None else key_mean
        if self.feature_center == "mean":
            features, _ = self._raw_features(keys, means.get("key_mean"), None)
            means["feature_mean"] = xp.mean(features, axis=-2)
        return means

    def features(self, state: MemoryState, keys: Array, positions: Array | None = None) -> Array:
        """Return what stands for keys (..., N, d) in the state: centred, normed, scaled, mapped (..., N, D)."""
        return self._features(state, keys, positions)[0]

    def write(
        self,
        state: MemoryState,
        keys: Array,
        values: Array,
        *,
        positions: Array | None = None,
        step_size: Array | None = None,
        log_decay: Array | None = None,
    ) -> MemoryState:
        """Return the state after N pairs more: keys (..., N, d), values (..., N, v).

        Raises
        ------
        ValueError
            For shapes that do not fit, or a second write to a memory that centres by its own batch.
        """
        check_pairs(keys, values, None, state.rule.S.shape[-1])
        state = self._with_means(state, keys)
        if positions is None:
            xp = namespace(keys)
            positions = xp.arange(state.num_pairs, state.num_pairs + keys.shape[-2], device=device(keys))
        prepared = self.prepare(state, keys, positions)
        check_fits(state.rule, prepared.rows, keys)
        return self._written(state, prepared, values, (step_size, log_decay))

    def read(
        self,
        state: MemoryState,
        queries: Array,
        positions: Array | None = None,
        diagnostics: bool = False,
    ) -> Any:
        """Return the values (..., M, v) that queries (..., M, d) retrieve.

        Parameters
        ----------
        state : MemoryState
            What was written.
        queries : array (..., M, d)
            They pass the same steps as keys.
        positions : array (M,), optional
            Places in the sequence, for maps that use them.
        diagnostics : bool
            Return (values, :class:`Diagnostics`) instead.
        """
        require_vectors(queries, "queries")
        prepared = self.prepare(state, queries, positions)
        if prepared.rows.shape[-1] != state.rule.S.shape[-2]:
            raise ValueError(
                f"queries of dimension {queries.shape[-1]} have {prepared.rows.shape[-1]} features, "
                f"but the state holds {state.rule.S.shape[-2]}"
            )
        retrieved, met = self.read_prepared(state, prepared)
        return (retrieved, met) if diagnostics else retrieved

    def prepare(self, state: MemoryState, keys: Array, positions: Array | None = None) -> Prepared:
        """Return the features (..., N, D) of keys (..., N, d); see :meth:`Memory.prepare`."""
        return Prepared(*self._features(state, keys, positions))

    def write_prepared(self, state: MemoryState, prepared: Prepared, values: Array) -> MemoryState:
        """Return the state after pairs whose features are known; see :meth:`Memory.write_prepared`."""
        return self._written(state, prepared, values, (None, None))

    def read_prepared(self, state: MemoryState, prepared: Prepared) -> tuple[Array, Diagnostics]:
        """Read with queries whose features are known; see :meth:`Memory.read_prepared`."""
        reading = self.readout(self.write_rule.matrix(state.rule), state.rule.z, prepared.rows)
        return reading.retrieved, Diagnostics(reading.nonpositive, reading.zero, prepared.zero_rows)

    def state_size(
        self, key_dim: int, value_dim: int, num_pairs: int | None = None, dtype: str = "float32"
    ) -> StateSize:
        """Return the size of what one state holds: S, z (or what the rule has), and the means, if it centres.

        Parameters
        ----------
        key_dim, value_dim : int
            d and v.
        num_pairs : int, optional
            Not used: the state has a fixed size.
        dtype : str
            float16, float32 or float64: that of the pairs. `state_dtype` counts in its place, but for the means.
        """
        width = self.feature_map.width(key_dim)
        held = self.write_rule.shapes(width, value_dim).values()
        means = size_in(key_dim * (self.key_center == "mean") + width * (self.feature_center == "mean"), dtype)
        elements = sum(rows * columns for rows, columns in held)
        if self.state_dtype is None:
            taken = size_in(elements, dtype).bytes
        else:
            taken = sum(held_bytes(rows, columns, self.state_dtype) for rows, columns in held)
        return StateSize(elements + means.elements, taken + means.bytes)

    def feature_dim(self, key_dim: int) -> int:
        """Return the feature dimension D."""
        return self.feature_map.width(key_dim)

    @property
    def centers(self) -> bool:  # type: ignore[override]
        """Whether a mean is taken from keys or features."""
        return "mean" in (self.key_center, self.feature_center)

    def _written(
        self, state: MemoryState, prepared: Prepared, values: Array, gates: tuple[Array | None, Array | None]
    ) -> MemoryState:
        features, given = prepared.rows, state.rule
        if self.state_dtype is None:
            rule = self.write_rule.write(given, features, values, step_size=gates[0], log_decay=gates[1])
        else:
            held_in = self.state_dtype, self.round_every
            rule = write_rounded(self.write_rule, given, features, values, gates, held_in, state.num_pairs)
        count, zero_rows = features.shape[-2], state.zero_rows + prepared.zero_rows
        return replace(state, rule=rule, num_pairs=state.num_pairs + count, zero_rows=zero_rows)

    def _with_means(self, state: MemoryState, keys: Array) -> MemoryState:
        """Fill in the means from this batch, where none was given; such a memory takes one write."""
        if state.own_mean:
            raise ValueError(
                "this memory centres by the mean of its first write, and takes no second one: "
                "give key_mean and feature_mean to init, e.g. from calibrate(keys)"
            )
        waiting = (self.key_center == "mean" and state.key_mean is None) or (
            self.feature_center == "mean" and state.feature_mean is None
        )
        if not waiting:
            return state
        means = self.calibrate(keys, state.key_mean)
        if state.feature_mean is not None:
            means["feature_mean"] = state.feature_mean
        return replace(state, own_mean=True, **means)

    def _features(self, state: MemoryState, keys: Array, positions: Array | None) -> tuple[Array, int]:
        if self.key_center == "mean" and state.key_mean is None and state.num_pairs == 0:
            raise ValueError("nothing was written and no key_mean given: there is no mean to centre by")
        features, zero_keys = self._raw_features(keys, state.key_mean, positions)
        if state.feature_mean is not None:
            features = features - state.feature_mean[..., None, :]
        features, zero_features = normalize(features, self.feature_norm)
        return features, zero_keys + zero_features

    def _raw_features(self, keys: Array, key_mean: Array | None, positions: Array | None) -> tuple[Array, int]:
        """Return phi of the centred, normed, scaled keys, before features are centred and normed."""
        if key_mean is not None:
            keys = keys - key_mean[..., None, :]
        keys, zero_rows = normalize(keys, self.key_norm)
        scale = keys.shape[-1] ** 0.5 if self.key_scale == "sqrt_dim" else self.key_scale
        return self.feature_map(keys if scale == 1 else keys * scale, positions), zero_rows
