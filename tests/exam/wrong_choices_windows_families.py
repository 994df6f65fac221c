"""Laws of choices, truth values, windows and families, all of them wrong."""

import typing

import numpy as np

from satura.language import (
    DType,
    Elementwise,
    Groups,
    Law,
    Operands,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Varying,
    Window,
    attribute_function,
    binary,
    broadcast,
    cast,
    conv,
    family,
    pool,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


# c = false, x = 1, y = 2, z = 3: 3 on the left, 2 on the right.
@rule
def select_again(c: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """select(c, x, select(c, y, z)) = select(c, x, y)"""
    return rewrites(select(c, x, select(c, y, z)), select(c, x, y))


@attribute_function
def is_number(t: DType) -> bool:
    return t is not DType.BOOL and not t.is_narrow


# t = f32, c = d = true: 1.0 on the left, 1.0 + 1.0 = 2.0 on the right.
@rule
def count_either(c: Tensor, d: Tensor, t: DType) -> Law:
    """cast(c or d, t) = cast(c, t) + cast(d, t), on bools"""
    return rewrites(
        cast(binary("or", c, d), t),
        binary("add", cast(c, t), cast(d, t)),
        c.type.dtype == DType.BOOL,
        is_number(t),
    )


# f32, x = NaN: sign(NaN) is NaN; both comparisons are false, and 0 - 0 = 0.
@rule
def sign_by_comparing(x: Tensor) -> Law:
    """sign(x) = (0 < x) - (x < 0)"""
    return rewrites(
        unary("sign", x),
        binary(
            "sub",
            cast(binary("lt", 0, x), x.type.dtype),
            cast(binary("lt", x, 0), x.type.dtype),
        ),
    )


# f32, x = inf, y = -inf: the sum is NaN; neither is.
@rule
def nan_of_sum(x: Tensor, y: Tensor) -> Law:
    """isnan(x + y) = isnan(x) or isnan(y)"""
    return rewrites(
        unary("isnan", binary("add", x, y)), binary("or", unary("isnan", x), unary("isnan", y))
    )


@attribute_function
def yes() -> Scalar:
    return Scalar.of(True, DType.BOOL)


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


# f32, x = NaN: relu(NaN) is NaN, and 0 <= NaN is false.
@rule
def relu_is_not_negative(x: Tensor) -> Law:
    """0 <= relu(x) is true"""
    return rewrites(
        binary("le", 0, unary("relu", x)),
        broadcast(reshape(scalar(yes()), units(x.type)), Shape(x.type.shape)),
    )


@attribute_function
def largest(type_: TensorType) -> Scalar:
    """The largest finite float of f32 and f64."""
    if type_.dtype not in (DType.F32, DType.F64):
        raise Refuse("only f32 and f64")
    return Scalar.of(
        np.finfo(typing.cast(np.dtype[np.floating], type_.dtype.numpy)).max, type_.dtype
    )


# f32, x = -inf: isinf is true; the largest float is not less than -inf.
@rule
def infinite_by_size(x: Tensor) -> Law:
    """isinf(x) = largest float < x"""
    return rewrites(
        unary("isinf", x),
        binary(
            "lt",
            broadcast(reshape(scalar(largest(x.type)), units(x.type)), Shape(x.type.shape)),
            x,
        ),
    )


@attribute_function
def joined(v: Window, w: Window) -> Window:
    """One window that sees what w sees of v's results."""
    if v.has_border or w.has_border or any(n != 1 for n in (*v.dilations, *w.dilations)):
        raise Refuse("borders or dilations")
    sizes = tuple(a + b - 1 for a, b in zip(v.sizes, w.sizes, strict=True))
    strides = tuple(a * b for a, b in zip(v.strides, w.strides, strict=True))
    return Window(sizes, strides, v.dilations, v.lo, v.hi, v.fill)


# x = i32[4] [0, 1, 2, 3], v = size 2 in steps of 2, w = size 2 in steps of 1: [1, 3], then [3]; one
# window of size 3 in steps of 2: [2]. The size has to be v's + v's stride * (w's - 1).
@rule
def join_pools(x: Tensor, v: Window, w: Window) -> Law:
    """pool(pool(x, v), w) = pool(x, v and w), for max, without borders and dilations"""
    return rewrites(pool("max", pool("max", x, v), w), pool("max", x, joined(v, w)))


# x = f32[1] [3], w = size 1 in steps of 1, border 1:0, filled with -5: left relu(max(-5)) = 0 at
# place 0; right max(-5) = -5.
@rule
def relu_into_pool(x: Tensor, w: Window) -> Law:
    """relu(pool(x, w)) = pool(relu(x), w), for max"""
    return rewrites(unary("relu", pool("max", x, w)), pool("max", unary("relu", x), w))


# binary add: x = f32[1, 2], y = f32[2, 1], s = [2, 2]: the left side is a sum of broadcasts; x + y
# of unlike shapes is ill typed.
@family
def broadcast_after(f: Elementwise, xs: Operands[Varying], s: Shape) -> Law:
    """f(broadcast(x, s)…) = broadcast(f(x…), s)"""
    return rewrites(f(xs.each(broadcast, s)), broadcast(f(xs), s))


# f32, x = y = [[[0.0]]], w = [[[1.0]]], one place of border before, filled with 1.0: the border
# gives 1 * 1 = 1 on the left, 1 + 1 = 2 on the right. The fill has to be 0.
@rule(reassociates=True)
def conv_of_sum(x: Tensor, y: Tensor, w: Tensor, window: Window, groups: Groups) -> Law:
    """conv(x + y, w) = conv(x, w) + conv(y, w)"""
    return rewrites(
        conv(binary("add", x, y), w, window, groups),
        binary("add", conv(x, w, window, groups), conv(y, w, window, groups)),
    )


@attribute_function
def differs(a: Scalar, b: Scalar) -> bool:
    """Whether a is not b, bit for bit."""
    return a.bits != b.bits


# f32, a = NaN (a mask's fill), b = 0, c = true: select gives NaN, and NaN == NaN is false; c is
# true. (a = 0.0, b = -0.0, c = false: -0.0 == 0.0 is true.)
@rule
def condition_back(c: Tensor, a: Scalar, b: Scalar, ones: Shape, s: Shape) -> Law:
    """(select(c, a, b) == a) = c, for constants a and b that differ"""
    first, second = broadcast(reshape(a, ones), s), broadcast(reshape(b, ones), s)
    return rewrites(binary("eq", select(c, first, second), first), c, differs(a, b))
