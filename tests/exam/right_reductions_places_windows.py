"""Laws of reductions, places and windows, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    ReduceFn,
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
    has_value,
    iota,
    known_at_least,
    pool,
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
def dual(f: ReduceFn) -> ReduceFn:
    """max for min, and the other way round."""
    refuse_unless(f.name in ("max", "min"))
    return ReduceFn("min" if f.name == "max" else "max")


@rule
def choice_of_negated(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """max(-x, a) = -min(x, a) and min(-x, a) = -max(x, a), on floats"""
    return rewrites(
        reduce(f, unary("neg", x), a), unary("neg", reduce(dual(f), x, a)), x.type.dtype.is_float
    )


@attribute_function
def is_monotone(f: UnaryFn) -> bool:
    """Whether f never exchanges the order of two numbers, nor of -0.0 and 0.0."""
    return f.name in ("relu", "floor", "ceil", "round")


@attribute_function
def is_never_empty(a: Axes, x: TensorType) -> bool:
    """Whether the axes have elements, whatever the sizes."""
    return all(known_at_least(x.shape[axis], 1) for axis in a.indices)


@rule
def monotone_out_of_choice(g: ReduceFn, f: UnaryFn, x: Tensor, a: Axes) -> Law:
    """max(f(x), a) = f(max(x, a)), and so for min, for a monotone f, when a has elements"""
    return rewrites(
        reduce(g, unary(f, x), a),
        unary(f, reduce(g, x, a)),
        is_monotone(f),
        has_value(dual(g)),
        is_never_empty(a, x.type),
    )


@rule
def place_of_negated(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """argmax(-x) = argmin(x) and argmin(-x) = argmax(x), on floats"""
    return rewrites(
        arg_reduce(f, unary("neg", x), axis, last),
        arg_reduce(dual(f), x, axis, last),
        x.type.dtype.is_float,
    )


@attribute_function
def is_reversed(s: Slices, x: TensorType, axis: Axis) -> bool:
    """Whether `s` reverses the axis, which has a known extent, and takes all others as they are."""
    for i, n in enumerate(x.shape):
        back = i == axis.index
        if back and not isinstance(n, int):
            return False
        start = n - 1 if back else 0
        if (s.starts[i], s.sizes[i], s.steps[i]) != (start, n, -1 if back else 1):
            return False
    return True


@attribute_function
def end(x: TensorType, axis: Axis) -> Scalar:
    """The last place of the axis."""
    refuse_unless(isinstance(x.shape[axis.index], int))
    return Scalar.of(x.shape[axis.index] - 1, DType.I64)


@attribute_function
def other(last: Count) -> Count:
    """Count(1) for Count(0), and the other way round."""
    return Count(1 - last.value)


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


@rule
def place_in_reversed(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """the first place in reversed x = n - 1 - the last place in x, and the other way round"""
    place = arg_reduce(f, x, axis, other(last))
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(reshape(scalar(end(x.type, axis)), units(x.type)), Shape(place.type.shape)),
            place,
        ),
        is_reversed(s, x.type, axis),
    )


@rule
def place_of_one(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(x, axis) = iota along the axis, when it has one element: zeros"""
    return rewrites(
        arg_reduce(f, x, axis, last),
        iota(Shape(x.type.shape), axis, DType.I64),
        x.type.shape[axis.index] == 1,
    )


@attribute_function
def starts(x: TensorType, w: Window) -> Slices:
    """Where the window stands."""
    refuse_unless(w.rank == x.rank)
    return Slices((0,) * x.rank, w.outer(x.shape), w.strides)


@attribute_function
def is_single(w: Window) -> bool:
    """Whether the window sees one element at a time."""
    return all(size == 1 for size in w.sizes) and not w.has_border


@rule
def pool_of_single_taps(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x) = slice(x by strides), on integers, for a window of one element and no border"""
    return rewrites(
        pool(f, x, w),
        slice_(x, starts(x.type, w)),
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
        is_single(w),
    )


@attribute_function
def is_plain(w: Window) -> bool:
    """Whether it moves by 1, without dilations and border."""
    return all(n == 1 for n in (*w.strides, *w.dilations)) and not w.has_border


@attribute_function
def joined(a: Window, b: Window) -> Window:
    """The window that sees what b sees of what a sees."""
    sizes = tuple(i + j - 1 for i, j in zip(a.sizes, b.sizes, strict=True))
    return Window(sizes, a.strides, a.dilations, a.lo, a.hi, a.fill)


@rule
def merge_pools(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """pool(pool(x, a), b) = pool(x, a and b), for max and min"""
    return rewrites(
        pool(f, pool(f, x, a), b),
        pool(f, x, joined(a, b)),
        has_value(dual(f)),
        is_plain(a),
        is_plain(b),
    )


@attribute_function
def sees_all(w: Window, x: TensorType) -> bool:
    """Whether the window stands in one place, where it sees each element once."""
    return w.sizes == x.shape and not w.has_border and all(n == 1 for n in w.dilations)


@attribute_function
def all_of(x: TensorType) -> Axes:
    """All axes."""
    return Axes(tuple(range(x.rank)))


@rule
def pool_of_everything(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(x) = reduce(x, all axes), on integers, when the window is as large as x"""
    return rewrites(
        pool(f, x, w),
        reduce(f, x, all_of(x.type)),
        sees_all(w, x.type),
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
    )
