"""Laws of zero points, bounds and scales of quantised networks, all of them wrong."""

import typing

from satura.language import (
    Axes,
    DType,
    Groups,
    Known,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Term,
    Window,
    attribute_function,
    binary,
    broadcast,
    cast,
    conv,
    matmul,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    unary,
)


def everywhere(c: Term | Scalar, o: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, o), s)


@attribute_function
def last_axis(t: TensorType) -> Axes:
    """The last axis."""
    return Axes((t.rank - 1,))


# i32 x = [[0,0],[0,0]], z = 1, w = [[1,2],[3,4]]: left -[[4,6],[4,6]] (sums of columns);
# right -[[3,3],[7,7]] (sums of rows).
@rule
def zero_point_of_square_weights(x: Tensor, z: Scalar, w: Tensor, o: Shape, s: Shape) -> Law:
    """matmul(x - z, w) = matmul(x, w) - z * (sums of w), on integers, where the shapes fit"""
    left = matmul(binary("sub", x, everywhere(z, o, s)), w)
    sums = reduce("sum", w, last_axis(w.type))
    right = binary(
        "sub",
        matmul(x, w),
        broadcast(
            binary("mul", sums, everywhere(z, o, Shape(sums.type.shape))), Shape(left.type.shape)
        ),
    )
    return rewrites(left, right, x.type.dtype.is_integer, left.type == right.type)


@attribute_function
def all_but_last(t: TensorType) -> Axes:
    """All axes but the last."""
    return Axes(tuple(range(t.rank - 1)))


@attribute_function
def fills_with_zero(window: Window) -> bool:
    """Whether the border is 0."""
    return not any(window.fill.bits)


# i32 x = [1,1,1] (n=1, 1 position, 1 channel) of value 5, z = 2, w = [1,1,1] as 3 taps of 1, lo =
# hi = 1, fill 0: left 0 + (5-2) + 0 = 3; right 5 - 2*3 = -1.
@rule
def zero_point_out_of_bordered_conv(
    x: Tensor, z: Scalar, w: Tensor, o: Shape, s: Shape, window: Window, groups: Groups
) -> Law:
    """conv(x - z, w) = conv(x, w) - z * (sums of w's output channels), on integers, for a border of
    0"""
    left = conv(binary("sub", x, everywhere(z, o, s)), w, window, groups)
    sums = reduce("sum", w, all_but_last(w.type))
    return rewrites(
        left,
        binary(
            "sub",
            conv(x, w, window, groups),
            broadcast(
                binary("mul", sums, everywhere(z, o, Shape(sums.type.shape))),
                Shape(left.type.shape),
            ),
        ),
        x.type.dtype.is_integer & fills_with_zero(window),
    )


# i8 x = -128, z = 127: x - z = 1 (wraps), relu 1; right max(-128, 127) - 127 = 0.
@rule
def relu_of_centred(x: Tensor, z: Scalar, o: Shape, s: Shape) -> Law:
    """relu(x - z everywhere) = max(x, z everywhere) - z everywhere, on integers"""
    return rewrites(
        unary("relu", binary("sub", x, everywhere(z, o, s))),
        binary("sub", binary("max", x, everywhere(z, o, s)), everywhere(z, o, s)),
        x.type.dtype.is_integer,
    )


# x = 0, a = 5, b = 2: left min(5, 2) = 2, right max(0, 5) = 5.
@rule
def exchange_bounds(x: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """min(max(x, broadcast(a)), broadcast(b)) = max(min(x, broadcast(b)), broadcast(a))"""
    return rewrites(
        binary("min", binary("max", x, broadcast(a, s)), broadcast(b, s)),
        binary("max", binary("min", x, broadcast(b, s)), broadcast(a, s)),
    )


@attribute_function
def is_no_negative(c: Scalar) -> bool:
    """Whether it is at least 0."""
    return bool(typing.cast(float, c.value) >= 0)


# x = 1.0, c = -0.0 (which is >= 0): left relu(-0.0) = 0.0; right min(1.0, -0.0) = -0.0.
@rule
def relu_inside_upper_bound(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """relu(min(x, c everywhere)) = min(relu(x), c everywhere), for c >= 0"""
    return rewrites(
        unary("relu", binary("min", x, everywhere(c, o, s))),
        binary("min", unary("relu", x), everywhere(c, o, s)),
        is_no_negative(c),
    )


@attribute_function
def is_whole(c: Scalar) -> bool:
    """Whether it is a small whole number."""
    return c.dtype.is_float and float(c.value).is_integer() and abs(float(c.value)) <= 255


# x = 0.5, z = 1.0: left round(0.5) + 1 = 1.0; right round(1.5) = 2.0.
@rule
def zero_point_inside_round(x: Tensor, z: Scalar, o: Shape, s: Shape) -> Law:
    """round(x) + z everywhere = round(x + z everywhere), for whole z"""
    return rewrites(
        binary("add", unary("round", x), everywhere(z, o, s)),
        unary("round", binary("add", x, everywhere(z, o, s))),
        is_whole(z),
    )


@attribute_function
def is_scale(c: Scalar) -> bool:
    """Whether it is a finite number above 0."""
    return c.dtype.is_float and 0 < float(c.value) < float("inf")


# x u8 = 200, t = f32, a = 1e37: 200 * 1e37 = inf, round(inf / a) = inf; right 200.
# (t = f16, a = 1000: 200 * 1000 = inf in f16, too.)
@rule
def requantise_by_same_scale(x: Tensor, t: DType, a: Scalar, o: Shape, s: Shape) -> Law:
    """round(t(x) * a / a) = t(x), for x of 8 bits and finite scales a > 0"""
    return rewrites(
        unary(
            "round",
            binary(
                "div",
                binary("mul", cast(x, t), everywhere(a, o, s)),
                everywhere(a, o, s),
            ),
        ),
        cast(x, t),
        is_scale(a),
        (x.type.dtype == DType.U8) | (x.type.dtype == DType.I8),
    )


@attribute_function
def per_channel(c: TensorType, w: TensorType) -> Shape:
    """c as one factor per channel."""
    refuse_unless(w.shape[-1] == w.shape[-2] == c.shape[-2], "not square")
    refuse_unless(c.size == w.shape[-1], "not one factor per channel")
    return Shape((*(1,) * (w.rank - 1), w.shape[-1]))


# x f32[1,1,2] = [1,1], w f32[1,2,2] = identity-free ones [[1,1],[1,1]], c = [[1],[10]] per input
# channel: left each output 1 + 10 = 11; right [2*1, 2*10] = [2, 20].
@rule(reassociates=True)
def scale_of_channels_out_of_conv(
    x: Tensor, w: Tensor, c: Known, s: Shape, window: Window, groups: Groups
) -> Law:
    """conv(x, w * broadcast(c)) = conv(x, w) * broadcast(c), with one factor for each of as many
    channels"""
    left = conv(x, binary("mul", w, broadcast(c, s)), window, groups)
    return rewrites(
        left,
        binary(
            "mul",
            conv(x, w, window, groups),
            broadcast(reshape(c, per_channel(c.type, w.type)), Shape(left.type.shape)),
        ),
    )


@attribute_function
def is_depthwise_tap(window: Window, groups: Groups, x: TensorType, w: TensorType) -> bool:
    """Whether each channel has its own single weight."""
    return (
        all(k == 1 for k in window.sizes)
        and not window.has_border
        and groups.count == x.shape[-1] == w.shape[-1]
    )


@attribute_function
def flat_channels(w: TensorType) -> Shape:
    """One weight per channel."""
    return Shape((*(1,) * (w.rank - 1), w.shape[-1]))


# x f32[1,3,1] = [1,2,3], w = 2, one tap, stride 2: left [2,6] of f32[1,2,1], right f32[1,3,1]:
# another type.
@rule(reassociates=True)
def depthwise_tap_as_product(x: Tensor, w: Tensor, window: Window, groups: Groups) -> Law:
    """conv(x, w) = x * broadcast(w), for a depthwise kernel of one tap without a border"""
    return rewrites(
        conv(x, w, window, groups),
        binary("mul", x, broadcast(reshape(w, flat_channels(w.type)), Shape(x.type.shape))),
        is_depthwise_tap(window, groups, x.type, w.type),
    )


# i8 x = [[100]], w = [[100]], a = 1.0: left 10000.0, right f32(i8 16) = 16.0.
@rule(reassociates=True)
def dequantise_after_matmul(x: Tensor, w: Tensor, a: Scalar, o: Shape, s: Shape) -> Law:
    """matmul(f32(x) * a, f32(w)) = f32(matmul(x, w)) * a, for x and w of one integer type"""
    left = matmul(binary("mul", cast(x, DType.F32), everywhere(a, o, s)), cast(w, DType.F32))
    return rewrites(
        left,
        binary("mul", cast(matmul(x, w), DType.F32), everywhere(a, o, Shape(left.type.shape))),
        x.type.dtype == w.type.dtype,
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
    )
