"""Least squares: the best matrix that any write rule could have reached with these features."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capmem._arrays import Array, device, namespace, transpose
from capmem.schema import require
from capmem.write_rules.base import WRITE_RULES, RuleState, WriteRule, empty
from capmem.write_rules.chunks import refuse


@dataclass(frozen=True, eq=False)
class LeastSquaresState(RuleState):
    """R (..., D, D) and B = Q^T V (..., D, v) of the factor Phi = Q R; the field S is B until it is solved for."""

    R: Array = None
    B: Array = None


@WRITE_RULES.register("least_squares")
@dataclass(frozen=True)
class LeastSquares(WriteRule):
    """S = argmin sum |S^T phi(k) - v|^2 + ridge |S|^2; at ridge 0 the one of least norm, Phi^+ V.

    Kept as a QR factor that each write updates; the Gram matrix would lose half the digits.

    Parameters
    ----------
    ridge : float
        At least 0.
    """

    ridge: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.ridge >= 0, "ridge", self.ridge, "a number of at least 0")

    def init(
        self, feature_dim: int, value_dim: int, batch: tuple[int, ...] = (), like: Array | None = None
    ) -> LeastSquaresState:
        """Return R = sqrt(ridge) I and B = 0; see :meth:`WriteRule.init`."""
        plain = empty(feature_dim, value_dim, batch, like)
        xp = namespace(plain.S)
        eye = xp.eye(feature_dim, dtype=plain.S.dtype, device=device(plain.S))
        R = xp.broadcast_to(self.ridge**0.5 * eye, (*batch, feature_dim, feature_dim))
        return LeastSquaresState(plain.S, plain.z, R, plain.S)

    def shapes(self, feature_dim: int, value_dim: int) -> dict[str, tuple[int, int]]:
        """Return the shapes of R, B and z; S is not held, but solved from them."""
        return {"R": (feature_dim, feature_dim), "B": (feature_dim, value_dim), "z": (feature_dim, 1)}

    def hold(self, state: RuleState, arrays: dict[str, Array]) -> RuleState:
        """Return the state with other arrays; see :meth:`WriteRule.hold`."""
        return replace(state, **arrays, S=arrays["B"])

    def write(
        self,
        state: RuleState,
        features: Array,
        values: Array,
        *,
        step_size: Array | None = None,
        log_decay: Array | None = None,
    ) -> LeastSquaresState:
        """Return the state after the pairs; see :meth:`WriteRule.write`."""
        refuse(self, step_size=step_size, log_decay=log_decay)
        assert isinstance(state, LeastSquaresState)
        xp = namespace(features)
        Q, R = xp.linalg.qr(xp.concat([state.R, features], axis=-2))
        B = transpose(Q) @ xp.concat([state.B, values], axis=-2)
        return LeastSquaresState(B, state.z + xp.sum(features, axis=-2), R, B)

    def matrix(self, state: RuleState) -> Array:
        """Return S (..., D, v), the least-norm solution of R S = B."""
        assert isinstance(state, LeastSquaresState)
        xp = namespace(state.R)
        full_rank = bool(xp.all(xp.linalg.diagonal(state.R) != 0))  # a narrow state can round a small entry to 0
        if self.ridge > 0 and full_rank:  # a solve has a gradient where equal singular values have none
            return xp.linalg.solve(state.R, state.B)
        U, singular, Vt = xp.linalg.svd(state.R, full_matrices=False)
        cutoff = singular[..., :1] * (state.R.shape[-1] * float(xp.finfo(state.R.dtype).eps))
        kept = singular > cutoff
        inverse = xp.where(kept, 1 / xp.where(kept, singular, xp.ones_like(singular)), xp.zeros_like(singular))
        return transpose(Vt) @ (inverse[..., None] * (transpose(U) @ state.B))
