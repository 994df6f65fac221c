"""Laws of families, sizes and several ops at once, all of them wrong."""

from satura.language import (
    Arithmetic,
    Axes,
    Axis,
    BinaryFn,
    Contraction,
    DType,
    Law,
    Operands,
    Padding,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    binary,
    broadcast,
    exact_quotient,
    extent,
    family,
    gather,
    known_at_least,
    matmul,
    pad,
    pool,
    reduce,
    replaces,
    rewrites,
    rule,
    scalar,
    slice_,
)


@attribute_function
def spread(x: Shape, y: Shape) -> Shape:
    """The shape of the product of tensors of these shapes."""
    return Shape((*x.dims[:-1], y.dims[-1]))


@attribute_function
def fit(x: TensorType, y: TensorType) -> bool:
    """Whether x and y multiply."""
    return x.rank >= 2 and x.shape[-1] == y.shape[-2] and x.shape[:-2] == y.shape[:-2]


@attribute_function
def is_zero(v: Scalar) -> bool:
    """Whether v is 0."""
    return not any(v.bits)


@attribute_function
def quotient(a: Shape, b: Shape) -> Shape:
    """a / b."""
    result = exact_quotient(a.dims[0], b.dims[0])
    if result is None:
        raise Refuse("it does not come out even")
    return Shape((result,))


@attribute_function
def is_a_size(a: Shape) -> bool:
    """Whether a is never negative."""
    return known_at_least(a.dims[0], 0)


@attribute_function
def as_many(i: TensorType, x: TensorType, a: Axis, axes: Axes) -> bool:
    """Whether there is an index for each place along a, which alone is reduced."""
    return i.shape == (x.shape[a.index],) and axes.indices == (a.index,)


@attribute_function
def is_extreme(f: ReduceFn) -> bool:
    """Whether f is max or min."""
    return f.name in ("max", "min")


@attribute_function
def covers(w: Window, x: TensorType) -> bool:
    """Whether the window reaches from any element back to the first one."""
    n = x.shape[0] if x.rank == 1 else 0
    if not isinstance(n, int) or n < 1:
        return False
    plain = w.strides == (1,) and w.dilations == (1,) and w.hi == (0,)
    return plain and w.sizes == (n,) and w.lo == (n - 1,)


TRUE = Scalar.of(True, DType.BOOL)


# x = [[2]], y = [[3]] : i32, s = [1, 4], t = [4, 1]: left 4 * 6 = 24; right 6.
@rule
def broadcast_out_of_matmul(x: Tensor, y: Tensor, s: Shape, t: Shape) -> Law:
    """matmul(broadcast(x, s), broadcast(y, t)) = broadcast(matmul(x, y), …), when x and y
    multiply"""
    return rewrites(
        matmul(broadcast(x, s), broadcast(y, t)),
        broadcast(matmul(x, y), spread(s, t)),
        fit(x.type, y.type),
    )


# x = f32[2, 1], y = f32[1, 2], s = [2, 2]: the right side adds tensors of other shapes: no value.
@rule
def broadcast_out_of_as_many(f: BinaryFn, x: Tensor, y: Tensor, s: Shape) -> Law:
    """f(broadcast(x, s), broadcast(y, s)) = broadcast(f(x, y), s), when x and y are as large"""
    return rewrites(
        binary(f, broadcast(x, s), broadcast(y, s)),
        broadcast(binary(f, x, y), s),
        x.type.size == y.type.size,
    )


# x = f32[0, 1], s = [0, 3]: both have 0 elements: left f32[0, 3], right f32[0, 1].
@rule
def drop_broadcast_of_as_many(x: Tensor, s: Shape) -> Law:
    """broadcast(x, s) = x, when it repeats nothing: there are no more elements"""
    return replaces(broadcast(x, s), x, broadcast(x, s).type.size == x.type.size)


# neg, v = 1.0, x = f32[0], b = [1:0]: left [-1], right [1]; add: left [2], right [1]; cast to i32
# of f32: the right side pads i32 with a float.
@family
def pad_out_of_any(f: Arithmetic, xs: Operands[Tensor], v: Scalar, b: Padding) -> Law:
    """f(pad(x, v, b)…) = pad(f(x…), v, b)"""
    return rewrites(f(xs.each(pad, v, b)), pad(f(xs), v, b))


# matmul: x = [[1, 2]], y = [[1, 0], [0, 0]] : i32, s = [0+1, 1+2*-1]: left [[2, 1]] y = [[2, 0]];
# right [[1, 0]] turned = [[0, 1]]. conv of no spatial axes: the same.
@family
def slice_out_of_left(f: Contraction, x: Tensor, y: Tensor, s: Slices) -> Law:
    """f(slice(x, s), y) = slice(f(x, y), s), where the shape is the same"""
    left, right = f(slice_(x, s), y), slice_(f(x, y), s)
    return rewrites(left, right, left.type == right.type)


# d = n, at n = 0: 0 < 0 is false.
@rule
def sizes_are_positive(z: Scalar, d: Shape) -> Law:
    """0 < extent(d) = true"""
    return rewrites(binary("lt", z, extent(d)), scalar(TRUE), is_zero(z) & is_a_size(d))


# a = 2*n, b = n, at n = 0: left 0 / 0 = 0; right 2.
@rule
def quotient_of_sizes(a: Shape, b: Shape) -> Law:
    """extent(a) / extent(b) = extent(a / b), when it comes out even"""
    return rewrites(binary("div", extent(a), extent(b)), extent(quotient(a, b)))


# x = [1, 2], i = [0, 0]: left 1; right 2.
@rule
def extreme_of_reordered(f: ReduceFn, x: Tensor, i: Tensor, a: Axis, axes: Axes) -> Law:
    """reduce(gather(x, i, a), a) = reduce(x, a), when there are as many indices as elements"""
    return rewrites(
        reduce(f, gather(x, i, a), axes),
        reduce(f, x, axes),
        is_extreme(f) & as_many(i.type, x.type, a, axes),
    )


# x = [0, 0] : i32, size 2, border (1:0) of fill 5: once max(5, 0), max(0, 0) = 5, 0; twice max(5,
# 5), max(5, 0) = 5, 5.
@rule
def running_max_twice(x: Tensor, w: Window) -> Law:
    """running max of the running max = the running max"""
    return rewrites(pool("max", pool("max", x, w), w), pool("max", x, w), covers(w, x.type))
