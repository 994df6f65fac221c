"""Laws of maxima, sums, pools and places of extremes, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    concat,
    known_at_least,
    pool,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    unary,
)


def everywhere(c: Term | Scalar, o: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, o), s)


# i8 x = [127, 0], c = 1: left max(-128, 1) = 1; right 127 + 1 = -128.
@rule
def shift_after_maximum(f: ReduceFn, x: Tensor, c: Scalar, o: Shape, s: Shape, axes: Axes) -> Law:
    """f(x + c everywhere, axes) = f(x, axes) + c everywhere, for max and min of integers"""
    chosen = reduce(f, x, axes)
    return rewrites(
        reduce(f, binary("add", x, everywhere(c, o, s)), axes),
        binary("add", chosen, everywhere(c, o, Shape(chosen.type.shape))),
        (f == ReduceFn("max")) | (f == ReduceFn("min")),
        x.type.dtype.is_integer,
    )


@attribute_function
def is_positive(c: Scalar) -> bool:
    """Whether c > 0."""
    return bool(typing.cast(float, c.value) > 0)


# f32 x = [0, 1], c = inf: left max(NaN, inf) = NaN; right 1 * inf = inf.
@rule
def positive_scale_out_of_maximum(
    f: ReduceFn, x: Tensor, c: Scalar, o: Shape, s: Shape, axes: Axes
) -> Law:
    """f(x * c everywhere, axes) = f(x, axes) * c everywhere, for max and min of floats and c > 0"""
    chosen = reduce(f, x, axes)
    return rewrites(
        reduce(f, binary("mul", x, everywhere(c, o, s)), axes),
        binary("mul", chosen, everywhere(c, o, Shape(chosen.type.shape))),
        (f == ReduceFn("max")) | (f == ReduceFn("min")),
        x.type.dtype.is_float & is_positive(c),
    )


@attribute_function
def repeats(s: Shape, axes: Axes, dtype: DType) -> Scalar:
    """How many elements each sum has."""
    count = product(s.dims[a] for a in axes.indices)
    refuse_unless(isinstance(count, int) and count <= 1024, "an open or large size")
    return Scalar.of(count, dtype)


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


# f32 x = [1, 2], s = [2] (nothing is repeated), axes [0]: left 3, right 3 * 2 = 6.
@rule(reassociates=True)
def sum_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = broadcast(sum(x, axes)) * (number of elements along the axes),
    on f32"""
    left = reduce("sum", broadcast(x, s), axes)
    shape = Shape(left.type.shape)
    return rewrites(
        left,
        binary(
            "mul",
            broadcast(reduce("sum", x, axes), shape),
            broadcast(reshape(scalar(repeats(s, axes, x.type.dtype)), units(x.type)), shape),
        ),
        x.type.dtype == DType.F32,
    )


@attribute_function
def of_both(w: Window, v: Window) -> Window:
    """One window in place of two, where neither moves in steps nor has a border."""
    refuse_unless(not w.has_border and not v.has_border, "a border")
    refuse_unless(all(k == 1 for k in (*w.strides, *v.strides)), "strides")
    sizes = tuple(a + b - 1 for a, b in zip(w.sizes, v.sizes))
    return Window(sizes, w.strides, w.dilations, w.lo, w.hi, w.fill)


# max, x = [0,0,0,9], w 2 taps, v 2 taps with dilation 2: left max of 4 elements: [9];
# right 3 taps: [0, 9], of another shape.
@rule
def merge_max_pools(f: ReduceFn, x: Tensor, w: Window, v: Window) -> Law:
    """f(f(x, w), v) = f(x, w and v) for max and min, without strides and borders"""
    return rewrites(
        pool(f, pool(f, x, w), v),
        pool(f, x, of_both(w, v)),
        (f == ReduceFn("max")) | (f == ReduceFn("min")),
    )


# x f32[1] = [3], window of 1 tap, lo = 1, fill -5: left relu([-5, 3]) = [0, 3], right [-5, 3].
@rule
def relu_inside_max_pool(x: Tensor, w: Window) -> Law:
    """relu(max_pool(x, w)) = max_pool(relu(x), w)"""
    return rewrites(unary("relu", pool("max", x, w)), pool("max", unary("relu", x), w))


@attribute_function
def is_finite(c: Scalar) -> bool:
    """Whether it is an ordinary number."""
    return c.dtype.is_float and abs(float(c.value)) < 1000


# f32 x = [3], c = 2, window of 2 taps, lo = 1, fill 1: left 1 + 6 = 7, right (1 + 3) * 2 = 8.
@rule(reassociates=True)
def scale_out_of_sum_pool(x: Tensor, c: Scalar, o: Shape, s: Shape, w: Window) -> Law:
    """sum_pool(x * c everywhere, w) = sum_pool(x, w) * c everywhere, for ordinary c"""
    total = pool("sum", x, w)
    return rewrites(
        pool("sum", binary("mul", x, everywhere(c, o, s)), w),
        binary("mul", total, everywhere(c, o, Shape(total.type.shape))),
        is_finite(c),
    )


@attribute_function
def offset(t: TensorType, axis: Axis) -> Scalar:
    """The extent of the first part."""
    refuse_unless(isinstance(t.shape[axis.index], int), "an open size")
    return Scalar.of(t.shape[axis.index], DType.I64)


@attribute_function
def only(axis: Axis) -> Axes:
    """A set of one."""
    return Axes((axis.index,))


# f32 x = [1], y = [NaN], axis 0: left 1 (NaN wins); right 1 < NaN is false: arg of x: 0.
@rule
def arg_max_of_parts(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """arg_max(concat(x, y, axis), axis) = that of the part with the larger maximum, x first, when
    no part is empty"""
    of_y = arg_reduce("max", y, axis, Count(0))
    return rewrites(
        arg_reduce("max", concat(x, y, axis), axis, Count(0)),
        select(
            binary("lt", reduce("max", x, only(axis)), reduce("max", y, only(axis))),
            binary(
                "add",
                of_y,
                broadcast(
                    reshape(scalar(offset(x.type, axis)), units(x.type)), Shape(of_y.type.shape)
                ),
            ),
            arg_reduce("max", x, axis, Count(0)),
        ),
        known_at_least(x.type.shape[axis.index], 1) & known_at_least(y.type.shape[axis.index], 1),
        typing.cast(bool, x.type.dtype.is_float & ~x.type.dtype.is_narrow),
    )


# i8 x = [-128, 0]: neg = [-128, 0], left arg max = 1; right arg min = 0.
@rule
def arg_max_of_negated(x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_max(-x) = arg_min(x), for signed numbers"""
    return rewrites(
        arg_reduce("max", unary("neg", x), axis, last),
        arg_reduce("min", x, axis, last),
        x.type.dtype.is_signed,
    )


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s is all of t, backwards along `axis`."""
    for k, (start, size, step, n) in enumerate(zip(s.starts, s.sizes, s.steps, t.shape)):
        wanted = (n - 1, n, -1) if k == axis.index else (0, n, 1)
        if (start, size, step) != wanted:
            return False
    return True


@attribute_function
def last_index(t: TensorType, axis: Axis) -> Scalar:
    """n - 1."""
    refuse_unless(isinstance(t.shape[axis.index], int), "an open size")
    return Scalar.of(t.shape[axis.index] - 1, DType.I64)


# x = [1, 1], s = [1+2*-1], last = 0: left 0, right 1 - 0 = 1.
@rule
def arg_reduce_of_reversed(f: ReduceFn, x: Tensor, axis: Axis, s: Slices, last: Count) -> Law:
    """arg_f(reverse(x), axis) = n - 1 - arg_f(x, axis)"""
    found = arg_reduce(f, x, axis, last)
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(
                reshape(scalar(last_index(x.type, axis)), units(x.type)), Shape(found.type.shape)
            ),
            found,
        ),
        reverses(s, x.type, axis),
    )


# bool x = [1, 0], y = [0, 1], axes [0]: left all([1, 1]) = 1, right 0 or 0 = 0.
@rule
def all_of_alternatives(x: Tensor, y: Tensor, axes: Axes) -> Law:
    """all(x or y, axes) = all(x, axes) or all(y, axes), on bools"""
    return rewrites(
        reduce("min", binary("or", x, y), axes),
        binary("or", reduce("min", x, axes), reduce("min", y, axes)),
        x.type.dtype == DType.BOOL,
    )
