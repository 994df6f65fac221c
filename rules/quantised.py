"""Dequantised operands of contractions are multiplied as the integers that they come from.

What is dequantised is (q - zero point) · scale. Its scale goes past the contraction, whose sums of
integers are exact then, where those of f32 are rounded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from satura.rewrite.language.dsl import (
    Known,
    Law,
    Tensor,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    cast,
    constant,
    conv,
    matmul,
    pad,
    pool,
    reduce,
    reshape,
    scalar,
    transpose,
)
from satura.rewrite.types.attributes import (
    Axes,
    BinaryFn,
    Groups,
    Padding,
    Perm,
    Shape,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules.algebra import unit_shape
from satura.rules.contraction import down_columns, is_per_channel, last_axis

SMALL = (DType.I8, DType.U8, DType.I16, DType.U16)


@attribute_function
def sums_are_exact(x: TensorType, w: TensorType) -> bool:
    """Whether no sum of products is too large for i64: there are no 2^31 of them."""
    return x.dtype in SMALL and w.dtype in SMALL


@attribute_function
def is_small(x: TensorType) -> bool:
    """Whether these are integers of at most 16 bits."""
    return x.dtype in SMALL


def _refuse_unless_zero(window: Window) -> None:
    is_zero = not window.has_border or float(window.fill.value) == 0.0
    refuse_unless(is_zero, "the border is not 0")


@attribute_function
def integer_window(window: Window) -> Window:
    """The window with a border of the integer 0, if it has none or one of 0.0."""
    _refuse_unless_zero(window)
    return replace(window, fill=Scalar.of(0, DType.I64))


@attribute_function
def is_finite(a: Scalar) -> bool:
    """Whether this is neither infinite nor NaN: borders of 0 would be multiplied by it."""
    return bool(np.isfinite(float(a.value)))


@rule(reassociates=True)
def integer_conv(
    x: Varying, a: Scalar, w: Known, c: Known, ones: Shape, s: Shape, t: Shape, window: Window,
    groups: Groups,
) -> Law:  # fmt: skip
    """conv(f32(x) * a, f32(w) * c) = f32(conv(x, w)) * (a * c) on integers, when c has one factor
    per output channel or one in all, a is finite and the border is 0"""
    float_, wide = DType.F32, DType.I64
    before = conv(
        binary("mul", cast(x, float_), broadcast(reshape(a, ones), s)),
        binary("mul", cast(w, float_), broadcast(c, t)),
        window,
        groups,
    )
    sums = conv(cast(x, wide), cast(w, wide), integer_window(window), groups)
    scale = binary("mul", broadcast(reshape(a, ones), Shape(c.type.shape)), c)
    return rewrites(
        before,
        binary("mul", cast(sums, float_), broadcast(scale, Shape(before.type.shape))),
        sums_are_exact(x.type, w.type),
        is_per_channel(c.type),
        is_finite(a),
    )


@rule(reassociates=True)
def integer_matmul(
    x: Varying, a: Scalar, w: Known, c: Known, ones: Shape, s: Shape, t: Shape
) -> Law:
    """matmul(f32(x) * a, f32(w) * c) = f32(matmul(x, w)) * (a * c) on integers, when c has one
    factor per column or one in all"""
    float_, wide = DType.F32, DType.I64
    before = matmul(
        binary("mul", cast(x, float_), broadcast(reshape(a, ones), s)),
        binary("mul", cast(w, float_), broadcast(c, t)),
    )
    sums = matmul(cast(x, wide), cast(w, wide))
    scale = binary("mul", broadcast(reshape(a, ones), Shape(c.type.shape)), c)
    return rewrites(
        before,
        binary("mul", cast(sums, float_), broadcast(scale, Shape(before.type.shape))),
        sums_are_exact(x.type, w.type),
        is_per_channel(c.type),
    )


@attribute_function
def is_per_row(type_: TensorType) -> bool:
    """Whether the last axis has extent 1."""
    return type_.shape[-1] == 1


@rule
def zero_point_out_of_matmul(x: Varying, z: Varying, w: Known, s: Shape) -> Law:
    """matmul(x - z, w) = matmul(x, w) - z * (sums of w's columns) on integers, when z is one number
    per row or one in all"""
    before = matmul(binary("sub", x, broadcast(z, s)), w)
    shape = Shape(before.type.shape)
    sums = reduce("sum", w, down_columns(w.type))
    moved = binary("mul", broadcast(z, shape), broadcast(sums, shape))
    return rewrites(
        before,
        binary("sub", matmul(x, w), moved),
        before.type.dtype.is_integer,
        is_per_row(z.type),
    )


@attribute_function
def is_one_number(type_: TensorType) -> bool:
    """Whether all extents are 1."""
    return all(dim == 1 for dim in type_.shape)


@attribute_function
def all_but_last(type_: TensorType) -> Axes:
    """All axes but the last."""
    return Axes(tuple(range(type_.rank - 1)))


@attribute_function
def border_of_zeros(window: Window) -> Padding:
    """The padding of images that is this window's border, whose value is 0."""
    _refuse_unless_zero(window)
    return Padding((0, *window.lo, 0), (0, *window.hi, 0))


@attribute_function
def without_border(window: Window) -> Window:
    """The window that stays inside."""
    inside = (0,) * window.rank
    return replace(window, lo=inside, hi=inside)


@rule
def zero_point_out_of_conv(
    x: Varying, z: Varying, w: Known, s: Shape, window: Window, groups: Groups
) -> Law:
    """conv(x - z, w) = conv(pad(x, z), w) - z * (sums of w's output channels) on integers, when z
    is one number; the pad takes the place of a border of 0"""
    before = conv(binary("sub", x, broadcast(z, s)), w, window, groups)
    shape = Shape(before.type.shape)
    sums = reduce("sum", w, all_but_last(w.type))
    moved = binary("mul", broadcast(z, shape), broadcast(sums, shape))
    padded = pad(x, reshape(z, Shape(())), border_of_zeros(window))
    return rewrites(
        before,
        binary("sub", conv(padded, w, without_border(window), groups), moved),
        before.type.dtype.is_integer,
        is_one_number(z.type),
    )


@attribute_function
def shift_to_i8(w: Constant) -> Scalar:
    """What the least of constants that are not i8 is above the least i8."""
    refuse_unless(w.type.dtype in (DType.U8, DType.I16) and w.size > 0, "the constants are i8")
    return Scalar.of(int(w.array.min()) - int(DType.I8.bounds[0]), DType.I32)


@attribute_function
def shifted_to_i8(w: Constant, c: Scalar) -> Constant:
    """The constants less c, as i8."""
    numbers = w.array.astype(c.dtype.numpy) - c.value
    shifted = numbers.astype(DType.I8.numpy)
    refuse_unless(bool((shifted == numbers).all()), "the constants are too far apart")
    return Constant(shifted)


@attribute_function
def over_images(window: Window) -> Window:
    """The window over images of one channel, whose border is 0 if it has any."""
    _refuse_unless_zero(window)
    parts = (window.sizes, window.strides, window.dilations)
    sizes, strides, dilations = ((1, *part, 1) for part in parts)
    return Window(sizes, strides, dilations, (0, *window.lo, 0), (0, *window.hi, 0), window.fill)


@rule
def shift_weights_of_conv(
    x: Varying, w: Constant, p: Perm, t: DType, window: Window, groups: Groups
) -> Law:
    """conv(x, w) = conv(x, w - c) + c * (sums of x under the window) on integers, for constants w
    that are i8 less c, which takes the least to -128; of one group, with a border of 0"""
    before = conv(x, cast(transpose(constant(w), p), t), window, groups)
    c, shape = shift_to_i8(w), Shape(before.type.shape)
    sums = pool("sum", reduce("sum", x, last_axis(x.type)), over_images(window))
    unit = cast(reshape(scalar(c), unit_shape(before.type)), t)
    return rewrites(
        before,
        binary(
            "add",
            conv(x, cast(transpose(constant(shifted_to_i8(w, c)), p), t), window, groups),
            binary("mul", broadcast(sums, shape), broadcast(unit, shape)),
        ),
        before.type.dtype.is_integer,
        groups.count == 1,
    )


@rule
def shift_weights_of_matmul(x: Varying, w: Constant, t: DType) -> Law:
    """matmul(x, w) = matmul(x, w - c) + c * (sums of x's rows) on integers, for constants w that
    are i8 less c, which takes the least to -128"""
    before = matmul(x, cast(constant(w), t))
    c, shape = shift_to_i8(w), Shape(before.type.shape)
    sums = reduce("sum", x, last_axis(x.type))
    unit = cast(reshape(scalar(c), unit_shape(before.type)), t)
    return rewrites(
        before,
        binary(
            "add",
            matmul(x, cast(constant(shifted_to_i8(w, c)), t)),
            binary("mul", broadcast(sums, shape), broadcast(unit, shape)),
        ),
        before.type.dtype.is_integer,
    )


@rule
def transpose_into_dequantised(x: Tensor, c: Known, f: DType, p: Perm, s: Shape) -> Law:
    """transpose(f(x) * broadcast(c), p) = f(transpose(x, p)) * broadcast(transpose(c, p)), where f
    is a cast from integers of at most 16 bits"""
    return rewrites(
        transpose(binary("mul", cast(x, f), broadcast(c, s)), p),
        binary("mul", cast(transpose(x, p), f), broadcast(transpose(c, p), s.permuted(p))),
        is_small(x.type),
    )


@rule
def transpose_into_widened(w: Known, t: DType, p: Perm) -> Law:
    """transpose(t(w), p) = t(transpose(w, p)) for constants, integers of at most 16 bits"""
    return rewrites(transpose(cast(w, t), p), cast(transpose(w, p), t), is_small(w.type))


@rule
def transpose_into_centred(x: Varying, t: DType, z: Tensor, s: Shape, p: Perm) -> Law:
    """transpose(t(x) - z, p) = t(transpose(x, p)) - z, when x are integers of at most 16 bits and z
    is one number"""
    return rewrites(
        transpose(binary("sub", cast(x, t), broadcast(z, s)), p),
        binary("sub", cast(transpose(x, p), t), broadcast(z, s.permuted(p))),
        is_small(x.type),
        is_one_number(z.type),
    )


@rule
def reshape_into_dequantised(
    f: BinaryFn, x: Varying, t: DType, c: Tensor, s: Shape, r: Shape
) -> Law:
    """reshape(f(t(x), broadcast(c)), r) = f(t(reshape(x, r)), reshape(broadcast(c), r)), when x are
    integers of at most 16 bits"""
    spread = broadcast(c, s)
    return rewrites(
        reshape(binary(f, cast(x, t), spread), r),
        binary(f, cast(reshape(x, r), t), reshape(spread, r)),
        is_small(x.type),
    )


@attribute_function
def window_of_integers(x: TensorType, window: Window) -> Window:
    """The window whose border is the integer 0, if it is 0.0, or the least one, if it is -inf and
    each window sees more than the border."""
    is_computed = x.dtype.is_integer and not x.dtype.is_narrow
    refuse_unless(is_computed, "the elements are not integers that are computed with")
    fill = float(window.fill.value)
    is_zero = fill == 0 and not np.signbit(fill)
    if not window.has_border or is_zero:
        return replace(window, fill=Scalar.of(0, x.dtype))
    refuse_unless(fill == -np.inf, "the border is neither 0 nor -inf")
    parts = (window.sizes, window.dilations, window.lo, window.hi)
    for size, dilation, *border in zip(*parts, strict=True):
        reaches = not any(border) or (dilation == 1 and max(border) < size)
        refuse_unless(reaches, "a window may lie in the border alone")
    return replace(window, fill=Scalar.of(x.dtype.bounds[0], x.dtype))


@attribute_function
def keeps_order(f: DType, c: Scalar) -> bool:
    """Whether integers keep their order as `f` times c."""
    return f.is_float and 0 < float(c.value) < np.inf


@rule
def max_pool_of_dequantised(
    x: Varying, f: DType, c: Scalar, ones: Shape, s: Shape, window: Window
) -> Law:
    """max pool(f(x) * broadcast(c)) = f(max pool(x)) * broadcast(c), when x are integers, and c is
    positive and finite"""
    scaled = binary("mul", cast(x, f), broadcast(reshape(c, ones), s))
    before = pool("max", scaled, window)
    largest = cast(pool("max", x, window_of_integers(x.type, window)), f)
    return rewrites(
        before,
        binary("mul", largest, broadcast(reshape(c, ones), Shape(before.type.shape))),
        keeps_order(f, c),
    )
