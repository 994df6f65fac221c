"""Arithmetic, only where it pays: units vanish and constants meet.

In floats x + 0.0 is not x (it turns -0.0 into 0.0), but x + -0.0 is. Reassociating laws bring known
tensors together, which are then computed once; they hold up to rounding. What is known altogether
is left alone (`Varying`): it is computed at compile time as it stands.
"""

from __future__ import annotations

from math import frexp

from satura.rewrite.language.dsl import (
    Approximate,
    Known,
    Law,
    Tensor,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.families import Elementwise
from satura.rewrite.language.terms import (
    Term,
    binary,
    broadcast,
    cast,
    reduce,
    reshape,
    scalar,
    unary,
)
from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.elementwise import COMMUTATIVE, IDEMPOTENT
from satura.rewrite.types.attributes import Axes, BinaryFn, ReduceFn, Shape, UnaryFn, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import NARROW, DType, TensorType

WHOLE_BYTES = {DType.F64: 6, DType.F32: 3, DType.F16: 1, DType.BF16: 1}  # integers it holds
WHOLE_BYTES |= {dtype: 0 for dtype in NARROW if dtype.is_float}


@rule
def cancel_negations(x: Tensor) -> Law:
    """-(-x) = x"""
    return rewrites(unary("neg", unary("neg", x)), x)


@attribute_function
def is_idempotent(f: UnaryFn) -> bool:
    """Whether f(f(x)) = f(x)."""
    return f.name in IDEMPOTENT


@rule
def apply_idempotent_once(f: UnaryFn, x: Tensor) -> Law:
    """f(f(x)) = f(x), for relu, abs, sign and the roundings"""
    return rewrites(unary(f, unary(f, x)), unary(f, x), is_idempotent(f))


@attribute_function
def is_commutative(f: BinaryFn) -> bool:
    """Whether f(x, y) = f(y, x)."""
    return f.name in COMMUTATIVE


@rule
def constant_to_the_right(f: BinaryFn, x: Varying, c: Known, s: Shape) -> Law:
    """f(broadcast(c), x) = f(x, broadcast(c)) for a commutative f"""
    return rewrites(binary(f, broadcast(c, s), x), binary(f, x, broadcast(c, s)), is_commutative(f))


@attribute_function
def is_right_unit(f: BinaryFn, c: Scalar) -> bool:
    """Whether f(x, c) = x for every x, bit for bit."""
    if f.name in ("mul", "div"):
        return c == Scalar.of(1, c.dtype)
    if f.name == "add":
        return c == Scalar.of(-0.0, c.dtype)
    return f.name in ("sub", "or", "xor", "shl", "shr") and not any(c.bits)


@rule
def drop_unit(f: BinaryFn, x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """f(x, c everywhere) = x for the right unit c of f: x * 1, x / 1, x + -0.0, x - 0.0, and on
    integers x + 0, x - 0, x | 0, x ^ 0, x << 0, x >> 0"""
    return rewrites(binary(f, x, broadcast(reshape(c, ones), s)), x, is_right_unit(f, c))


@rule
def subtract_as_add(x: Varying, c: Known, s: Shape) -> Law:
    """x - broadcast(c) = x + broadcast(-c)"""
    return rewrites(
        binary("sub", x, broadcast(c, s)), binary("add", x, broadcast(unary("neg", c), s))
    )


@attribute_function
def exact_reciprocal(c: Scalar) -> Scalar:
    """1 / c, where that is exact: for powers of two."""
    divide = Elementwise(REGISTRY["binary"], (BinaryFn("div"),))
    inverse = divide.element((Scalar.of(1, c.dtype), c))
    for value in (c, inverse):
        mantissa, _ = frexp(float(value.value))
        refuse_unless(abs(mantissa) == 0.5, f"{c} has no exact reciprocal")
    return inverse


@rule
def divide_by_power_of_two(x: Varying, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c) for a power of two c"""
    return rewrites(
        binary("div", x, broadcast(reshape(c, ones), s)),
        binary("mul", x, broadcast(reshape(scalar(exact_reciprocal(c)), ones), s)),
    )


@attribute_function
def one_like(type_: TensorType) -> Scalar:
    """1 in f32: in f16 already 1 / 1e-5 overflows, and in f64 places are computed."""
    refuse_unless(type_.dtype is DType.F32, "its reciprocal may not be one of its type")
    return Scalar.of(1, type_.dtype)


@attribute_function
def unit_shape(type_: TensorType) -> Shape:
    """A shape of the type's rank with one element."""
    return Shape((1,) * type_.rank)


def times_reciprocals(x: Tensor, c: Tensor, s: Shape) -> Term:
    """x * broadcast(1 / c)"""
    one = reshape(scalar(one_like(c.type)), unit_shape(c.type))
    reciprocals = binary("div", broadcast(one, Shape(c.type.shape)), c)
    return binary("mul", x, broadcast(reciprocals, s))


@rule(reassociates=True)
def multiply_by_reciprocals(x: Approximate, c: Tensor, s: Shape) -> Law:
    """x / broadcast(c) = x * broadcast(1 / c), for x that are rounded already, in f32"""
    return rewrites(binary("div", x, broadcast(c, s)), times_reciprocals(x, c, s))


@rule(reassociates=True)
def multiply_by_rounded_reciprocals(x: Varying, c: Approximate, s: Shape) -> Law:
    """x / broadcast(c) = x * broadcast(1 / c), for c that are rounded already, in f32"""
    return rewrites(binary("div", x, broadcast(c, s)), times_reciprocals(x, c, s))


@rule(reassociates=True)
def scale_narrow_sum(x: Varying, a: Known, b: Known, s: Shape) -> Law:
    """(broadcast(x) + broadcast(a)) * broadcast(b) = broadcast(x) * broadcast(b) + broadcast(a) *
    broadcast(b); starting from a broadcast, so that the sums of constants do not multiply"""
    wide, scale = broadcast(x, s), broadcast(b, s)
    return rewrites(
        binary("mul", binary("add", wide, broadcast(a, s)), scale),
        binary("add", binary("mul", wide, scale), binary("mul", broadcast(a, s), scale)),
    )


@attribute_function
def survives(source: DType, between: DType, target: DType) -> bool:
    """Whether casting by way of `between` is casting directly.

    `between` must hold every value of `source`. Integers that go by way of floats to other integers
    saturate where a direct cast wraps.
    """
    detour = source.is_integer and between.is_float and target.is_integer and target is not source
    return holds_all_values(source, between) and not detour


def holds_all_values(narrow: DType, wide: DType) -> bool:
    """Whether each value of `narrow` has an equal one in `wide`."""
    if narrow is wide or narrow is DType.BOOL:
        return True
    if wide is DType.BOOL:
        return False
    if narrow.is_float:
        return wide.is_float and narrow.itemsize < wide.itemsize
    if wide.is_float:
        return narrow.itemsize <= WHOLE_BYTES[wide]
    return narrow.itemsize < wide.itemsize and (wide.is_signed or not narrow.is_signed)


@rule
def merge_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when a holds every value of x's dtype"""
    return rewrites(cast(cast(x, a), b), cast(x, b), survives(x.type.dtype, a, b))


@rule
def drop_identity_cast(x: Tensor, t: DType) -> Law:
    """cast(x, t) = x, when t is the dtype of x"""
    return rewrites(cast(x, t), x, x.type.dtype == t)


@attribute_function
def reduces_units(type_: TensorType, axes: Axes) -> bool:
    """Whether all axes have extent 1."""
    return all(type_.shape[axis] == 1 for axis in axes.indices)


@rule(reassociates=True)
def drop_reduction_of_units(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """reduce(f, x, a) = x, when the axes a have extent 1: only the sum of -0.0 is another zero"""
    return rewrites(reduce(f, x, axes), x, reduces_units(x.type, axes))
