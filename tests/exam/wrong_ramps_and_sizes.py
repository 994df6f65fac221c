"""Laws of ramps, sizes and attributes that are computed, all of them wrong."""

from __future__ import annotations

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    Dim,
    DType,
    Law,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    extent,
    iota,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    transpose,
    unary,
)


@attribute_function
def ones(t: TensorType) -> Shape:
    """A shape of as many 1 as t has axes."""
    return Shape((1,) * t.rank)


@attribute_function
def full(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


@attribute_function
def number(value: Dim, t: TensorType) -> Scalar:
    """`value` as an element of t's type, where it is one."""
    refuse_unless(isinstance(value, int), "the number is not known")
    if t.dtype.is_integer:
        low, high = t.dtype.bounds
        refuse_unless(low <= typing.cast(int, value) <= high, "the type does not hold the number")
    return Scalar.of(value, t.dtype)


def everywhere(value: Scalar, like: TensorType) -> Term:
    """The scalar `value` repeated to the type `like`."""
    return broadcast(reshape(scalar(value), ones(like)), full(like))


@attribute_function
def only_axis(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s takes everything, in order, on all axes but `axis`."""
    return all(
        i == axis.index or (s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1)
        for i in range(t.rank)
    )


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s turns t around along `axis` and does nothing else."""
    at = axis.index
    if at >= t.rank:
        return False
    n = t.shape[at]
    return len(s.sizes) == t.rank and (
        only_axis(s, t, axis) and s.starts[at] == n - 1 and s.sizes[at] == n and s.steps[at] == -1
    )


@attribute_function
def moved(axis: Axis, p: Perm) -> Axis:
    return Axis(p.order[axis.index])


# shape [2, 3, 4], axis 0, p = [1, 2, 0]: transposed to [3, 4, 2], axis 0 is now axis 2 = p⁻¹[0];
# p[0] = 1.
@rule
def transpose_of_iota(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), p[axis])"""
    return rewrites(transpose(iota(s, axis, t), p), iota(s.permuted(p), moved(axis, p), t))


# n = 3: backwards it is 2, 1, 0; 3 - iota is 3, 2, 1.
@rule
def iota_backwards(s: Shape, axis: Axis, t: DType, c: Slices) -> Law:
    """iota backwards = n - iota"""
    ramp = iota(s, axis, t)
    return rewrites(
        slice_(ramp, c),
        binary("sub", everywhere(number(s.dims[axis.index], ramp.type), ramp.type), ramp),
        reverses(c, ramp.type, axis),
    )


@attribute_function
def is_matrix(s: Shape) -> bool:
    return len(s.dims) == 2


@attribute_function
def extent_of(s: Shape, i: int, t: TensorType) -> Scalar:
    refuse_unless(len(s.dims) == 2 and t.dtype.is_integer, "no matrix of integers")
    return number(s.dims[i], t)


# r = [6], s = [2, 3]: element [0, 1] is 1 on the left; the right side is 0 * 2 + 1 = 1, but [1, 0]
# is 3 on the left and 1 * 2 + 0 = 2 on the right. It has to be the other extent; for square shapes
# both agree.
@rule
def rows_of_iota(r: Shape, t: DType, s: Shape) -> Law:
    """reshape(iota([n * m]), [n, m]) = iota along 0 * n + iota along 1, on integers"""
    ramp = reshape(iota(r, Axis(0), t), s)
    return rewrites(
        ramp,
        binary(
            "add",
            binary("mul", iota(s, Axis(0), t), everywhere(extent_of(s, 0, ramp.type), ramp.type)),
            iota(s, Axis(1), t),
        ),
        is_matrix(s),
    )


@attribute_function
def fits_a_byte(s: Shape, axis: Axis) -> bool:
    n = s.dims[axis.index]
    return isinstance(n, int) and n <= 256


# s = [200], t = i32: an i8 holds 0…127; element 128 is -128 on the left. The bound is that of u8.
@rule
def ramp_of_bytes(s: Shape, axis: Axis, t: DType) -> Law:
    """cast(iota(s, axis, i8), t) = iota(s, axis, t), when the axis is not too long"""
    return rewrites(cast(iota(s, axis, DType.I8), t), iota(s, axis, t), fits_a_byte(s, axis))


# d = 300, t = u8: the low bits of 300 are 44.
@rule
def size_through_integers(d: Shape, t: DType) -> Law:
    """cast(cast(extent(d), t), i64) = extent(d), for all integer types t: sizes are not negative"""
    return rewrites(cast(cast(extent(d), t), DType.I64), extent(d), t.is_integer)


@attribute_function
def sum_of_ramp(s: Shape) -> Shape:
    refuse_unless(len(s.dims) == 1, "more axes")
    n = s.dims[0]
    return Shape((n * (n + 1) // 2,))


# s = [2]: 0 + 1 = 1; the right side is 2 * 3 / 2 = 3.
@rule
def sum_of_iota(s: Shape, r: Shape) -> Law:
    """sum of iota(n) = n * (n + 1) / 2"""
    return rewrites(
        reshape(reduce("sum", iota(s, Axis(0), DType.I64), Axes((0,))), r),
        reshape(extent(sum_of_ramp(s)), r),
    )


@attribute_function
def pairs(t: TensorType) -> Shape:
    refuse_unless(t.rank == 1, "more axes")
    return Shape((t.shape[0] // 2, 2))


@attribute_function
def first_of_pairs(t: TensorType) -> Slices:
    refuse_unless(t.rank == 1, "more axes")
    return Slices((0, 0), (t.shape[0] // 2, 1), (1, 1))


@attribute_function
def takes_every_other(s: Slices, t: TensorType) -> bool:
    return t.rank == 1 and s.starts == (0,) and s.steps == (2,) and s.sizes[0] == t.shape[0] // 2


# x = f32[3], s = [0+1*2]: 3 // 2 = 1, but f32[3] does not reshape to [1, 2]. The extent has to be
# even.
@rule
def every_other_by_pairs(x: Tensor, s: Slices) -> Law:
    """x[0::2] = the first column of x as pairs"""
    return rewrites(
        slice_(x, s),
        reshape(slice_(reshape(x, pairs(x.type)), first_of_pairs(x.type)), Shape(s.sizes)),
        takes_every_other(s, x.type),
    )


# a = [n], b = [m], x = 1.0, z = 2.0, n = m = 3 in the call: n and m are different expressions, but
# the left side takes x.
@rule
def sizes_with_other_names(a: Shape, b: Shape, z: Scalar, x: Tensor) -> Law:
    """select(n == m, x, y) = y, when n and m are different sizes"""
    return rewrites(
        select(binary("eq", extent(a), extent(b)), x, z), z, a.dims != b.dims, x.type.rank == 0
    )


# s = [2, 2], axes 0 and 1: iota along 0 = [[0, 0], [1, 1]], along 1 = [[0, 1], [0, 1]]. At [0, 0]
# both are 0, so not(0 < 0); the rule says that the upper triangle without its diagonal is not(j <
# i), which is the one with it.
@rule
def triangle(s: Shape, a: Axis, b: Axis, t: DType) -> Law:
    """iota along a < iota along b = not(iota along b < iota along a)"""
    return rewrites(
        binary("lt", iota(s, a, t), iota(s, b, t)),
        unary("not", binary("lt", iota(s, b, t), iota(s, a, t))),
        a.index != b.index,
    )


@attribute_function
def last_place(t: TensorType, axis: Axis) -> Scalar:
    refuse_unless(isinstance(t.shape[axis.index], int), "an open size")
    return Scalar.of(t.shape[axis.index] - 1, DType.I64)


# x = f32[3] = 5, 7, 7: max at 1, the first; backwards 7, 7, 5 the first is at 0, so 3 - 1 - 0 = 2.
# The last one must count.
@rule
def place_of_extremum_backwards(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg(x backwards, axis) = n - 1 - arg(x, axis)"""
    found = arg_reduce(f, x, axis, last)
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary("sub", everywhere(last_place(x.type, axis), found.type), found),
        reverses(s, x.type, axis),
    )
