"""Laws of reductions and places, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
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
    UnaryFn,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    extent,
    known_at_least,
    pool,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    unary,
)


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """min for max, and the other way round."""
    if f.name not in ("max", "min"):
        raise Refuse(f"{f} does not choose")
    return ReduceFn("min" if f.name == "max" else "max")


@rule
def negate_extreme(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """max(-x) = -min(x) and min(-x) = -max(x), on floats"""
    return rewrites(
        reduce(f, unary("neg", x), axes),
        unary("neg", reduce(opposite(f), x, axes)),
        x.type.dtype.is_float,
    )


@attribute_function
def is_monotone(f: UnaryFn, g: ReduceFn) -> bool:
    return f.name in ("relu", "floor", "ceil", "round") and g.name in ("max", "min")


@attribute_function
def is_filled(type_: TensorType, axes: Axes) -> bool:
    """Whether there are elements along all axes, whatever the sizes."""
    return all(known_at_least(type_.shape[axis], 1) for axis in axes.indices)


@rule
def monotone_after_extreme(f: UnaryFn, g: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """g(f(x)) = f(g(x)), for max and min and a monotone f, of axes that are not empty"""
    return rewrites(
        reduce(g, unary(f, x), axes),
        unary(f, reduce(g, x, axes)),
        is_monotone(f, g),
        is_filled(x.type, axes),
    )


@attribute_function
def step(f: ReduceFn) -> BinaryFn:
    """The function of two numbers that f repeats."""
    return BinaryFn({"sum": "add", "prod": "mul", "max": "max", "min": "min"}[f.name])


@attribute_function
def in_any_order(f: ReduceFn, of: DType) -> bool:
    return f.name in ("max", "min") or of.is_integer


@rule
def reduce_each(f: ReduceFn, x: Tensor, y: Tensor, axes: Axes) -> Law:
    """f(f(x, y) of pairs, axes) = f(x, axes) and f(y, axes) by f, when no float is added in another
    order"""
    return rewrites(
        reduce(f, binary(step(f), x, y), axes),
        binary(step(f), reduce(f, x, axes), reduce(f, y, axes)),
        in_any_order(f, x.type.dtype),
    )


@rule
def de_morgan_along_axes(f: ReduceFn, c: Tensor, axes: Axes) -> Law:
    """any(not c) = not all(c) and all(not c) = not any(c), on bools"""
    return rewrites(reduce(f, unary("not", c), axes), unary("not", reduce(opposite(f), c, axes)))


@attribute_function
def is_ring(f: ReduceFn, of: DType, t: DType) -> bool:
    """Whether f adds or multiplies integers of which t has the low bits."""
    if f.name not in ("sum", "prod") or not (of.is_integer and t.is_integer):
        return False
    return not t.is_narrow and t.itemsize <= of.itemsize


@rule
def narrow_before_reduce(f: ReduceFn, x: Tensor, t: DType, axes: Axes) -> Law:
    """cast(f(x), t) = f(cast(x, t)), for sums and products, to integers that are not wider"""
    return rewrites(
        cast(reduce(f, x, axes), t), reduce(f, cast(x, t), axes), is_ring(f, x.type.dtype, t)
    )


@attribute_function
def all_axes(w: Window) -> Axes:
    return Axes(tuple(range(w.rank)))


@attribute_function
def is_whole(f: ReduceFn, w: Window, type_: TensorType) -> bool:
    """Whether the only position of w sees everything, and f does not depend on the order."""
    tight = not w.has_border and all(n == 1 for n in w.dilations)
    return tight and w.sizes == type_.shape and in_any_order(f, type_.dtype)


@rule
def pool_of_everything(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x, w) = reduce(x, all axes), when w is as large as x and has no border"""
    return rewrites(pool(f, x, w), reduce(f, x, all_axes(w)), is_whole(f, w, x.type))


@rule
def largest_size(x: Tensor, axes: Axes) -> Law:
    """max(abs(x)) = max(max(x), -min(x)), on floats"""
    return rewrites(
        reduce("max", unary("abs", x), axes),
        binary("max", reduce("max", x, axes), unary("neg", reduce("min", x, axes))),
        x.type.dtype.is_float,
    )


@rule
def place_of_negated(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_max(-x) = arg_min(x) and arg_min(-x) = arg_max(x), on floats"""
    return rewrites(
        arg_reduce(f, unary("neg", x), axis, last),
        arg_reduce(opposite(f), x, axis, last),
        x.type.dtype.is_float,
    )


@attribute_function
def holds(t: DType, of: DType) -> bool:
    """Whether t has every number of `of`."""
    if of.is_narrow or t.is_narrow or DType.BOOL in (of, t):
        return False
    if of.is_integer and t.is_integer:
        return t.bounds[0] <= of.bounds[0] and of.bounds[1] <= t.bounds[1]
    wider = {DType.F64: (DType.F32, DType.F16, DType.BF16), DType.F32: (DType.F16, DType.BF16)}
    return of in wider.get(t, ())


@rule
def place_before_cast(f: ReduceFn, x: Tensor, t: DType, axis: Axis, last: Count) -> Law:
    """arg_f(cast(x, t)) = arg_f(x), when t has every number of x's dtype"""
    return rewrites(
        arg_reduce(f, cast(x, t), axis, last),
        arg_reduce(f, x, axis, last),
        holds(t, x.type.dtype),
    )


@attribute_function
def is_single(type_: TensorType, axis: Axis) -> bool:
    return type_.shape[axis.index] == 1


@attribute_function
def no_place() -> Scalar:
    return Scalar.of(0, DType.I64)


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


@rule
def only_place(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_f(x) = 0, along an axis of extent 1"""
    left = arg_reduce(f, x, axis, last)
    return rewrites(
        left,
        broadcast(reshape(scalar(no_place()), units(x.type)), Shape(left.type.shape)),
        is_single(x.type, axis),
    )


@attribute_function
def only(axis: Axis) -> Axes:
    return Axes((axis.index,))


@attribute_function
def length(type_: TensorType, axis: Axis) -> Shape:
    return Shape((type_.shape[axis.index],))


@rule
def place_in_parts(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """arg_max(concat(x, y)) = select(max(y) <= max(x), arg_max(x), n + arg_max(y)), on integers, of
    axes that are not empty"""
    place = arg_reduce("max", x, axis, Count(0))
    before = reshape(extent(length(x.type, axis)), units(x.type))
    return rewrites(
        arg_reduce("max", concat(x, y, axis), axis, Count(0)),
        select(
            binary("le", reduce("max", y, only(axis)), reduce("max", x, only(axis))),
            place,
            binary(
                "add",
                broadcast(before, Shape(place.type.shape)),
                arg_reduce("max", y, axis, Count(0)),
            ),
        ),
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
        is_filled(x.type, only(axis)),
        is_filled(y.type, only(axis)),
    )


@attribute_function
def turns(type_: TensorType, s: Slices, axis: Axis) -> bool:
    """Whether s turns the axis around and takes all else."""
    for i, n in enumerate(type_.shape):
        whole = (0, n, 1) if i != axis.index else (n - 1, n, -1)
        if (s.starts[i], s.sizes[i], s.steps[i]) != whole:
            return False
    return True


@attribute_function
def other_end(last: Count) -> Count:
    return Count(1 - last.value)


@rule
def place_in_reversed(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg_f(reversed x, last) = n - 1 - arg_f(x, not last)"""
    place = arg_reduce(f, x, axis, other_end(last))
    count = broadcast(reshape(extent(length(x.type, axis)), units(x.type)), Shape(place.type.shape))
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary("sub", binary("sub", count, 1), place),
        turns(x.type, s, axis),
    )
