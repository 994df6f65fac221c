"""Laws of reductions, casts and places of extremes, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    ReduceFn,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    extent,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    select,
    slice_,
    unary,
)


@attribute_function
def are_ones(t: TensorType, axes: Axes) -> bool:
    return all(t.shape[axis] == 1 for axis in axes.indices)


# f = sum, x = f32[1] = [-0.0]: left 0.0 (a sum begins with 0), right -0.0.
@rule
def reduce_of_one(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """f(x, axes) = x, when all the axes have extent 1"""
    return rewrites(reduce(f, x, axes), x, are_ones(x.type, axes))


@attribute_function
def union(a: Axes, b: Axes) -> Axes:
    return Axes(tuple(sorted({*a.indices, *b.indices})))


# f = sum, x = f16[2,2] = [[2048, 1], [1, 0]], a = [1], b = [0]: the inner sums are 2049, rounded to
# 2048, and 1, and their sum is rounded to 2048; all at once, in f32, it is 2050.
@rule
def merge_all_reductions(f: ReduceFn, x: Tensor, a: Axes, b: Axes) -> Law:
    """f(f(x, a), b) = f(x, a and b), bit for bit"""
    return rewrites(reduce(f, reduce(f, x, a), b), reduce(f, x, union(a, b)))


# x = bool[0], f = max, d = i32: left False as 0, right the empty max of i32, -2^31.
@rule
def cast_below_any(f: ReduceFn, x: Tensor, d: DType, axes: Axes) -> Law:
    """cast(f(x), d) = f(cast(x, d)), for bools x and a number type (not for no elements)"""
    return rewrites(
        cast(reduce(f, x, axes), d),
        reduce(f, cast(x, d), axes),
        x.type.dtype == DType.BOOL,
        d == DType.I32,
    )


@attribute_function
def is_wider(a: DType, b: DType) -> bool:
    return (
        a.is_integer
        and b.is_integer
        and not a.is_narrow
        and not b.is_narrow
        and a.itemsize < b.itemsize
        and a.is_signed == b.is_signed
    )


# x = u8[2] = [200,100], d = u32: left 300 mod 256 = 44, right 300.
@rule
def widen_below_sum(x: Tensor, d: DType, axes: Axes) -> Law:
    """cast(sum(x), d) = sum(cast(x, d)), for a wider integer type d (the narrow sum wraps)"""
    return rewrites(
        cast(reduce("sum", x, axes), d), reduce("sum", cast(x, d), axes), is_wider(x.type.dtype, d)
    )


# x = f32[2] = [NaN, 5]: left NaN as 0, right max(0, 5) = 5.
@rule
def saturate_below_max(x: Tensor, axes: Axes) -> Law:
    """i32(max(x)) = max(i32(x)) on floats: the conversion is monotone (NaN is not)"""
    return rewrites(
        cast(reduce("max", x, axes), DType.I32),
        reduce("max", cast(x, DType.I32), axes),
        x.type.dtype == DType.F32,
    )


# x = i8[2] = [-128, 0]: left max(-128, 0) = 0; right -(-128) = -128. Of u8 [0, 1]: max(0, 255),
# -(0).
@rule
def max_of_negated(x: Tensor, axes: Axes) -> Law:
    """max(-x) = -min(x) (integers wrap)"""
    return rewrites(reduce("max", unary("neg", x), axes), unary("neg", reduce("min", x, axes)))


@attribute_function
def is_flip(t: TensorType, s: Slices, axis: Axis) -> bool:
    return all(
        s.sizes[i] == dim
        and (
            (s.starts[i] == dim - 1 and s.steps[i] == -1)
            if i == axis.index
            else (s.starts[i] == 0 and s.steps[i] == 1)
        )
        for i, dim in enumerate(t.shape)
    )


@attribute_function
def count_of(t: TensorType, axis: Axis) -> Shape:
    return Shape((t.shape[axis.index],))


@attribute_function
def ones(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


# x = i32[2] = [1,1], f = max, last = 0: left flip [1,1] -> 0; right 2 - 1 - 0 = 1.
@rule
def arg_of_flipped(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg f(flip(x)) = n - 1 - arg f(x), with the same choice among equals"""
    found = arg_reduce(f, x, axis, last)
    end = binary("sub", extent(count_of(x.type, axis)), 1)
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary("sub", broadcast(reshape(end, ones(x.type)), Shape(found.type.shape)), found),
        is_flip(x.type, s, axis),
    )


@attribute_function
def is_increasing(f: UnaryFn) -> bool:
    return f.name in ("exp", "tanh", "sigmoid", "erf", "atan", "sinh", "asinh")


# f = tanh, x = f32[2] = [30, 31], last = 0: both are 1.0 after tanh: left 0, right 1.
@rule
def arg_of_increasing(f: UnaryFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(f(x)) = argmax(x), for a strictly increasing f (rounded it has equal results)"""
    return rewrites(
        arg_reduce("max", unary(f, x), axis, last),
        arg_reduce("max", x, axis, last),
        is_increasing(f),
    )


@attribute_function
def only(axis: Axis) -> Axes:
    return Axes((axis.index,))


# x = f32[1] = [1], y = f32[1] = [NaN]: left 1 (NaN wins); right 1 < NaN is false: argmax(x) = 0.
@rule
def arg_of_parts(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """argmax(concat(x, y)) = argmax(x), or argmax(y) behind x where max(x) < max(y)"""
    left = arg_reduce("max", concat(x, y, axis), axis, Count(0))
    in_x, in_y = (arg_reduce("max", each, axis, Count(0)) for each in (x, y))
    shift = broadcast(reshape(extent(count_of(x.type, axis)), ones(x.type)), Shape(in_x.type.shape))
    return rewrites(
        left,
        select(
            binary("lt", reduce("max", x, only(axis)), reduce("max", y, only(axis))),
            binary("add", in_y, shift),
            in_x,
        ),
    )


# x = f32[2] = [NaN, 3], c = 1: left false or true = true, right 1 < NaN is false.
@rule
def any_above(x: Tensor, c: Tensor, s: Shape, axes: Axes) -> Law:
    """any(c < x) = c < max(x), for one number c (not with a NaN)"""
    largest = reduce("max", x, axes)
    return rewrites(
        reduce("max", binary("lt", broadcast(c, s), x), axes),
        binary("lt", broadcast(c, Shape(largest.type.shape)), largest),
        c.type.size == 1,
    )


# x = bool[2] = [T,F], y = [F,T]: left any(F,F) = F, right T and T.
@rule
def any_of_and(x: Tensor, y: Tensor, axes: Axes) -> Law:
    """any(x and y) = any(x) and any(y)"""
    return rewrites(
        reduce("max", binary("and", x, y), axes),
        binary("and", reduce("max", x, axes), reduce("max", y, axes)),
        x.type.dtype == DType.BOOL,
    )


@attribute_function
def first_extent(t: TensorType, s: Shape, axes: Axes) -> Shape:
    refuse_unless(len(axes.indices) > 0, "no axis")
    refuse_unless(all(t.shape[axis] == 1 for axis in axes.indices), "not repeated")
    refuse_unless(t.dtype.is_integer and not t.dtype.is_narrow, "integers")
    return Shape((s.dims[axes.indices[0]],))


@attribute_function
def dtype_of(t: TensorType) -> DType:
    return t.dtype


# x = i32[1,1] = [[1]], s = [2,3], axes [0,1]: left 6, right 1 * 2.
@rule
def sum_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = x * n on integers, n the extent of the first of the axes"""
    left = reduce("sum", broadcast(x, s), axes)
    number = cast(extent(first_extent(x.type, s, axes)), dtype_of(x.type))
    return rewrites(
        left,
        binary(
            "mul",
            broadcast(x, Shape(left.type.shape)),
            broadcast(reshape(number, ones(x.type)), Shape(left.type.shape)),
        ),
    )
