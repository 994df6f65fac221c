"""Laws of reductions, places and pools, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Constant,
    Count,
    DType,
    Law,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    constant,
    gather,
    iota,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)


# f32, x of shape [0], a = [0]: left max of nothing, -inf; right relu(-inf) = 0.
@rule
def relu_out_of_max(x: Tensor, a: Axes) -> Law:
    """max(relu(x), a) = relu(max(x, a))"""
    return rewrites(reduce("max", unary("relu", x), a), unary("relu", reduce("max", x, a)))


# i8, x = [-128, 5]: left the max of -128 -5 is at 1, right the min of x at 0. (u8: 0 is both.)
@rule
def place_of_negated(x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(-x) = argmin(x)"""
    return rewrites(
        arg_reduce("max", unary("neg", x), axis, last), arg_reduce("min", x, axis, last)
    )


@attribute_function
def is_reversed(s: Slices, x: TensorType, axis: Axis) -> bool:
    """Whether `s` reverses the axis, which has a known extent, and takes all others as they are."""
    for i, extent in enumerate(x.shape):
        back = i == axis.index
        if back and not isinstance(extent, int):
            return False
        start = extent - 1 if back else 0
        if (s.starts[i], s.sizes[i], s.steps[i]) != (start, extent, -1 if back else 1):
            return False
    return True


@attribute_function
def end(x: TensorType, axis: Axis) -> Scalar:
    """The last place of the axis."""
    refuse_unless(isinstance(x.shape[axis.index], int))
    return Scalar.of(x.shape[axis.index] - 1, DType.I64)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


# x f32 = [1, 1], last = Count(0): reversed it is the same, left 0; right 1 - 0 = 1: the first of
# equal ones is the last of the reversed.
@rule
def place_in_reversed(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg_reduce(reversed x) = n - 1 - arg_reduce(x)"""
    place = arg_reduce(f, x, axis, last)
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(reshape(scalar(end(x.type, axis)), units(x.type)), Shape(place.type.shape)),
            place,
        ),
        is_reversed(s, x.type, axis),
    )


# x f32 = [-0.0, 0.0]: they are equal, the first counts: left -0.0; the max is 0.0.
@rule
def largest_by_place(f: ReduceFn, x: Tensor, last: Count) -> Law:
    """x at its arg_reduce = reduce(x), for vectors"""
    return rewrites(
        gather(x, arg_reduce(f, x, Axis(0), last), Axis(0)),
        reduce(f, x, Axes((0,))),
        x.type.rank == 1,
    )


@attribute_function
def is_single(w: Window) -> bool:
    """Whether the window sees one element at a time."""
    return all(size == 1 for size in w.sizes) and not w.has_border


# x i32[3], window of size 1, stride 2: left x0 x2, right x0 x1 x2.
@rule
def pool_of_single_taps(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x) = x, on integers, for a window of one element and no border"""
    return rewrites(pool(f, x, w), x, x.type.dtype.is_integer, is_single(w))


@attribute_function
def is_plain(w: Window) -> bool:
    """Whether it moves by 1, without dilations and border."""
    return all(n == 1 for n in (*w.strides, *w.dilations)) and not w.has_border


@attribute_function
def joined(a: Window, b: Window) -> Window:
    """The window that sees what b sees of what a sees."""
    sizes = tuple(i + j - 1 for i, j in zip(a.sizes, b.sizes, strict=True))
    return Window(sizes, a.strides, a.dilations, a.lo, a.hi, a.fill)


# sum, i32, x = [1, 1, 1], two windows of size 2: left 2 + 2 = 4, right 3: the middle counts twice.
@rule
def merge_pools(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """pool(pool(x, a), b) = pool(x, a and b), on integers, where no order matters"""
    return rewrites(
        pool(f, pool(f, x, a), b),
        pool(f, x, joined(a, b)),
        x.type.dtype.is_integer,
        is_plain(a),
        is_plain(b),
    )


# f32, x = [5], window of size 1 with border (1:0) of -9: left -9 5, right relu(-9) = 0 and 5.
@rule
def relu_out_of_pool(x: Tensor, w: Window) -> Law:
    """pool max of relu(x) = relu(pool max of x)"""
    return rewrites(pool("max", unary("relu", x), w), unary("relu", pool("max", x, w)))


@attribute_function
def moved(p: Perm, axis: Axis) -> Axis:
    """The axis of the result."""
    refuse_unless(axis.index < len(p.order))
    return Axis(p.order[axis.index])


# iota([2, 3, 4], 0), p = [1, 2, 0]: the ramp is along axis 2 of the result, p[0] = 1: left counts
# to 1 along the last axis, right to 3 along the middle one.
@rule
def transpose_of_ramp(n: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(n, axis), p) = iota(p(n), p(axis))"""
    return rewrites(transpose(iota(n, axis, t), p), iota(n.permuted(p), moved(p, axis), t))


@attribute_function
def only_element(c: Constant) -> Scalar:
    """What all elements are equal to."""
    array = c.array
    refuse_unless(array.size > 1 and bool((array == array.flat[0]).all()), "they differ")
    return Scalar(c.type.dtype, array.reshape(-1)[:1].tobytes())


# f32, [0.0, -0.0]: they are equal, right has 0.0 twice.
@rule
def constant_as_broadcast(c: Constant) -> Law:
    """a constant of equal elements = broadcast(one of them)"""
    return rewrites(
        constant(c),
        broadcast(reshape(scalar(only_element(c)), units(c.type)), Shape(c.type.shape)),
    )
