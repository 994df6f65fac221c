"""Laws of contractions and sources, all of them right."""

import typing

from satura.language import (
    Axis,
    BinaryFn,
    Constant,
    DType,
    Groups,
    Law,
    Perm,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    constant,
    conv,
    extent,
    iota,
    matmul,
    product,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    transpose,
    unary,
)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


@attribute_function
def is_single(w: Window) -> bool:
    """Whether the window sees one element at a time."""
    return all(size == 1 for size in w.sizes) and not w.has_border


@attribute_function
def is_plain(w: Window) -> bool:
    """Whether it moves by 1, without dilations and border."""
    return all(n == 1 for n in (*w.strides, *w.dilations)) and not w.has_border


@attribute_function
def is_moderate(c: Scalar) -> bool:
    """Whether c is neither 0 nor so small or large that it decides what overflows."""
    return 1 / 256 <= abs(float(c.value)) <= 256


@rule(reassociates=True)
def scale_out_of_conv(
    x: Tensor, c: Scalar, u: Shape, s: Shape, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(x * c, w) = conv(x, w) * c, for a c of moderate size and windows without a border"""
    sums = conv(x, w, window, g)
    return rewrites(
        conv(binary("mul", x, broadcast(reshape(c, u), s)), w, window, g),
        binary("mul", sums, broadcast(reshape(c, u), Shape(sums.type.shape))),
        typing.cast(bool, ~window.has_border),
        is_moderate(c),
    )


@attribute_function
def is_last(axis: Axis, x: TensorType) -> bool:
    """Whether it is the last axis."""
    return axis.index == x.rank - 1


@rule(reassociates=True)
def split_groups(
    x: Tensor, y: Tensor, w: Tensor, v: Tensor, a: Axis, b: Axis, window: Window
) -> Law:
    """conv(concat(x, y), concat(w, v), two groups) = concat(conv(x, w), conv(y, v)), for equal
    halves"""
    return rewrites(
        conv(concat(x, y, a), concat(w, v, b), window, Groups(2)),
        concat(conv(x, w, window, Groups(1)), conv(y, v, window, Groups(1)), a),
        is_last(a, x.type),
        is_last(b, w.type),
        x.type.shape == y.type.shape,
        w.type.shape == v.type.shape,
    )


@attribute_function
def rows(x: TensorType) -> Shape:
    """All but the last axis as one."""
    refuse_unless(x.rank > 1)
    return Shape((product(x.shape[:-1]), x.shape[-1]))


@rule(reassociates=True)
def conv_as_matmul(x: Tensor, w: Tensor, window: Window) -> Law:
    """conv(x, w) = matmul(pixels of x, w), for windows of one element, no border and no strides"""
    images = conv(x, w, window, Groups(1))
    return rewrites(
        images,
        reshape(
            matmul(reshape(x, rows(x.type)), reshape(w, rows(w.type))), Shape(images.type.shape)
        ),
        is_single(window),
        is_plain(window),
    )


@rule
def signs_out_of_matmul(x: Tensor, y: Tensor) -> Law:
    """matmul(-x, -y) = matmul(x, y), to the bit: each product is the same"""
    return rewrites(matmul(unary("neg", x), unary("neg", y)), matmul(x, y))


@attribute_function
def are_queries(axis: Axis, q: TensorType) -> bool:
    """Whether the axis is that of the queries."""
    return axis.index == q.rank - 2


@rule(reassociates=True)
def join_queries(q: Tensor, r: Tensor, k: Tensor, b: Tensor, c: Tensor, v: Tensor, a: Axis) -> Law:
    """concat(attention(q, k, b, v), attention(r, k, c, v), queries) = attention(q and r, k, b and
    c, v)"""
    return rewrites(
        concat(attention(q, k, b, v), attention(r, k, c, v), a),
        attention(concat(q, r, a), k, concat(b, c, a), v),
        are_queries(a, q.type),
    )


@attribute_function
def moved(p: Perm, axis: Axis) -> Axis:
    """The axis of the result."""
    refuse_unless(axis.index < len(p.order))
    return Axis(p.inverse.order[axis.index])


@rule
def transpose_of_ramp(n: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(n, axis), p) = iota(p(n), p⁻¹(axis))"""
    return rewrites(transpose(iota(n, axis, t), p), iota(n.permuted(p), moved(p, axis), t))


@attribute_function
def of_extents(f: BinaryFn, a: Shape, b: Shape) -> Shape:
    """The sum or product of two sizes."""
    refuse_unless(f.name in ("add", "mul"))
    (i,), (j,) = a.dims, b.dims
    return Shape((i + j if f.name == "add" else i * j,))


@rule
def extent_of_both(f: BinaryFn, a: Shape, b: Shape) -> Law:
    """f(extent(a), extent(b)) = extent(f(a, b)), for sums and products"""
    return rewrites(binary(f, extent(a), extent(b)), extent(of_extents(f, a, b)))


@attribute_function
def only_element(c: Constant) -> Scalar:
    """What all elements are, to the bit."""
    size = c.type.dtype.itemsize
    content = c.array.tobytes()
    refuse_unless(c.size > 1 and content == content[:size] * c.size, "they differ")
    return Scalar(c.type.dtype, content[:size])


@rule
def constant_as_broadcast(c: Constant) -> Law:
    """a constant of elements with the same bits = broadcast(one of them)"""
    return rewrites(
        constant(c),
        broadcast(reshape(scalar(only_element(c)), units(c.type)), Shape(c.type.shape)),
    )


@attribute_function
def holds_everywhere(c: Constant) -> bool:
    """Whether it is true everywhere."""
    return c.type.dtype is DType.BOOL and bool(c.array.all())


@rule
def select_by_constant(c: Constant, x: Tensor, y: Tensor) -> Law:
    """select(true everywhere, x, y) = x"""
    return rewrites(select(constant(c), x, y), x, holds_everywhere(c))
