"""What attention costs: flops, bytes moved and numbers held, counted product by product."""

from __future__ import annotations

from typing import Literal, NamedTuple

from capmem.memory.base import size_in
from capmem.schema import coerce, require

Form = Literal["softmax", "left", "right", "quadratic", "recurrent", "chunked"]
Order = Literal["left", "right"]
CAUSAL = ("quadratic", "recurrent", "chunked")


class Cost(NamedTuple):
    """What one head costs.

    Attributes
    ----------
    flops : int
        Two for each multiply-add of the matrix products. Feature maps, exponentials, masks and denominators
        are not counted: they are of lower order (N^2 exponentials for softmax).
    bytes : int
        Operands read once and results written once by each product, nothing being kept in a cache between.
    state : int
        Numbers that have to be held to read a further query: all keys and values, N (d + v), or S and z, D (v + 1).
    """

    flops: int
    bytes: int
    state: int


class Choice(NamedTuple):
    """The association order that costs less, and why.

    Attributes
    ----------
    order : {"left", "right"}
        (phi(Q) phi(K)^T) V, or phi(Q) (phi(K)^T V).
    reason : str
        Both costs, and where the balance tips.
    """

    order: Order
    reason: str


class _Product(NamedTuple):
    """`times` products of (rows, inner) with (inner, columns)."""

    times: int
    rows: int
    inner: int
    columns: int


def cost(
    num_tokens: int,
    key_dim: int,
    value_dim: int,
    feature_dim: int | None = None,
    form: Form = "right",
    *,
    num_queries: int | None = None,
    group_size: int = 1,
    chunk_size: int = 64,
    dtype: str = "float32",
) -> Cost:
    """Return what one key head costs, for N pairs and G query heads with M queries each that share it.

    Multiply-adds: softmax G M N (d + v); left G M N (D + v); right N D v + G M D v; and causal, with the
    Hebbian rule and M = N: quadratic G N^2 (D + v); recurrent (1 + G) N D v; chunked, chunks of C,
    (1 + G) N D v + G N C (D + v). A mask saves nothing: products of whole matrices are what is run.

    Parameters
    ----------
    num_tokens, key_dim, value_dim : int
        N, d and v.
    feature_dim : int, optional
        D (default: d). Softmax has none.
    form : str
        Non-causal softmax, left, right; causal quadratic, recurrent, chunked.
    num_queries : int, optional
        M (default: N).
    group_size, chunk_size : int
        G and C.
    dtype : str
        float16, float32 or float64.

    Raises
    ------
    ValueError
        For a size below 1, a form that does not exist, or M other than N in a causal form.
    """
    coerce(form, Form, "form")
    D = key_dim if feature_dim is None else feature_dim
    M = num_tokens if num_queries is None else num_queries
    sizes = {"num_tokens": num_tokens, "key_dim": key_dim, "value_dim": value_dim, "feature_dim": D}
    sizes |= {"num_queries": M, "group_size": group_size, "chunk_size": chunk_size}
    for name, size in sizes.items():
        require(size >= 1, name, size, "an integer of at least 1")
    if form in CAUSAL:
        require(num_tokens == M, "num_queries", M, f"num_tokens, {num_tokens}, in the causal form {form}")
    width = key_dim if form == "softmax" else D
    products = _products(form, num_tokens, width, value_dim, group_size * M, group_size, chunk_size)
    flops = sum(2 * p.times * p.rows * p.inner * p.columns for p in products)
    moved = sum(p.times * (p.rows * p.inner + p.inner * p.columns + p.rows * p.columns) for p in products)
    keeps_pairs = form in ("softmax", "left", "quadratic")
    state = num_tokens * (key_dim + value_dim) if keeps_pairs else D * (value_dim + 1)
    return Cost(flops, size_in(moved, dtype).bytes, state)


def _products(form: Form, N: int, D: int, v: int, rows: int, group_size: int, chunk_size: int) -> list[_Product]:
    """Return the matrix products of a form; `rows` are the queries of all heads that share the keys."""
    if form in ("softmax", "left", "quadratic"):
        return [_Product(1, rows, D, N), _Product(1, rows, N, v)]
    if form == "right":
        return [_Product(1, D, N, v), _Product(1, rows, D, v)]
    if form == "recurrent":
        return [_Product(N, D, 1, v), _Product(N, group_size, D, v)]
    whole, rest = divmod(N, chunk_size)
    products = []
    for times, size in ((whole, chunk_size), (bool(rest), rest)):
        asked = group_size * size
        products += [
            _Product(times, asked, D, size),
            _Product(times, asked, D + size, v),
            _Product(times, D, size, v),
        ]
    return products


def crossing_point(
    key_dim: int,
    value_dim: int,
    feature_dim: int | None = None,
    group_size: int = 1,
    against: Literal["left", "softmax"] = "left",
) -> float:
    """Return the N from which phi(Q) (phi(K)^T V) takes fewer flops than a form that is quadratic in N.

    N = (1 + 1/G) D v / (D + v) against "left", and (1 + 1/G) D v / (d + v) against "softmax". For G = 1 and
    D = v = d both are d.

    Parameters
    ----------
    key_dim, value_dim : int
        d and v.
    feature_dim : int, optional
        D (default: d).
    group_size : int
        G, query heads that share one key head.
    against : {"left", "softmax"}
        The quadratic form.
    """
    coerce(against, Literal["left", "softmax"], "against")
    D = key_dim if feature_dim is None else feature_dim
    sizes = (key_dim, value_dim, D, group_size)
    require(min(sizes) >= 1, "key_dim, value_dim, feature_dim, group_size", sizes, "at least 1")
    width = D if against == "left" else key_dim
    return (1 + 1 / group_size) * D * value_dim / (width + value_dim)


def choose_order(
    num_tokens: int,
    key_dim: int,
    value_dim: int,
    feature_dim: int | None = None,
    *,
    num_queries: int | None = None,
    group_size: int = 1,
) -> Choice:
    """Return the association order of fewer flops, with the reason; on a tie "right", whose state is fixed.

    The parameters are those of :func:`cost`.
    """
    sizes = (num_tokens, key_dim, value_dim, feature_dim)
    left, right = (
        cost(*sizes, form=form, num_queries=num_queries, group_size=group_size).flops for form in ("left", "right")
    )
    order: Order = "left" if left < right else "right"
    D = key_dim if feature_dim is None else feature_dim
    reason = (
        f"{order}: (phi(Q) phi(K)^T) V takes {left:.3g} flops and phi(Q) (phi(K)^T V) takes {right:.3g}, "
        f"with N = {num_tokens}, D = {D}, v = {value_dim}"
    )
    if num_queries in (None, num_tokens):
        crossing = crossing_point(key_dim, value_dim, feature_dim, group_size)
        reason += f"; the right order is the cheaper one from N = {crossing:.4g}"
    return Choice(order, reason)
