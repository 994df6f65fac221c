"""Attention: means of values, weighted by how well their keys fit each query.

There is a score for each query and key: for long sequences far more of them than of all that is
read and written. So they are no tensor: a kernel computes them for a few queries at a time.
"""

from __future__ import annotations

import numpy as np

from satura.rewrite.ops.elementwise import unary
from satura.rewrite.ops.reductions import products
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import UnaryFn, refuse_unless
from satura.rewrite.types.tensor_type import Array, DType, TensorType

CHEAP, REDUCED = 3, 4
"""How many operations a score takes beside its products and exp: each by itself, and in a row."""


def _attention(q: Array, k: Array, bias: Array, v: Array) -> Array:
    if k.shape[-1] == 0:
        return np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    with np.errstate(all="ignore"):
        scores = np.add(products(q, k), bias)
        grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return products(grown / grown.sum(axis=-1, keepdims=True), v)


def scores_type(q: TensorType, k: TensorType) -> TensorType:
    """The type of the scores [*batch, query, key]."""
    return q.with_shape((*q.shape[:-1], k.shape[-1]))


def exp_flops(scores: TensorType) -> float:
    """The weight of the exp of all scores."""
    return unary.flops((scores,), (UnaryFn("exp"),), scores)


def _flops(
    result: TensorType, q: TensorType, k: TensorType, bias: TensorType, v: TensorType
) -> float:
    scores = scores_type(q, k)
    rows = max(1.0, size_of(q.with_shape(q.shape[:-1])))
    depth, columns = size_of(q) / rows, size_of(result) / rows
    return size_of(scores) * (2 * depth + 2 * columns + CHEAP + REDUCED) + exp_flops(scores)


@op(kind=Kind.CONTRACTION, reference=_attention, flops=_flops)
def attention(q: TensorType, k: TensorType, bias: TensorType, v: TensorType) -> TensorType:
    """softmax(matmul(q, k) + bias, along the keys) times v, of f32: q [*batch, query, depth],
    k [*batch, depth, key], bias [*batch, query, key], v [*batch, key, column]."""
    refuse_unless(all(each.dtype is DType.F32 for each in (q, k, bias, v)), "only f32 tensors")
    refuse_unless(q.rank == k.rank == v.rank >= 2, f"queries {q}, keys {k} and values {v}")
    same = q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
    refuse_unless(same, f"batch extents of {q}, {k} and {v} differ")
    refuse_unless(q.shape[-1] == k.shape[-2], f"inner extents of {q} and {k} differ")
    refuse_unless(k.shape[-1] == v.shape[-2], f"keys {k} and values {v} are not as many")
    refuse_unless(bias == scores_type(q, k), f"the bias {bias} has another shape than the scores")
    return q.with_shape((*q.shape[:-1], v.shape[-1]))


__all__ = ["CHEAP", "REDUCED", "attention", "exp_flops", "scores_type"]
