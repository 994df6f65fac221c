"""Laws of sizes, places and counts, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Count,
    Dim,
    DType,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    exact_quotient,
    extent,
    has_value,
    iota,
    known_at_least,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
)


@attribute_function
def joint(f: BinaryFn, a: Shape, b: Shape) -> Shape:
    """One size that is f of two."""
    refuse_unless(f.name in ("add", "mul"))
    both = a.dims[0] + b.dims[0] if f.name == "add" else a.dims[0] * b.dims[0]
    return Shape((both,))


@rule
def function_of_sizes(f: BinaryFn, a: Shape, b: Shape) -> Law:
    """f(extent(a), extent(b)) = extent(f(a, b)) for sums and products"""
    return rewrites(binary(f, extent(a), extent(b)), extent(joint(f, a, b)))


@attribute_function
def even_share(a: Shape, b: Shape) -> Shape:
    refuse_unless(known_at_least(b.dims[0], 1))
    quotient = exact_quotient(a.dims[0], b.dims[0])
    refuse_unless(quotient is not None)
    return Shape((typing.cast(Dim, quotient),))


@rule
def even_quotient_of_sizes(a: Shape, b: Shape) -> Law:
    """extent(a) / extent(b) = extent(a / b), when it comes out even and b is never 0"""
    return rewrites(binary("div", extent(a), extent(b)), extent(even_share(a, b)))


@attribute_function
def chooses(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def only_units(axes: Axes, t: TensorType) -> Axes:
    refuse_unless(all(t.shape[i] == 1 for i in axes.indices), "an axis is longer")
    return axes


@rule
def reduce_of_units(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """reduce(f, x, axes) = x for max and min, when the axes have extent 1"""
    return rewrites(reduce(f, x, axes), x, chooses(f), has_value(only_units(axes, x.type)))


@attribute_function
def copies(s: Shape, axes: Axes, x: TensorType) -> Scalar:
    """How often each element is summed, in x's type, in which it wraps."""
    refuse_unless(x.dtype.is_integer and not x.dtype.is_narrow)
    count = typing.cast(int, product(s.dims[i] for i in axes.indices if x.shape[i] == 1))
    refuse_unless(isinstance(count, int))
    bits = 8 * x.dtype.itemsize
    count %= 1 << bits
    if x.dtype.is_signed and count >> (bits - 1):
        count -= 1 << bits
    return Scalar.of(count, x.dtype)


@attribute_function
def shrunk(s: Shape, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else n for i, n in enumerate(s.dims)))


@attribute_function
def units(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@rule
def sum_of_copies(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = broadcast(sum(x, axes)) * (how often x is repeated along them),
    on integers"""
    once = broadcast(reduce("sum", x, axes), shrunk(s, axes))
    count = reshape(scalar(copies(s, axes, x.type)), units(once.type))
    return rewrites(
        reduce("sum", broadcast(x, s), axes),
        binary("mul", once, broadcast(count, Shape(once.type.shape))),
    )


@rule
def concat_with_empty(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y, axis) = x, when y has extent 0 along the axis"""
    return rewrites(concat(x, y, axis), x, y.type.shape[axis.index] == 0)


@attribute_function
def no_place(t: TensorType) -> Scalar:
    return Scalar.of(0, DType.I64)


@attribute_function
def is_unit(axis: Axis, t: TensorType) -> bool:
    return t.shape[axis.index] == 1


@rule
def place_of_only_one(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(f, x, axis) = 0, when the axis has extent 1"""
    found = arg_reduce(f, x, axis, last)
    return rewrites(
        found,
        broadcast(reshape(scalar(no_place(x.type)), units(x.type)), Shape(found.type.shape)),
        is_unit(axis, x.type),
    )


@attribute_function
def is_above_all(n: Scalar, s: Shape, axis: Axis) -> bool:
    """Whether all places along the axis are less than n, in n's own integers."""
    extent_ = s.dims[axis.index]
    whole = n.dtype.is_integer and not n.dtype.is_narrow and isinstance(extent_, int)
    return whole and int(n.value) >= typing.cast(int, extent_)


@attribute_function
def true_like(n: Scalar) -> Scalar:
    return Scalar.of(True, DType.BOOL)


@rule
def mask_of_all_places(s: Shape, axis: Axis, t: DType, n: Scalar, o: Shape) -> Law:
    """(iota(s, axis) < n) = true, when the axis has no more than n elements"""
    return rewrites(
        binary("lt", iota(s, axis, t), broadcast(reshape(n, o), s)),
        broadcast(reshape(scalar(true_like(n)), o), s),
        is_above_all(n, s, axis),
    )


@attribute_function
def part(x: TensorType, y: TensorType, axis: Axis, s: Slices, second: Count) -> Slices:
    """What s takes of x or y, where it goes on from one to the other in steps of 1."""
    at = axis.index
    dims = (s.starts[at], s.sizes[at], x.shape[at], y.shape[at])
    start, size, n, m = typing.cast(tuple[int, int, int, int], dims)
    refuse_unless(all(isinstance(value, int) for value in (start, size, n, m)))
    refuse_unless(s.steps[at] == 1 and start < n < start + size)
    begin, count = (0, start + size - n) if second.value else (start, n - start)
    return Slices(
        (*s.starts[:at], begin, *s.starts[at + 1 :]),
        (*s.sizes[:at], count, *s.sizes[at + 1 :]),
        s.steps,
    )


@rule
def slice_across_concat(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y, axis), s) = concat(slice(x, end), slice(y, beginning), axis), when s
    begins in x and ends in y"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(
            slice_(x, part(x.type, y.type, axis, s, Count(0))),
            slice_(y, part(x.type, y.type, axis, s, Count(1))),
            axis,
        ),
    )


@attribute_function
def holds_places(s: Shape, axis: Axis, t: DType, u: DType) -> bool:
    """Whether both types are integers that hold all places along the axis."""
    if not (t.is_integer and u.is_integer) or t.is_narrow or u.is_narrow:
        return False
    extent_ = s.dims[axis.index]
    return isinstance(extent_, int) and extent_ - 1 <= min(t.bounds[1], u.bounds[1])


@rule
def places_in_other_integers(s: Shape, axis: Axis, t: DType, u: DType) -> Law:
    """cast(iota(s, axis, t), u) = iota(s, axis, u) for integers that hold all places"""
    return rewrites(cast(iota(s, axis, t), u), iota(s, axis, u), holds_places(s, axis, t, u))
