"""Laws of transposes, reshapes, ramps and gathers, all of them right."""

import typing

from satura.language import (
    Axis,
    Constant,
    DType,
    Law,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    equates,
    gather,
    iota,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def moves_units(t: TensorType, p: Perm) -> bool:
    """Whether the axes that are not of extent 1 stay in order."""
    if len(p.order) != t.rank:
        return False
    kept = [axis for axis in p.order if t.shape[axis] != 1]
    return kept == sorted(kept)


@attribute_function
def permuted_shape(t: TensorType, p: Perm) -> Shape:
    """The shape of the transposed tensor."""
    return Shape(p.apply(t.shape))


@attribute_function
def place_of(a: Axis, p: Perm) -> Axis:
    """Where p moves the axis."""
    return Axis(p.order.index(a.index))


@attribute_function
def turns(s: Slices, t: TensorType) -> bool:
    """Whether s turns t round along all axes."""
    if not numbers(*t.shape, *s.starts, *s.sizes):
        return False
    return all(
        (start, size, step) == (n - 1, n, -1)
        for n, start, size, step in zip(t.shape, s.starts, s.sizes, s.steps)
    )


@attribute_function
def keeps(s: Shape, w: Shape, a: Axis) -> bool:
    """Whether the axis of the ramp is not repeated."""
    return s.dims[a.index] == w.dims[a.index]


@attribute_function
def number_at(s: Slices, a: Axis, t: DType, which: int) -> Scalar:
    """The first index (0) or the step (1) along the axis, as a number of the integers t."""
    refuse_unless(t.is_integer and not t.is_narrow, "no integers")
    value = (s.starts, s.steps)[which][a.index]
    refuse_unless(numbers(value) and abs(typing.cast(int, value)) < 2**40, "symbolic")
    return Scalar.of(value, t)


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


@attribute_function
def ones_of(s: Slices) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.sizes))


@attribute_function
def indexed_shape(x: TensorType, i: Shape, a: Axis) -> Shape:
    """x's shape with i in the place of the axis."""
    return Shape((*x.shape[: a.index], *i.dims, *x.shape[a.index + 1 :]))


@attribute_function
def is_ramp_over(s: Shape, x: TensorType, a: Axis) -> bool:
    """Whether s is the line of all places along the axis."""
    return s.dims == (x.shape[a.index],)


@attribute_function
def widens(i: TensorType, t: DType) -> bool:
    """Whether i are i32 and t is i64."""
    return i.dtype == DType.I32 and t == DType.I64


@attribute_function
def row(c: Scalar, x: TensorType, a: Axis) -> Slices:
    """The slice of one element at index c, which may count from the end."""
    n = typing.cast(int, x.shape[a.index])
    refuse_unless(numbers(n) and c.dtype.is_integer, "symbolic")
    at = int(c.value)
    refuse_unless(-n <= at < n, "outside")
    at = at + n if at < 0 else at
    starts = tuple(at if i == a.index else 0 for i in range(x.rank))
    sizes = tuple(1 if i == a.index else d for i, d in enumerate(x.shape))
    return Slices(starts, sizes, (1,) * x.rank)


@attribute_function
def without(x: TensorType, a: Axis) -> Shape:
    """x's shape without the axis."""
    return Shape((*x.shape[: a.index], *x.shape[a.index + 1 :]))


@attribute_function
def all_within(c: Constant, x: TensorType, a: Axis) -> bool:
    """Whether c has indices of x alone, none of which counts from the end."""
    n = x.shape[a.index]
    if not numbers(n) or not c.type.dtype.is_integer:
        return False
    return all(0 <= int(v) < typing.cast(int, n) for v in c.array.reshape(-1))


# The axes of extent more than 1 stay in order: row-major order is the same.
@rule
def transpose_among_units(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when only axes of extent 1 change places"""
    return rewrites(transpose(x, p), reshape(x, permuted_shape(x.type, p)), moves_units(x.type, p))


@rule
def transposed_iota(s: Shape, a: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, a), p) = iota(p(s), where p moves a)"""
    return rewrites(transpose(iota(s, a, t), p), iota(s.permuted(p), place_of(a, p), t))


@rule
def turn_twice(x: Tensor, s: Slices) -> Law:
    """x turned round along all axes, twice = x"""
    return rewrites(slice_(slice_(x, s), s), x, turns(s, x.type))


@rule
def repeated_iota(s: Shape, a: Axis, t: DType, w: Shape) -> Law:
    """broadcast(iota(s, a), w) = iota(w, a), when axis a is not repeated"""
    return rewrites(broadcast(iota(s, a, t), w), iota(w, a, t), keeps(s, w, a))


# Low bits of start + step * i are those of the low bits of its parts.
@rule
def slice_of_iota(shape: Shape, a: Axis, t: DType, s: Slices) -> Law:
    """slice(iota, s) = iota * step + start, for integers"""
    step = broadcast(reshape(scalar(number_at(s, a, t, 1)), ones_of(s)), Shape(s.sizes))
    start = broadcast(reshape(scalar(number_at(s, a, t, 0)), ones_of(s)), Shape(s.sizes))
    return rewrites(
        slice_(iota(shape, a, t), s),
        binary("add", binary("mul", iota(Shape(s.sizes), a, t), step), start),
    )


@rule
def gather_of_gather(x: Tensor, i: Tensor, j: Tensor, a: Axis) -> Law:
    """gather(gather(x, i, a), j, a) = gather(x, gather(i, j, 0), a), for i that are not 0-d"""
    return rewrites(
        gather(gather(x, i, a), j, a), gather(x, gather(i, j, Axis(0)), a), i.type.rank >= 1
    )


@rule
def gather_of_all(x: Tensor, s: Shape, t: DType, a: Axis) -> Law:
    """gather(x, iota, a) = x, when the ramp is as long as the axis"""
    return rewrites(gather(x, iota(s, Axis(0), t), a), x, is_ramp_over(s, x.type, a))


@rule
def narrow_indices(x: Tensor, i: Tensor, t: DType, a: Axis) -> Law:
    """gather(x, cast(i, i64), a) = gather(x, i, a), for i32"""
    return rewrites(gather(x, cast(i, t), a), gather(x, i, a), widens(i.type, t))


@rule
def gather_by_reshaped(x: Tensor, i: Tensor, s: Shape, a: Axis) -> Law:
    """gather(x, reshape(i, s), a) = reshape(gather(x, i, a), s in the place of a)"""
    return rewrites(
        gather(x, reshape(i, s), a), reshape(gather(x, i, a), indexed_shape(x.type, s, a))
    )


@rule
def gather_of_cast(x: Tensor, i: Tensor, a: Axis, t: DType) -> Law:
    """cast(gather(x, i, a), t) = gather(cast(x, t), i, a)"""
    return equates(cast(gather(x, i, a), t), gather(cast(x, t), i, a))


@rule
def gather_at_constant(x: Tensor, c: Scalar, a: Axis) -> Law:
    """gather(x, c, a) = reshape(slice(x, [c]), without a), for a 0-d constant, negative ones too"""
    return rewrites(gather(x, c, a), reshape(slice_(x, row(c, x.type, a)), without(x.type, a)))


@rule
def gather_of_first_part(x: Tensor, y: Tensor, c: Constant, a: Axis) -> Law:
    """gather(concat(x, y, a), c, a) = gather(x, c, a), when all c are places of x, from 0 on"""
    return rewrites(
        gather(concat(x, y, a), constant(c), a),
        gather(x, constant(c), a),
        all_within(c, x.type, a),
    )
