"""Laws of casts of whole numbers, reductions and places, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    UnaryFn,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    iota,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    unary,
)


def full(c: Term | Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


@attribute_function
def rounds(f: UnaryFn, type_: TensorType) -> bool:
    """Whether f leaves whole numbers and infinities, and the type has no others."""
    return f.name in ("floor", "ceil", "round") and not type_.dtype.is_float


@rule
def round_whole(f: UnaryFn, x: Tensor, d: DType) -> Law:
    """f(cast(x, d)) = cast(x, d) for roundings f of integers and bools x"""
    return rewrites(unary(f, cast(x, d)), cast(x, d), rounds(f, x.type))


@rule
def truncate_without_floor(x: Tensor, d: DType) -> Law:
    """cast(floor(x), d) = cast(x, d) for unsigned d: what is below 0 saturates"""
    return rewrites(
        cast(unary("floor", x), d), cast(x, d), typing.cast(bool, d.is_integer & ~d.is_signed)
    )


@attribute_function
def never_negative(x: TensorType, d: DType) -> bool:
    """Whether a cast of x to d is never below 0, nor -0.0."""
    c = x.dtype
    if c is DType.BOOL:
        return True
    if not c.is_integer or c.is_signed:
        return False
    return d.is_float or (d.is_integer and c.bounds[1] <= d.bounds[1])


@rule
def relu_of_unsigned(x: Tensor, d: DType) -> Law:
    """relu(cast(x, d)) = cast(x, d) for bools and unsigned integers, when d is a float or has all
    their values"""
    return rewrites(unary("relu", cast(x, d)), cast(x, d), never_negative(x.type, d))


@attribute_function
def is_low_bound(c: Scalar) -> bool:
    """Whether c <= 0: no NaN is."""
    return bool(typing.cast(float, c.value) <= 0)


@rule
def bound_of_relu(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(relu(x), c) = relu(x) for c <= 0"""
    return rewrites(
        binary("max", unary("relu", x), full(c, ones, s)), unary("relu", x), is_low_bound(c)
    )


@attribute_function
def mirrored(f: ReduceFn, g: UnaryFn, type_: TensorType) -> ReduceFn:
    """min for max and the other way round, where g reverses the order of all values."""
    duals = {"max": "min", "min": "max"}
    negates = g.name == "neg" and type_.dtype.is_float
    if f.name not in duals or not (negates or g.name in ("bitnot", "not")):
        raise Refuse(f"{g} does not turn {f} round")
    return ReduceFn(duals[f.name])


@rule
def reverse_reduction(f: ReduceFn, g: UnaryFn, x: Tensor, axes: Axes) -> Law:
    """max(g(x)) = g(min(x)) and min(g(x)) = g(max(x)), where g is the negation of floats, ~ or not;
    also of nothing"""
    return rewrites(reduce(f, unary(g, x), axes), unary(g, reduce(mirrored(f, g, x.type), x, axes)))


@rule
def reverse_place(f: ReduceFn, g: UnaryFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(g(x)) = argmin(x) and argmin(g(x)) = argmax(x), where g is the negation of floats or
    ~"""
    return rewrites(
        arg_reduce(f, unary(g, x), axis, last),
        arg_reduce(mirrored(f, g, x.type), x, axis, last),
        g.name != "not",
    )


@attribute_function
def repetitions(x: TensorType, s: Shape, axes: Axes) -> Scalar:
    """How often each element of x is added, modulo 2^n."""
    refuse_unless(x.dtype.is_integer and not x.dtype.is_narrow, "no ring")
    count = 1
    for i in axes.indices:
        refuse_unless(x.shape[i] == 1 and isinstance(s.dims[i], int), "not repeated a known number")
        count *= typing.cast(int, s.dims[i])
    return _wrapped(count, x)


def _wrapped(count: int, x: TensorType) -> Scalar:
    least, most = x.dtype.bounds
    return Scalar.of((count - least) % (most - least + 1) + least, x.dtype)


@attribute_function
def with_ones(s: Shape, axes: Axes) -> Shape:
    return Shape(tuple(1 if i in axes.indices else n for i, n in enumerate(s.dims)))


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


@rule
def sum_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = x * n on integers, when x is repeated n times along all axes"""
    rest = with_ones(s, axes)
    return rewrites(
        reduce("sum", broadcast(x, s), axes),
        binary(
            "mul",
            broadcast(x, rest),
            full(scalar(repetitions(x.type, s, axes)), units(x.type), rest),
        ),
    )


@attribute_function
def flip(type_: TensorType, axis: Axis) -> Slices:
    """Everything, backwards along `axis`."""
    dims, at = type_.shape, axis.index
    refuse_unless(
        at < len(dims) and isinstance(dims[at], int) and typing.cast(int, dims[at]) > 0,
        "no known extent",
    )
    starts = tuple(dims[at] - 1 if i == at else 0 for i in range(len(dims)))
    return Slices(starts, dims, tuple(-1 if i == at else 1 for i in range(len(dims))))


@attribute_function
def last_index(type_: TensorType, axis: Axis) -> Scalar:
    extent = type_.shape[axis.index]
    refuse_unless(isinstance(extent, int), "an open extent")
    return Scalar.of(extent - 1, DType.I64)


@rule
def place_in_flipped(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(flip(x, axis), axis, first) = n - 1 - arg_reduce(x, axis, last), and with first
    and last exchanged"""
    place = arg_reduce(f, x, axis, Count(1 - last.value))
    end = full(scalar(last_index(x.type, axis)), units(x.type), Shape(place.type.shape))
    return rewrites(
        arg_reduce(f, slice_(x, flip(x.type, axis)), axis, last), binary("sub", end, place)
    )


@rule
def place_of_single(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(x, axis) = iota along the axis, when its extent is 1: all are 0"""
    place = arg_reduce(f, x, axis, last)
    return rewrites(
        place,
        iota(Shape(place.type.shape), axis, DType.I64),
        x.type.shape[axis.index] == 1,
    )
