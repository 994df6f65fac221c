"""Laws of places of extremes, products over axes and sizes, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Untransposed,
    arg_reduce,
    attribute_function,
    binary,
    both,
    broadcast,
    cast,
    exact_quotient,
    extent,
    iota,
    pad,
    reduce,
    refuse_unless,
    replaces,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """min for max, max for min."""
    refuse_unless(f.name in ("max", "min"))
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def is_extreme(f: ReduceFn) -> bool:
    """Whether f is max or min."""
    return f.name in ("max", "min")


@attribute_function
def is_plain_float(t: TensorType) -> bool:
    """Whether arithmetic knows the floats of t."""
    return t.dtype.is_float and not t.dtype.is_narrow


@attribute_function
def toggled(last: Count) -> Count:
    """The first one for the last one, and the other way round."""
    return Count(1 - last.value)


@attribute_function
def last_place(x: TensorType, s: Slices, a: Axis) -> Scalar:
    """The last index along the axis, which s turns round and leaves the others."""
    refuse_unless(numbers(*x.shape, *s.starts, *s.sizes), "symbolic")
    for i, (n, start, size, step) in enumerate(zip(x.shape, s.starts, s.sizes, s.steps)):
        turned = (start, step) == ((n - 1, -1) if i == a.index else (0, 1))
        refuse_unless(turned and size == n and typing.cast(int, n) > 0, "it is not turned round")
    return Scalar.of(x.shape[a.index] - 1, DType.I64)


@attribute_function
def unit_shape(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


@attribute_function
def is_unit(t: TensorType, a: Axis) -> bool:
    """Whether the axis has extent 1."""
    return t.shape[a.index] == 1


@attribute_function
def holds_all(x: TensorType, t: DType) -> bool:
    """Whether t has all numbers of x, in the same order."""
    wider = {
        DType.I8: (DType.I16, DType.I32, DType.I64),
        DType.U8: (DType.I16, DType.U16, DType.I32, DType.U32, DType.F32),
        DType.I16: (DType.I32, DType.I64, DType.F32, DType.F64),
        DType.I32: (DType.I64, DType.F64),
        DType.F16: (DType.F32, DType.F64),
        DType.BF16: (DType.F32, DType.F64),
        DType.F32: (DType.F64,),
    }
    return t in wider.get(x.dtype, ())


@attribute_function
def split_last(x: TensorType, by: int) -> Shape:
    """x's shape with the last axis in rows of `by`."""
    refuse_unless(x.rank >= 1, "no axis")
    rows = exact_quotient(x.shape[-1], by)
    if rows is None:
        raise Refuse("it does not come out even")
    return Shape((*x.shape[:-1], rows, by))


@attribute_function
def last_two(x: TensorType) -> Axes:
    """The last axis of x, split."""
    return Axes((x.rank - 1, x.rank))


@attribute_function
def is_last(a: Axes, x: TensorType) -> bool:
    """Whether a is the last axis."""
    return x.rank >= 1 and a.indices == (x.rank - 1,)


@attribute_function
def sum_of(a: Shape, b: Shape) -> Shape:
    """a + b, of one entry each."""
    return Shape((a.dims[0] + b.dims[0],))


@attribute_function
def product_of(a: Shape, b: Shape) -> Shape:
    """a * b, of one entry each."""
    return Shape((a.dims[0] * b.dims[0],))


@attribute_function
def is_beyond(s: Shape, a: Axis, c: Scalar, t: DType) -> bool:
    """Whether no index along the axis is greater than c, a whole number."""
    n = s.dims[a.index]
    if not t.is_integer or t.is_narrow or not numbers(n) or c.dtype != t:
        return False
    return typing.cast(int, n) <= int(c.value) + 1


PLACE = Scalar.of(0, DType.I64)
TRUE = Scalar.of(True, DType.BOOL)


@attribute_function
def axes_before(p: Perm, a: Axes) -> Axes:
    """The axes that p moves to a."""
    return Axes(tuple(sorted(p.order[i] for i in a.indices)))


@rule
def place_in_turned(f: ReduceFn, x: Tensor, s: Slices, a: Axis, last: Count) -> Law:
    """arg_reduce(x turned round, last) = n - 1 - arg_reduce(x, first), and the other way round"""
    place = arg_reduce(f, x, a, toggled(last))
    return rewrites(
        arg_reduce(f, slice_(x, s), a, last),
        binary(
            "sub",
            broadcast(
                reshape(scalar(last_place(x.type, s, a)), unit_shape(x.type)),
                Shape(place.type.shape),
            ),
            place,
        ),
    )


@rule
def place_among_one(f: ReduceFn, x: Tensor, a: Axis, last: Count) -> Law:
    """arg_reduce(x, a) = 0 everywhere, when the axis has extent 1"""
    left = arg_reduce(f, x, a, last)
    return rewrites(
        left,
        broadcast(reshape(scalar(PLACE), unit_shape(x.type)), Shape(left.type.shape)),
        is_unit(x.type, a),
    )


@rule
def place_of_negated(f: ReduceFn, x: Tensor, a: Axis, last: Count) -> Law:
    """argmax(-x) = argmin(x) and argmin(-x) = argmax(x), for floats"""
    return rewrites(
        arg_reduce(f, unary("neg", x), a, last),
        arg_reduce(opposite(f), x, a, last),
        is_plain_float(x.type),
    )


@rule
def place_of_widened(f: ReduceFn, x: Tensor, t: DType, a: Axis, last: Count) -> Law:
    """arg_reduce(cast(x, t)) = arg_reduce(x), when t has all numbers of x"""
    return rewrites(
        arg_reduce(f, cast(x, t), a, last), arg_reduce(f, x, a, last), holds_all(x.type, t)
    )


@rule
def reduce_in_rows(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """reduce(x, last axis) = reduce(x in rows of 4, last two axes), reshaped, for max and min"""
    rows = reshape(x, split_last(x.type, 4))
    left = reduce(f, x, a)
    return rewrites(
        left,
        reshape(reduce(f, rows, last_two(x.type)), Shape(left.type.shape)),
        is_extreme(f) & is_last(a, x.type),
    )


# Signs multiply, whatever is rounded; nothing gives 1.
@rule
def product_of_magnitudes(x: Tensor, a: Axes) -> Law:
    """prod(abs(x), a) = abs(prod(x, a)), for floats; both ways"""
    left, right = reduce("prod", unary("abs", x), a), unary("abs", reduce("prod", x, a))
    return both(
        rewrites(left, right, is_plain_float(x.type)),
        rewrites(right, left, is_plain_float(x.type)),
    )


@rule
def sum_of_extents(a: Shape, b: Shape) -> Law:
    """extent(a) + extent(b) = extent(a + b)"""
    return rewrites(binary("add", extent(a), extent(b)), extent(sum_of(a, b)))


@rule
def product_of_extents(a: Shape, b: Shape) -> Law:
    """extent(a) * extent(b) = extent(a * b)"""
    return rewrites(binary("mul", extent(a), extent(b)), extent(product_of(a, b)))


@rule
def size_is_itself(a: Shape) -> Law:
    """extent(a) <= extent(a) = true, also of sizes that are open"""
    return rewrites(binary("le", extent(a), extent(a)), scalar(TRUE))


@rule
def iota_within_bound(s: Shape, a: Axis, t: DType, c: Scalar, u: Shape, w: Shape) -> Law:
    """min(iota(s, a, t), c) = iota(s, a, t), when no index is greater than c"""
    return rewrites(
        binary("min", iota(s, a, t), broadcast(reshape(c, u), w)),
        iota(s, a, t),
        is_beyond(s, a, c, t),
    )


@rule
def drop_empty_pad(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = x, when b adds nothing"""
    return replaces(pad(x, v, b), x, b.is_zero)


@rule
def extremes_of_transposed(f: ReduceFn, x: Untransposed, p: Perm, a: Axes) -> Law:
    """reduce(transpose(x, p), a) = transpose(reduce(x, p(a)), p), for max and min"""
    return rewrites(
        reduce(f, transpose(x, p), a),
        transpose(reduce(f, x, axes_before(p, a)), p),
        is_extreme(f),
    )
