"""Laws of columns, gathers and places, all of them right."""

import typing

import numpy as np

from satura.language import (
    Approximate,
    Axes,
    Axis,
    Constant,
    Count,
    DType,
    Elementwise,
    Law,
    Operands,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    constant,
    family,
    gather,
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
)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


@rule
def compose_gathers(x: Tensor, i: Tensor, j: Tensor, axis: Axis) -> Law:
    """gather(gather(x, i, axis), j, axis) = gather(x, gather(i, j, 0), axis), when i has axes"""
    return rewrites(
        gather(gather(x, i, axis), j, axis),
        gather(x, gather(i, j, Axis(0)), axis),
        i.type.rank >= 1,
    )


@attribute_function
def along(s: Slices, axis: Axis) -> Slices:
    """`s` along one axis."""
    at = axis.index
    refuse_unless(at < len(s.sizes))
    return Slices((s.starts[at],), (s.sizes[at],), (s.steps[at],))


@attribute_function
def only_along(s: Slices, axis: Axis, x: TensorType) -> bool:
    """Whether `s` takes all other axes as they are."""
    if len(s.sizes) != x.rank:
        return False
    axes = zip(s.starts, s.sizes, s.steps, x.shape, strict=True)
    return all(
        i == axis.index or (start == 0 and step == 1 and size == n)
        for i, (start, size, step, n) in enumerate(axes)
    )


@rule
def slice_before_gather(x: Tensor, i: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(gather(x, i, axis), s) = gather(x, slice(i, s along the axis), axis), i a vector, s
    whole elsewhere"""
    return rewrites(
        slice_(gather(x, i, axis), s),
        gather(x, slice_(i, along(s, axis)), axis),
        i.type.rank == 1,
        only_along(s, axis, x.type),
    )


@family
def gather_after(f: Elementwise, xs: Operands[Varying], i: Tensor, axis: Axis) -> Law:
    """f(gather(x, i, axis)…) = gather(f(x…), i, axis), for operands of one shape"""
    return rewrites(f(xs.each(gather, i, axis)), gather(f(xs), i, axis), *xs.of_one_shape)


@attribute_function
def as_index(n: Shape, i: TensorType) -> Scalar:
    """The extent of a vector, as an index."""
    refuse_unless(len(n.dims) == 1 and isinstance(n.dims[0], int))
    refuse_unless(typing.cast(int, n.dims[0]) <= i.dtype.bounds[1], "no index reaches the end")
    return Scalar.of(n.dims[0], i.dtype)


@rule
def gather_of_ramp(n: Shape, t: DType, i: Tensor) -> Law:
    """gather(iota(n), i) = cast(i, t), where n is added to negative i, for vectors of integers"""
    everywhere = broadcast(reshape(scalar(as_index(n, i.type)), units(i.type)), Shape(i.type.shape))
    place = select(binary("lt", i, 0), binary("add", i, everywhere), i)
    return rewrites(
        gather(iota(n, Axis(0), t), i, Axis(0)),
        cast(place, t),
        typing.cast(bool, t.is_integer & ~t.is_narrow),
    )


@attribute_function
def of_operand(p: Perm, axis: Axis) -> Axis:
    """Which axis of the operand that is."""
    refuse_unless(axis.index < len(p.order))
    return Axis(p.order[axis.index])


@rule
def gather_before_transpose(x: Tensor, p: Perm, i: Tensor, axis: Axis) -> Law:
    """gather(transpose(x, p), i, axis) = transpose(gather(x, i, p(axis)), p), for vectors i"""
    return rewrites(
        gather(transpose(x, p), i, axis),
        transpose(gather(x, i, of_operand(p, axis)), p),
        i.type.rank == 1,
    )


@attribute_function
def counts(c: Constant, x: TensorType, axis: Axis) -> bool:
    """Whether c is 0, 1, 2 and so on, as far as the axis goes."""
    n = x.shape[axis.index]
    return isinstance(n, int) and c.type.shape == (n,) and np.array_equal(c.array, np.arange(n))


@rule
def gather_everything(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, 0 1 2 …, axis) = x, when the constant counts all places"""
    return rewrites(gather(x, constant(c), axis), x, counts(c, x.type, axis))


@rule
def choice_by_place(f: ReduceFn, x: Tensor, last: Count) -> Law:
    """x at its arg_reduce = reduce(x), for vectors of integers"""
    return rewrites(
        gather(x, arg_reduce(f, x, Axis(0), last), Axis(0)),
        reduce(f, x, Axes((0,))),
        x.type.rank == 1,
        x.type.dtype.is_integer,
    )


@attribute_function
def moderate_product(a: Scalar, b: Scalar) -> Scalar:
    """a * b, for f32 of moderate size, so that nothing overflows by far."""
    refuse_unless(a.dtype is DType.F32)
    sizes = [abs(float(c.value)) for c in (a, b)]
    refuse_unless(all(1 / 64 <= size <= 64 for size in sizes), "too small or too large")
    return Scalar.of(float(a.value) * float(b.value), a.dtype)


@rule(reassociates=True)
def compose_divisions(x: Approximate, a: Scalar, b: Scalar, u: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), up to rounding, on f32 that are rounded already"""
    return rewrites(
        binary("div", binary("div", x, broadcast(reshape(a, u), s)), broadcast(reshape(b, u), s)),
        binary("div", x, broadcast(reshape(scalar(moderate_product(a, b)), u), s)),
    )
