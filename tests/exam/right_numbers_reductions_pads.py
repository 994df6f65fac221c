"""Laws of numbers in reductions, pads, windows and gathers, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Elementwise,
    Groups,
    Law,
    Operands,
    Padding,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    Varying,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    conv,
    extent,
    family,
    gather,
    known_at_least,
    pad,
    pool,
    reduce,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


@attribute_function
def is_finite(c: Scalar) -> bool:
    return c.type.dtype.is_float and abs(float(c.value)) < float("inf")


@attribute_function
def is_bound(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def other_bound(f: ReduceFn) -> ReduceFn:
    if f.name not in ("max", "min"):
        raise Refuse("no bound")
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def never_empty(t: TensorType) -> bool:
    return all(known_at_least(d, 1) for d in t.shape)


@attribute_function
def is_identity(f: ReduceFn, v: Scalar) -> bool:
    t = v.type.dtype
    if t is DType.BOOL or t.is_narrow:
        return False
    if t.is_float:
        return f.name in ("max", "min") and float(v.value) == float(
            "-inf" if f.name == "max" else "inf"
        )
    return int(v.value) == {"sum": 0, "prod": 1, "max": t.bounds[0], "min": t.bounds[1]}[f.name]


@attribute_function
def keeps_plain_zero(f: UnaryFn) -> bool:
    return f.name in (
        "abs",
        "relu",
        "sign",
        "sqrt",
        "floor",
        "ceil",
        "round",
        "tanh",
        "sin",
        "asin",
    )


@attribute_function
def is_monotone(f: UnaryFn) -> bool:
    return f.name in ("relu", "sign", "floor", "ceil", "round")


@attribute_function
def reads_something(w: Window) -> bool:
    return not w.has_border and all(size >= 1 for size in w.sizes)


@attribute_function
def all_but_last(w: TensorType) -> Axes:
    return Axes(tuple(range(w.rank - 1)))


@attribute_function
def along(s: Shape, a: Axes) -> Shape:
    if len(a.indices) != 1:
        raise Refuse("not one axis")
    return Shape((s.dims[a.indices[0]],))


@rule
def term_out_of_bound(f: ReduceFn, x: Tensor, a: Axes, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x + c) = max(x) + c, on floats where c is finite, and the same for min"""
    total = reduce(f, x, a)
    return rewrites(
        reduce(f, binary("add", x, broadcast(reshape(c, ones), s)), a),
        binary("add", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
        is_bound(f),
        is_finite(c),
    )


@rule
def negation_out_of_bound(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """max(-x) = -min(x), on floats, and with max and min exchanged"""
    return rewrites(
        reduce(f, unary("neg", x), a),
        unary("neg", reduce(other_bound(f), x, a)),
        x.type.dtype.is_float,
    )


@rule
def bound_of_repeated(f: ReduceFn, c: Scalar, ones: Shape, s: Shape, a: Axes) -> Law:
    """max(c everywhere) = c everywhere, where no axis is empty, and the same for min"""
    whole = broadcast(reshape(c, ones), s)
    m = reduce(f, whole, a)
    return rewrites(
        m, broadcast(reshape(c, ones), Shape(m.type.shape)), is_bound(f), never_empty(whole.type)
    )


@rule
def identity_under_reduce(f: ReduceFn, x: Tensor, v: Scalar, p: Padding, a: Axes) -> Law:
    """f(pad(x, v)) = f(x), when only axes of f are padded and v is its identity, and no sum is
    rounded"""
    left, right = reduce(f, pad(x, v, p), a), reduce(f, x, a)
    return rewrites(left, right, left.type == right.type, is_identity(f, v))


@rule
def function_into_zero_pad(f: UnaryFn, x: Tensor, p: Padding) -> Law:
    """f(pad(x, 0.0)) = pad(f(x), 0.0), for an f of which 0.0 stays 0.0"""
    return rewrites(unary(f, pad(x, 0.0, p)), pad(unary(f, x), 0.0, p), keeps_plain_zero(f))


@rule
def product_of_pads(x: Tensor, y: Tensor, p: Padding) -> Law:
    """pad(x, 0) * pad(y, 0) = pad(x * y, 0)"""
    return rewrites(binary("mul", pad(x, 0, p), pad(y, 0, p)), pad(binary("mul", x, y), 0, p))


@rule
def masked_sum(c: Tensor, x: Tensor, a: Axes) -> Law:
    """sum(select(c, x, 0)) = sum(x * cast(c)), on integers"""
    return rewrites(
        reduce("sum", select(c, x, 0), a),
        reduce("sum", binary("mul", x, cast(c, x.type.dtype)), a),
        x.type.dtype.is_integer,
    )


@rule
def place_in_negation(f: ReduceFn, x: Tensor, a: Axis, l: Count) -> Law:
    """argmax(-x) = argmin(x), on floats, and the other way round"""
    return rewrites(
        arg_reduce(f, unary("neg", x), a, l),
        arg_reduce(other_bound(f), x, a, l),
        x.type.dtype.is_float,
    )


@rule
def monotone_out_of_pool(f: UnaryFn, x: Tensor, w: Window) -> Law:
    """max pool of f(x) = f(max pool of x), for a monotone f and windows without a border"""
    return rewrites(
        pool("max", unary(f, x), w), unary(f, pool("max", x, w)), is_monotone(f), reads_something(w)
    )


@rule
def term_out_of_conv(
    x: Tensor, w: Tensor, c: Scalar, o: Shape, s: Shape, v: Window, g: Groups
) -> Law:
    """conv(x + c, w) = conv(x, w) + c * (sums of w's output channels), on integers, without a
    border"""
    plain = conv(x, w, v, g)
    t = Shape(plain.type.shape)
    sums = broadcast(reduce("sum", w, all_but_last(w.type)), t)
    return rewrites(
        conv(binary("add", x, broadcast(reshape(c, o), s)), w, v, g),
        binary("add", plain, binary("mul", sums, broadcast(reshape(c, o), t))),
        x.type.dtype.is_integer,
        typing.cast(bool, ~v.has_border),
    )


@rule
def sum_of_repeated(c: Scalar, ones: Shape, s: Shape, a: Axes) -> Law:
    """sum(c everywhere) along one axis = c times its extent, everywhere, of i64"""
    total = reduce("sum", broadcast(reshape(c, ones), s), a)
    return rewrites(
        total,
        broadcast(reshape(binary("mul", c, extent(along(s, a))), ones), Shape(total.type.shape)),
        c.type.dtype == DType.I64,
    )


@family
def gather_into(f: Elementwise, xs: Operands[Varying], i: Tensor, a: Axis) -> Law:
    """gather(f(x…), i, a) = f(gather(x, i, a)…)"""
    return rewrites(gather(f(xs), i, a), f(xs.each(gather, i, a)))
