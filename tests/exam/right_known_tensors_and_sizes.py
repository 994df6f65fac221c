"""Laws of known tensors, sizes, and families with other operands, all of them right."""

import numpy as np

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    DType,
    Elementwise,
    Known,
    Law,
    Movable,
    Others,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Some,
    Tensor,
    TensorType,
    UnaryFn,
    Varying,
    Window,
    attribute_function,
    binary,
    both,
    broadcast,
    concat,
    exact_quotient,
    extent,
    family,
    has_value,
    pad,
    pool,
    product,
    reduce,
    refuse_unless,
    replaces,
    reshape,
    rewrites,
    rule,
    scalar,
    transpose,
    unary,
)


@rule
def transpose_back(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p⁻¹) = x"""
    return replaces(transpose(transpose(x, p), p.inverse), x)


@attribute_function
def dual(f: BinaryFn) -> BinaryFn:
    """`or` for `and`, the other way round, and min for max."""
    refuse_unless(f.name in ("and", "or", "max", "min"), f"{f} has no dual")
    return BinaryFn({"and": "or", "or": "and", "max": "min", "min": "max"}[f.name])


@rule
def complement_into(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """~f(x, y) = g(~x, ~y) for f, g of `and`, `or` and of max, min, on integers; both ways"""
    return both(
        rewrites(
            unary("bitnot", binary(f, x, y)),
            binary(dual(f), unary("bitnot", x), unary("bitnot", y)),
        ),
        rewrites(
            binary(f, unary("bitnot", x), unary("bitnot", y)),
            unary("bitnot", binary(dual(f), x, y)),
        ),
    )


@family
def transpose_out_of_some(f: Elementwise, xs: Some[Varying], ys: Others[Tensor], p: Perm) -> Law:
    """f(transpose(x, p)…, y…) = transpose(f(x…, transpose(y, p⁻¹)…), p)"""
    return rewrites(
        f(xs.each(transpose, p), ys), transpose(f(xs, ys.each(transpose, p.inverse)), p)
    )


@attribute_function
def is_associative(f: BinaryFn, of: DType) -> bool:
    """Whether f(f(x, a), b) = f(x, f(a, b)), bit for bit."""
    if f.name in ("max", "min", "and", "or", "xor"):
        return True
    return f.name in ("add", "mul") and of.is_integer


@rule
def gather_known(f: BinaryFn, x: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """f(f(x, broadcast(a)), broadcast(b)) = f(x, broadcast(f(a, b))), for f that is associative bit
    for bit, when a and b have one shape"""
    return rewrites(
        binary(f, binary(f, x, broadcast(a, s)), broadcast(b, s)),
        binary(f, x, broadcast(binary(f, a, b), s)),
        is_associative(f, x.type.dtype),
        a.type.shape == b.type.shape,
    )


@attribute_function
def pieces(d: Shape, c: Scalar) -> Shape:
    """How many pieces of c elements d has, where it comes out even."""
    refuse_unless(c.dtype is DType.I64 and int(c.value) > 0, "no pieces")
    quotient = exact_quotient(d.dims[0], int(c.value))
    if quotient is None:
        raise Refuse("it does not come out even")
    return Shape((quotient,))


@attribute_function
def nothing() -> Scalar:
    return Scalar.of(0, DType.I64)


@rule
def size_comes_out_even(d: Shape, c: Scalar) -> Law:
    """extent(d) mod c = 0, when d is a multiple of c for all sizes"""
    return rewrites(binary("mod", extent(d), c), scalar(nothing()), has_value(pieces(d, c)))


@rule
def pieces_of_size(d: Shape, c: Scalar) -> Law:
    """extent(d) / c = extent(d / c), when it comes out even for all sizes"""
    return rewrites(binary("div", extent(d), c), extent(pieces(d, c)))


@rule
def function_of_movable(f: UnaryFn, x: Movable, p: Perm) -> Law:
    """f(transpose(x, p)) = transpose(f(x), p)"""
    return rewrites(unary(f, transpose(x, p)), transpose(unary(f, x), p))


@attribute_function
def all_axes(type_: TensorType) -> Axes:
    return Axes(tuple(range(type_.rank)))


@attribute_function
def in_any_order(f: ReduceFn, of: DType) -> bool:
    return f.name in ("max", "min") or of.is_integer


@rule
def reduce_reshaped(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """f(reshape(x, s), all axes) = reshape(f(x, all axes), ones), when no float is added in another
    order"""
    turned = reshape(x, s)
    left = reduce(f, turned, axes)
    return rewrites(
        left,
        reshape(reduce(f, x, all_axes(x.type)), Shape(left.type.shape)),
        axes.indices == all_axes(turned.type).indices,
        in_any_order(f, x.type.dtype),
    )


@attribute_function
def step(f: ReduceFn, of: DType) -> BinaryFn:
    """f of two elements."""
    refuse_unless(of is not DType.BOOL, "no binary function of numbers takes bools")
    return BinaryFn({"sum": "add", "prod": "mul", "max": "max", "min": "min"}[f.name])


@attribute_function
def among(axis: Axis, axes: Axes) -> bool:
    return axis.index in axes.indices


@rule
def reduce_parts(f: ReduceFn, x: Tensor, y: Tensor, axis: Axis, axes: Axes) -> Law:
    """f(concat(x, y, axis), axes) = f(x, axes) and f(y, axes) by f, when the axis is among the axes
    and no float is added in another order"""
    return rewrites(
        reduce(f, concat(x, y, axis), axes),
        binary(step(f, x.type.dtype), reduce(f, x, axes), reduce(f, y, axes)),
        among(axis, axes) & in_any_order(f, x.type.dtype),
    )


@attribute_function
def kept(p: Padding, axes: Axes) -> Padding:
    """p without what it adds along the axes."""
    lo = tuple(0 if i in axes.indices else n for i, n in enumerate(p.lo))
    hi = tuple(0 if i in axes.indices else n for i, n in enumerate(p.hi))
    return Padding(lo, hi)


@rule
def zeros_out_of_sum(x: Tensor, p: Padding, axes: Axes) -> Law:
    """sum(pad(x, 0, p), axes) = pad(sum(x, axes), 0, p but along the axes), on integers"""
    return rewrites(
        reduce("sum", pad(x, 0, p), axes),
        pad(reduce("sum", x, axes), 0, kept(p, axes)),
        x.type.dtype.is_integer,
    )


@attribute_function
def times(type_: TensorType, s: Shape, axes: Axes) -> Scalar:
    """How often each integer is added, in its own type: only repeated axes are summed."""
    refuse_unless(type_.dtype.is_integer, "floats are rounded")
    refuse_unless(all(type_.shape[axis] == 1 for axis in axes.indices), "others are summed, too")
    count = product([s.dims[axis] for axis in axes.indices])
    if not isinstance(count, int):
        raise Refuse("the axes are open")
    return Scalar.of(np.asarray(count, np.int64), type_.dtype)


@attribute_function
def units(type_: TensorType) -> Shape:
    return Shape((1,) * type_.rank)


@rule
def sum_of_repeated(x: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(broadcast(x, s), axes) = broadcast(x) * n, on integers, when x is repeated n times along
    the axes"""
    left = reduce("sum", broadcast(x, s), axes)
    count = broadcast(
        reshape(scalar(times(x.type, s, axes)), units(x.type)), Shape(left.type.shape)
    )
    return rewrites(left, binary("mul", broadcast(x, Shape(left.type.shape)), count))


@rule
def pad_into_pool(f: ReduceFn, x: Tensor, c: Scalar, p: Padding, w: Window) -> Law:
    """pool(pad(x, c, p), w) = pool(x, w) with p as border, when w's own border agrees"""
    return rewrites(pool(f, pad(x, c, p), w), pool(f, x, w.padded(p, c)))
