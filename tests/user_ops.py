"""Ops as a user declares them, for tests: forgotten again when a test ends.

`softsign` and `hypotenuse` are functions of `unary` and `binary`; `lerp`, `elu` and `dequantize`
are ops of their own; `sorted_rows` and `rolled` have no formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from satura.ops import (
    FLOATS,
    Axis,
    Count,
    Draw,
    DType,
    Scalar,
    TensorType,
    UserAttribute,
    UserOp,
    local_ops,
    op,
    refuse_unless,
)
from satura.rewrite.types.attributes import Attribute


@dataclass(frozen=True)
class Shift(UserAttribute):
    """By how much and along which axis elements move."""

    axis: int
    amount: int


@dataclass(frozen=True)
class UserOps:
    """The ops that `user_ops` declares."""

    softsign: UserOp
    hypotenuse: UserOp
    lerp: UserOp
    elu: UserOp
    dequantize: UserOp
    sorted_rows: UserOp
    rolled: UserOp


@contextmanager
def user_ops() -> Iterator[UserOps]:
    """The ops of this file, declared while the context is open."""
    with local_ops():
        yield declare()


def declare() -> UserOps:
    """Declare the ops of this file."""

    @op(formula="x / (1 + abs(x))", reference=lambda x: x / (1 + np.abs(x)))
    def softsign(x: TensorType) -> TensorType:
        """x / (1 + |x|)"""
        refuse_unless(x.dtype in FLOATS, "softsign takes floats")
        return x

    @op(formula="sqrt(x ** 2 + y ** 2)")
    def hypotenuse(x: TensorType, y: TensorType) -> TensorType:
        """The square root of x² + y²."""
        return x

    @op(formula="x + (y - x) * t", reference=lambda x, y, t: x + (y - x) * t)
    def lerp(x: TensorType, y: TensorType, t: TensorType) -> TensorType:
        """From x, where t is 0, to y, where t is 1."""
        return x

    @op(
        formula="x if x > 0 else alpha * (exp(x) - 1)",
        reference=lambda x, alpha: np.where(x > 0, x, x.dtype.type(alpha.value) * (np.exp(x) - 1)),
        domain="test.domain",
        op_type="MyElu",
    )
    def elu(x: TensorType, alpha: Scalar) -> TensorType:
        """x where it is positive, else alpha · (exp(x) - 1)."""
        return x

    @op(formula="f32(x) * scale if x > low else 0")
    def dequantize(x: TensorType, scale: TensorType, low: Count) -> TensorType:
        """x · scale, and 0 for the codes up to `low`."""
        refuse_unless(x.dtype in (DType.I8, DType.U8), "codes are bytes")
        return scale

    def any_row(draw: Draw, result: TensorType) -> tuple[tuple[TensorType], tuple[Attribute]]:
        return (result,), (Axis(draw.one_of(range(result.rank))),)

    @op(reference=lambda x, axis: np.sort(x, axis.index, "stable"), generator=any_row)
    def sorted_rows(x: TensorType, axis: Axis) -> TensorType:
        """The elements in ascending order along `axis`."""
        refuse_unless(0 <= axis.index < x.rank, "there is no such axis")
        return x

    @op(reference=lambda x, shift: np.roll(x, shift.amount, shift.axis))
    def rolled(x: TensorType, shift: Shift) -> TensorType:
        """The elements moved along an axis, those that leave it coming in at the other end."""
        refuse_unless(0 <= shift.axis < x.rank, "there is no such axis")
        return x

    return UserOps(softsign, hypotenuse, lerp, elu, dequantize, sorted_rows, rolled)
