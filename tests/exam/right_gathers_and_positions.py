"""Laws of gathers, positions and sizes, all of them right."""

import typing

from satura.language import (
    Axis,
    Constant,
    Dim,
    DType,
    Law,
    Perm,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    binary,
    broadcast,
    concat,
    constant,
    exact_quotient,
    extent,
    gather,
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


def everywhere(c: Term | Scalar, o: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, o), s)


@rule
def gather_of_gather(x: Tensor, i: Tensor, j: Tensor, axis: Axis) -> Law:
    """gather(gather(x, i, axis), j, axis) = gather(x, gather(i, j, 0), axis), for i of rank 1"""
    return rewrites(
        gather(gather(x, i, axis), j, axis),
        gather(x, gather(i, j, Axis(0)), axis),
        i.type.rank == 1,
    )


@attribute_function
def all_in(i: Constant, n: Dim) -> bool:
    """Whether all indices count from the front, and lie below n."""
    refuse_unless(isinstance(n, int), "an open size")
    return all(0 <= int(each) < typing.cast(int, n) for each in i.array.flat)


@rule
def gather_from_front(x: Tensor, y: Tensor, i: Constant, axis: Axis) -> Law:
    """gather(concat(x, y, axis), i, axis) = gather(x, i, axis), for constants i from 0 to below x's
    extent"""
    return rewrites(
        gather(concat(x, y, axis), constant(i), axis),
        gather(x, constant(i), axis),
        all_in(i, x.type.shape[axis.index]),
    )


@rule
def gather_of_all_positions(x: Tensor, s: Shape, t: DType, axis: Axis) -> Law:
    """gather(x, iota(s), axis) = x, for all positions of the axis in one row"""
    return rewrites(
        gather(x, iota(s, Axis(0), t), axis),
        x,
        s == Shape((x.type.shape[axis.index],)),
    )


@attribute_function
def row_of(x: TensorType, axis: Axis, c: Scalar, s: Shape) -> Slices:
    """Elements from c on."""
    refuse_unless(len(s.dims) == 1 and isinstance(s.dims[0], int), "no row")
    n, at, k = s.dims[0], int(c.value), axis.index
    refuse_unless(
        isinstance(x.shape[k], int)
        and at >= 0
        and typing.cast(int, at + n) <= typing.cast(int, x.shape[k]),
        "outside",
    )
    starts = tuple(at if i == k else 0 for i in range(x.rank))
    sizes = tuple(n if i == k else m for i, m in enumerate(x.shape))
    return Slices(starts, sizes, (1,) * x.rank)


@rule
def gather_of_a_range(x: Tensor, s: Shape, t: DType, c: Scalar, o: Shape, axis: Axis) -> Law:
    """gather(x, iota([n]) + c everywhere, axis) = slice(x, n from c on), for 0 <= c and c + n
    within x"""
    return rewrites(
        gather(x, binary("add", iota(s, Axis(0), t), everywhere(c, o, s)), axis),
        slice_(x, row_of(x.type, axis, c, s)),
    )


@attribute_function
def moved_to(axis: Axis, p: Perm) -> Axis:
    """Where p moves the axis."""
    return Axis(p.inverse.order[axis.index])


@rule
def transposed_positions(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), p⁻¹(axis))"""
    return rewrites(transpose(iota(s, axis, t), p), iota(s.permuted(p), moved_to(axis, p), t))


@attribute_function
def counting_axis(s: Shape, axis: Axis, t: Shape) -> Axis:
    """The axis of t that has all elements, as `axis` of s has."""
    n = s.dims[axis.index]
    refuse_unless(all(m == 1 for i, m in enumerate(s.dims) if i != axis.index), "other axes")
    for k, m in enumerate(t.dims):
        if m == n and all(other == 1 for i, other in enumerate(t.dims) if i != k):
            return Axis(k)
    raise Refuse("no axis has all elements")


@rule
def reshaped_positions(s: Shape, axis: Axis, d: DType, t: Shape) -> Law:
    """reshape(iota(s, axis), t) = iota(t, axis'), when one axis of each has all elements"""
    return rewrites(reshape(iota(s, axis, d), t), iota(t, counting_axis(s, axis, t), d))


@rule
def repeated_positions(s: Shape, axis: Axis, d: DType, t: Shape) -> Law:
    """broadcast(iota(s, axis), t) = iota(t, axis), when the counting axis is not repeated"""
    return rewrites(
        broadcast(iota(s, axis, d), t), iota(t, axis, d), s.dims[axis.index] == t.dims[axis.index]
    )


@attribute_function
def first(s: Slices, axis: Axis, t: DType) -> Scalar:
    """The first position, of a slice in steps of 1."""
    refuse_unless(isinstance(s.starts[axis.index], int), "open")
    refuse_unless(s.steps[axis.index] == 1, "other steps")
    refuse_unless(t in (DType.I32, DType.I64), "no i32 or i64")
    refuse_unless(0 <= typing.cast(int, s.starts[axis.index]) < 2**31, "far away")
    return Scalar.of(s.starts[axis.index], t)


@attribute_function
def units_of(s: Slices) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.sizes))


@rule
def slice_of_integer_positions(s: Shape, axis: Axis, t: DType, e: Slices) -> Law:
    """slice(iota(s, axis), e) = iota(sizes of e, axis) + start of e, on i32 and i64 in steps of
    1"""
    return rewrites(
        slice_(iota(s, axis, t), e),
        binary(
            "add",
            iota(Shape(e.sizes), axis, t),
            everywhere(scalar(first(e, axis, t)), units_of(e), Shape(e.sizes)),
        ),
    )


@attribute_function
def sum_of(a: Shape, b: Shape) -> Shape:
    """The size that is the sum of two."""
    return Shape((a.dims[0] + b.dims[0],))


@rule
def add_sizes(a: Shape, b: Shape) -> Law:
    """extent(a) + extent(b) = extent(a + b)"""
    return rewrites(binary("add", extent(a), extent(b)), extent(sum_of(a, b)))


@attribute_function
def quotient(a: Shape, b: Shape) -> Shape:
    """a / b, where that comes out even."""
    refuse_unless(known_at_least(b.dims[0], 1), "b may be 0")
    found = exact_quotient(a.dims[0], b.dims[0])
    refuse_unless(found is not None, "uneven")
    return Shape((typing.cast(Dim, found),))


@rule
def divide_sizes(a: Shape, b: Shape) -> Law:
    """extent(a) / extent(b) = extent(a / b), where that is even for all sizes, and b is never 0"""
    return rewrites(binary("div", extent(a), extent(b)), extent(quotient(a, b)))
