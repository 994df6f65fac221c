"""Laws of slices, pads and concatenations, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    DType,
    Groups,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    Window,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    iota,
    matmul,
    pad,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    unary,
)


@attribute_function
def shifted(s: Slices, b: Padding) -> Slices:
    """`s` of what is padded by b."""
    starts = tuple(i - lo for i, lo in zip(s.starts, b.lo, strict=True))
    refuse_unless(all(isinstance(i, int) and i >= 0 for i in starts), "it starts in the border")
    return Slices(starts, s.sizes, s.steps)


# x f32[2], b = [1:1], s = [1+3]: left x0 x1 v, right takes 3 of 2 elements: the upper border is
# not looked at.
@rule
def slice_inside_pad(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s shifted by b), when s starts behind the border"""
    return rewrites(slice_(pad(x, v, b), s), slice_(x, shifted(s, b)))


@attribute_function
def start_at(s: Slices, axis: Axis, dtype: DType) -> Scalar:
    """Where `s` starts along the axis."""
    refuse_unless(dtype.is_integer and not dtype.is_narrow)
    refuse_unless(isinstance(s.starts[axis.index], int))
    return Scalar.of(s.starts[axis.index], dtype)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


# iota([6], 0, i32), s = [0+3*2]: left 0 2 4, right 0 1 2: the step is forgotten.
@rule
def slice_of_ramp(n: Shape, axis: Axis, t: DType, s: Slices) -> Law:
    """slice(iota(n, axis), s) = iota(sizes of s, axis) + start of s, on integers"""
    part = slice_(iota(n, axis, t), s)
    return rewrites(
        part,
        binary(
            "add",
            iota(Shape(s.sizes), axis, t),
            broadcast(reshape(scalar(start_at(s, axis, t)), units(part.type)), Shape(s.sizes)),
        ),
    )


@attribute_function
def sum_of(a: Padding, b: Padding) -> Padding:
    """Both borders."""
    return Padding(
        tuple(i + j for i, j in zip(a.lo, b.lo, strict=True)),
        tuple(i + j for i, j in zip(a.hi, b.hi, strict=True)),
    )


# x f32[1] = [5], v = 1, w = 2, a = b = [1:0]: left 2 1 5, right 1 1 5.
@rule
def compose_pads(x: Tensor, v: Tensor, w: Tensor, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), w, b) = pad(x, v, a + b)"""
    return rewrites(pad(pad(x, v, a), w, b), pad(x, v, sum_of(a, b)))


@attribute_function
def keeps_zero(f: UnaryFn) -> bool:
    """Whether f(0) = 0."""
    return f.name in ("tanh", "sqrt", "neg", "relu", "sin")


# neg, x f32[1] = [1], b = [1:0]: left -(0 1) = -0.0 -1, right 0.0 -1.
@rule
def zeros_out_of_function(f: UnaryFn, x: Tensor, b: Padding) -> Law:
    """f(pad(x, 0)) = pad(f(x), 0), for an f with f(0) = 0"""
    return rewrites(unary(f, pad(x, 0, b)), pad(unary(f, x), 0, b), keeps_zero(f))


@attribute_function
def pads_only(b: Padding, a: Axes) -> bool:
    """Whether no other axes are padded than those of `a`."""
    return all(
        (lo, hi) == (0, 0) or i in a.indices
        for i, (lo, hi) in enumerate(zip(b.lo, b.hi, strict=True))
    )


# x f32[1] = [-1], b = [1:0], a = [0]: left max(0, -1) = 0, right -1.
@rule
def max_without_border(x: Tensor, b: Padding, a: Axes) -> Law:
    """max(pad(x, 0, b), a) = max(x, a), when only axes of a are padded"""
    return rewrites(reduce("max", pad(x, 0, b), a), reduce("max", x, a), pads_only(b, a))


@attribute_function
def spatial(b: Padding) -> Padding:
    """The border of the spatial axes."""
    refuse_unless(len(b.lo) >= 2)
    return Padding(b.lo[1:-1], b.hi[1:-1])


# x f32[1, 3, 1], b = [1:0, 0:0, 0:0], a window of size 1: left has 2 images, right 1: only spatial
# borders move, and that of the batch is lost.
@rule
def border_into_conv(x: Tensor, v: Scalar, b: Padding, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(pad(x, v, b), w) = conv(x, w) with a border of v"""
    return rewrites(conv(pad(x, v, b), w, window, g), conv(x, w, window.padded(spatial(b), v), g))


@attribute_function
def widened(w: Window, b: Padding, v: Scalar) -> Window:
    """The window with a border of v that is wider by b."""
    refuse_unless(all(isinstance(n, int) for n in (*b.lo, *b.hi)) and len(b.lo) == len(w.lo))
    lo = tuple(i + j for i, j in zip(w.lo, typing.cast(tuple[int, ...], b.lo), strict=True))
    hi = tuple(i + j for i, j in zip(w.hi, typing.cast(tuple[int, ...], b.hi), strict=True))
    return Window(w.sizes, w.strides, w.dilations, lo, hi, v)


# max, x f32[1] = [5], v = 7, b = [0:0], window of size 1 with border (1:0) of -9: left -9 5,
# right 7 5: the window's own border had another fill.
@rule
def border_into_pool(f: ReduceFn, x: Tensor, v: Scalar, b: Padding, window: Window) -> Law:
    """pool(pad(x, v, b)) = pool(x) with a border of v"""
    return rewrites(pool(f, pad(x, v, b), window), pool(f, x, widened(window, b, v)))


@attribute_function
def only_columns(b: Padding) -> bool:
    """Whether only the last axis is padded."""
    return len(b.lo) > 0 and all(n == 0 for n in (*b.lo[:-1], *b.hi[:-1]))


@attribute_function
def only_rows(b: Padding, columns: Padding) -> bool:
    """Whether only the last axis but one is padded, and as `columns` pads the last one."""
    rest = (*b.lo[:-2], *b.hi[:-2], b.lo[-1], b.hi[-1])
    return (
        len(b.lo) > 1 and not any(rest) and (b.lo[-2], b.hi[-2]) == (columns.lo[-1], columns.hi[-1])
    )


# x f32[1, 1], y f32[1, 1], padded by one, v = nan (or inf): left adds 0 * nan, right does not.
@rule(reassociates=True)
def drop_padded_terms(x: Tensor, y: Tensor, v: Tensor, a: Padding, b: Padding) -> Law:
    """matmul(pad(x, 0, columns), pad(y, v, rows)) = matmul(x, y): the terms are zeros times v"""
    return rewrites(
        matmul(pad(x, 0, a), pad(y, v, b)), matmul(x, y), only_columns(a), only_rows(b, a)
    )


# x, y f32[1, 1], z f32[1, 2], a = 1, b = 0: left concat(f32[1, 2], f32[1, 2], 0) is f32[2, 2];
# right concat(y, z, 0) of 1 and 2 columns is ill typed.
@rule
def regroup_concat(x: Tensor, y: Tensor, z: Tensor, a: Axis, b: Axis) -> Law:
    """concat(concat(x, y, a), z, b) = concat(x, concat(y, z, b), a)"""
    return rewrites(concat(concat(x, y, a), z, b), concat(x, concat(y, z, b), a))


# x f32[2], y f32[2], axis 0, axes = []: left 4 elements, right x + y has 2.
@rule(reassociates=True)
def sum_of_parts(x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """sum(concat(x, y, axis), a) = sum(x, a) + sum(y, a)"""
    return rewrites(
        reduce("sum", concat(x, y, axis), a),
        binary("add", reduce("sum", x, a), reduce("sum", y, a)),
        x.type.shape == y.type.shape,
    )
