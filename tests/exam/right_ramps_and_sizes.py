"""Laws of ramps, sizes and attributes that are computed, all of them right."""

from __future__ import annotations

import typing

from satura.language import (
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
    exact_quotient,
    extent,
    iota,
    known_at_least,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
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
    """Where the axis is after a transpose."""
    return Axis(p.inverse.order[axis.index])


@rule
def transpose_of_iota(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), p⁻¹[axis])"""
    return rewrites(transpose(iota(s, axis, t), p), iota(s.permuted(p), moved(axis, p), t))


@attribute_function
def start_of(c: Slices, axis: Axis, t: TensorType) -> Scalar:
    refuse_unless(t.dtype.is_integer and not t.dtype.is_narrow, "no integers to compute with")
    return number(c.starts[axis.index], t)


@attribute_function
def step_of(c: Slices, axis: Axis, t: TensorType) -> Scalar:
    return number(c.steps[axis.index], t)


@rule
def slice_of_iota(s: Shape, axis: Axis, t: DType, c: Slices) -> Law:
    """slice(iota(s, axis), c) = start + step * iota(sizes of c, axis), on integers"""
    part = slice_(iota(s, axis, t), c)
    return rewrites(
        part,
        binary(
            "add",
            everywhere(start_of(c, axis, part.type), part.type),
            binary(
                "mul",
                iota(Shape(c.sizes), axis, t),
                everywhere(step_of(c, axis, part.type), part.type),
            ),
        ),
    )


@attribute_function
def columns(s: Shape, t: TensorType) -> Scalar:
    refuse_unless(len(s.dims) == 2, "no matrix")
    refuse_unless(t.dtype.is_integer and not t.dtype.is_narrow, "no integers to compute with")
    return number(s.dims[1], t)


@attribute_function
def is_line(r: Shape) -> bool:
    return len(r.dims) == 1


@rule
def rows_of_iota(r: Shape, t: DType, s: Shape) -> Law:
    """reshape(iota([n * m]), [n, m]) = iota along 0 * m + iota along 1, on integers that hold m"""
    ramp = reshape(iota(r, Axis(0), t), s)
    return rewrites(
        ramp,
        binary(
            "add",
            binary("mul", iota(s, Axis(0), t), everywhere(columns(s, ramp.type), ramp.type)),
            iota(s, Axis(1), t),
        ),
        is_line(r),
    )


@attribute_function
def fits(s: Shape, axis: Axis, most: int) -> bool:
    n = s.dims[axis.index]
    return isinstance(n, int) and n <= most


@attribute_function
def computed(t: DType) -> bool:
    return (t.is_integer and not t.is_narrow) or t in (DType.F32, DType.F64)


@rule
def ramp_of_bytes(s: Shape, axis: Axis, t: DType) -> Law:
    """cast(iota(s, axis, u8), t) = iota(s, axis, t), for at most 256 numbers"""
    return rewrites(
        cast(iota(s, axis, DType.U8), t),
        iota(s, axis, t),
        fits(s, axis, 256) & computed(t),
    )


@rule
def size_through_wide_integers(d: Shape, t: DType) -> Law:
    """cast(cast(extent(d), t), i64) = extent(d), for integer types t of 64 bits"""
    return rewrites(
        cast(cast(extent(d), t), DType.I64), extent(d), t.is_integer & (t.itemsize == 8)
    )


@attribute_function
def sum_of_sizes(a: Shape, b: Shape) -> Shape:
    return Shape((a.dims[0] + b.dims[0],))


@rule
def sizes_add_up(a: Shape, b: Shape) -> Law:
    """extent(a) + extent(b) = extent(a + b)"""
    return rewrites(binary("add", extent(a), extent(b)), extent(sum_of_sizes(a, b)))


@attribute_function
def takes_every_other(s: Slices, t: TensorType) -> bool:
    """Whether s takes the even places of a list of even length."""
    if t.rank != 1:
        return False
    half = exact_quotient(t.shape[0], 2)
    return half is not None and s == Slices((0,), (half,), (2,))


@attribute_function
def pairs(t: TensorType) -> Shape:
    refuse_unless(t.rank == 1, "more axes")
    half = exact_quotient(t.shape[0], 2)
    refuse_unless(half is not None, "an odd length")
    return Shape((typing.cast(Dim, half), 2))


@attribute_function
def first_of_pairs(t: TensorType) -> Slices:
    refuse_unless(t.rank == 1, "more axes")
    half = exact_quotient(t.shape[0], 2)
    refuse_unless(half is not None, "an odd length")
    return Slices((0, 0), (typing.cast(Dim, half), 1), (1, 1))


@rule
def every_other_by_pairs(x: Tensor, s: Slices) -> Law:
    """x[0::2] = the first column of x as pairs, when x has an even length"""
    return rewrites(
        slice_(x, s),
        reshape(slice_(reshape(x, pairs(x.type)), first_of_pairs(x.type)), Shape(s.sizes)),
        takes_every_other(s, x.type),
    )


@attribute_function
def other(last: Count) -> Count:
    return Count(1 - last.value)


@attribute_function
def last_place(t: TensorType, axis: Axis) -> Scalar:
    refuse_unless(isinstance(t.shape[axis.index], int), "an open size")
    return Scalar.of(t.shape[axis.index] - 1, DType.I64)


@attribute_function
def has_elements(t: TensorType, axis: Axis) -> bool:
    return known_at_least(t.shape[axis.index], 1)


@rule
def place_of_extremum_backwards(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg(x backwards, axis, first) = n - 1 - arg(x, axis, last), and the other way round"""
    found = arg_reduce(f, x, axis, other(last))
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary("sub", everywhere(last_place(x.type, axis), found.type), found),
        reverses(s, x.type, axis),
        has_elements(x.type, axis),
    )
