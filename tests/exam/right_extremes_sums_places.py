"""Laws of extremes, sums and places of extremes, all of them right."""

from satura.language import (
    FLOATS,
    Axes,
    Axis,
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
    extent,
    iota,
    known_at_least,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    unary,
)


@attribute_function
def are_single(t: TensorType, axes: Axes) -> bool:
    return all(axis < t.rank and t.shape[axis] == 1 for axis in axes.indices)


@attribute_function
def begins_with_unit(f: ReduceFn, t: TensorType) -> bool:
    """Whether f of one element is that element: a sum of -0.0 is 0.0."""
    return not t.dtype.is_narrow and (f.name != "sum" or not t.dtype.is_float)


@rule
def reduce_one_element(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """f(x, axes) = x, when the axes have extent 1, but for sums of floats"""
    return rewrites(reduce(f, x, axes), x, are_single(x.type, axes), begins_with_unit(f, x.type))


@attribute_function
def mirrored(f: ReduceFn) -> ReduceFn:
    """max for min, and min for max."""
    refuse_unless(f.name in ("max", "min"), f"{f} has no mirror")
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def computes_floats(t: TensorType) -> bool:
    return t.dtype in FLOATS


@rule
def extreme_of_negated(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """max(-x) = -min(x) and min(-x) = -max(x), on floats"""
    return rewrites(
        reduce(f, unary("neg", x), axes),
        unary("neg", reduce(mirrored(f), x, axes)),
        computes_floats(x.type),
    )


@rule
def extreme_of_inverted(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """max(~x) = ~min(x) and min(~x) = ~max(x): ~ turns the order of integers, signed or not"""
    return rewrites(
        reduce(f, unary("bitnot", x), axes), unary("bitnot", reduce(mirrored(f), x, axes))
    )


@rule
def any_of_not(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """any(not x) = not all(x) and all(not x) = not any(x)"""
    return rewrites(reduce(f, unary("not", x), axes), unary("not", reduce(mirrored(f), x, axes)))


@rule
def place_of_inverted(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(~x) = argmin(x) and the other way round"""
    return rewrites(
        arg_reduce(f, unary("bitnot", x), axis, last), arg_reduce(mirrored(f), x, axis, last)
    )


@attribute_function
def is_flip(t: TensorType, s: Slices, axis: Axis) -> bool:
    return (
        len(s.sizes) == t.rank
        and axis.index < t.rank
        and all(
            s.sizes[i] == dim
            and (
                (s.starts[i] == dim - 1 and s.steps[i] == -1)
                if i == axis.index
                else (s.starts[i] == 0 and s.steps[i] == 1)
            )
            for i, dim in enumerate(t.shape)
        )
    )


@attribute_function
def has_places(t: TensorType, axis: Axis) -> bool:
    """Whether the axis has elements for all sizes, or is known to have as many as it has."""
    refuse_unless(axis.index < t.rank)
    dim = t.shape[axis.index]
    return isinstance(dim, int) or known_at_least(dim, 1)


@attribute_function
def other(last: Count) -> Count:
    refuse_unless(last.value in (0, 1))
    return Count(1 - last.value)


@attribute_function
def length(t: TensorType, axis: Axis) -> Shape:
    refuse_unless(axis.index < t.rank)
    return Shape((t.shape[axis.index],))


@attribute_function
def ones(rank: int) -> Shape:
    return Shape((1,) * rank)


@rule
def place_in_flipped(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg f(flip(x)) = n - 1 - arg f(x) with the other choice among equals"""
    found = arg_reduce(f, x, axis, other(last))
    end = binary("sub", extent(length(x.type, axis)), 1)
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary("sub", broadcast(reshape(end, ones(x.type.rank)), Shape(found.type.shape)), found),
        is_flip(x.type, s, axis),
        has_places(x.type, axis),
    )


@attribute_function
def is_single(t: TensorType, axis: Axis) -> bool:
    return axis.index < t.rank and t.shape[axis.index] == 1


@rule
def first_of_repeated(f: ReduceFn, x: Tensor, s: Shape, axis: Axis) -> Law:
    """arg f(broadcast(x, s), axis) = 0, when x is repeated along it and the first of equals
    counts"""
    left = arg_reduce(f, broadcast(x, s), axis, Count(0))
    zero = reshape(scalar(Scalar.of(0, DType.I64)), ones(x.type.rank))
    return rewrites(left, broadcast(zero, Shape(left.type.shape)), is_single(x.type, axis))


@attribute_function
def keeps_order(a: DType, b: DType) -> bool:
    """Whether b holds all of a, integers or bools, none of them narrow."""
    if a.is_narrow or b.is_narrow or not b.is_integer:
        return False
    if a is DType.BOOL:
        return True
    return a.is_integer and b.bounds[0] <= a.bounds[0] and a.bounds[1] <= b.bounds[1]


@attribute_function
def none_is_empty(t: TensorType, axes: Axes) -> bool:
    return all(axis < t.rank and known_at_least(t.shape[axis], 1) for axis in axes.indices)


@attribute_function
def chooses(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@rule
def widen_after_choice(f: ReduceFn, x: Tensor, d: DType, axes: Axes) -> Law:
    """f(cast(x, d), axes) = cast(f(x, axes), d), for max and min of integers or bools that d holds,
    of axes that have elements"""
    return rewrites(
        reduce(f, cast(x, d), axes),
        cast(reduce(f, x, axes), d),
        chooses(f),
        keeps_order(x.type.dtype, d),
        none_is_empty(x.type, axes),
    )


@attribute_function
def total(t: TensorType, s: Shape, axes: Axes) -> Shape:
    """How often each element of t is added, along axes that are repeated."""
    refuse_unless(len(s.dims) == t.rank and t.dtype.is_integer and not t.dtype.is_narrow)
    refuse_unless(
        all(axis < t.rank and t.shape[axis] == 1 for axis in axes.indices), "not repeated"
    )
    size: Dim = 1
    for axis in axes.indices:
        size = size * s.dims[axis]
    return Shape((size,))


@attribute_function
def dtype_of(t: TensorType) -> DType:
    return t.dtype


@rule
def sum_of_copies(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = x * how often it is repeated, on integers, which wrap alike"""
    left = reduce("sum", broadcast(x, s), axes)
    number = cast(extent(total(x.type, s, axes)), dtype_of(x.type))
    shape = Shape(left.type.shape)
    return rewrites(
        left,
        binary("mul", broadcast(x, shape), broadcast(reshape(number, ones(x.type.rank)), shape)),
    )


@attribute_function
def only(axis: Axis) -> Axes:
    return Axes((axis.index,))


@attribute_function
def has_one(s: Shape, axis: Axis) -> bool:
    return axis.index < len(s.dims) and known_at_least(s.dims[axis.index], 1)


@attribute_function
def dim_of(s: Shape, axis: Axis) -> Shape:
    refuse_unless(axis.index < len(s.dims))
    return Shape((s.dims[axis.index],))


@attribute_function
def ones_like(s: Shape) -> Shape:
    return Shape((1,) * len(s.dims))


@rule
def largest_index(s: Shape, axis: Axis) -> Law:
    """max(iota(s, axis), axis) = n - 1, of i64 and where there is an index"""
    left = reduce("max", iota(s, axis, DType.I64), only(axis))
    last = binary("sub", extent(dim_of(s, axis)), 1)
    return rewrites(
        left, broadcast(reshape(last, ones_like(s)), Shape(left.type.shape)), has_one(s, axis)
    )


@attribute_function
def is_computed(t: TensorType) -> bool:
    return not t.dtype.is_narrow


@attribute_function
def is_within(axis: Axis, axes: Axes) -> bool:
    return axis.index in axes.indices


@rule(reassociates=True)
def sum_in_two_parts(x: Tensor, y: Tensor, axis: Axis, axes: Axes) -> Law:
    """sum(concat(x, y, axis), axes) = sum(x, axes) + sum(y, axes), when the axis is one of them"""
    return rewrites(
        reduce("sum", concat(x, y, axis), axes),
        binary("add", reduce("sum", x, axes), reduce("sum", y, axes)),
        is_within(axis, axes),
        is_computed(x.type),
    )


@attribute_function
def product_of(a: Shape, b: Shape) -> Shape:
    refuse_unless(len(a.dims) == len(b.dims) == 1)
    return Shape((a.dims[0] * b.dims[0],))


@rule
def product_of_extents(a: Shape, b: Shape) -> Law:
    """extent(a) * extent(b) = extent(a * b)"""
    return rewrites(binary("mul", extent(a), extent(b)), extent(product_of(a, b)))
