"""Laws of numbers and what moves them, all of them right."""

import math
import typing

from satura.language import (
    Arithmetic,
    Axes,
    Axis,
    BinaryFn,
    DType,
    Elementwise,
    Law,
    Operands,
    Others,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Scalar,
    Scalars,
    Shape,
    Slices,
    Some,
    Tensor,
    Varying,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    family,
    has_value,
    iota,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    winograd,
)


@attribute_function
def only_start(s: Slices) -> Scalar:
    if len(s.starts) != 1 or not isinstance(s.starts[0], int):
        raise Refuse("not one known start")
    return Scalar.of(s.starts[0], DType.I64)


@attribute_function
def only_step(s: Slices) -> Scalar:
    if len(s.steps) != 1:
        raise Refuse("not one axis")
    return Scalar.of(s.steps[0], DType.I64)


@attribute_function
def moved(p: Perm, a: Axes) -> Axes:
    return Axes(tuple(sorted(p.order[i] for i in a.indices)))


@attribute_function
def in_any_order(f: ReduceFn, t: DType) -> bool:
    return f.name in ("max", "min") or t.is_integer


@attribute_function
def of_two(f: ReduceFn, t: DType) -> BinaryFn:
    if not t.is_integer and (f.name not in ("max", "min") or not t.is_float):
        raise Refuse("the order matters, or there is no such function")
    return BinaryFn({"sum": "add", "prod": "mul"}.get(f.name, f.name))


@attribute_function
def is_among(axis: Axis, a: Axes) -> bool:
    return axis.index in a.indices


@attribute_function
def small_power_of_two(c: Scalar) -> bool:
    if c.type.dtype is not DType.F32 or not math.isfinite(float(c.value)):
        return False
    mantissa, exponent = math.frexp(float(c.value))
    return mantissa == 0.5 and -4 <= exponent <= 4


@rule
def slice_of_iota(w: Shape, a: Axis, s: Slices) -> Law:
    """slice(iota, s) = iota of s's size * its step + its start, for one axis of i64"""
    ramp = iota(Shape(s.sizes), a, DType.I64)
    return rewrites(
        slice_(iota(w, a, DType.I64), s),
        binary(
            "add",
            binary(
                "mul", ramp, broadcast(reshape(scalar(only_step(s)), Shape((1,))), Shape(s.sizes))
            ),
            broadcast(reshape(scalar(only_start(s)), Shape((1,))), Shape(s.sizes)),
        ),
        has_value(only_start(s)),
    )


@rule
def repeated_past_transpose(f: BinaryFn, x: Varying, b: Tensor, s: Shape, p: Perm) -> Law:
    """transpose(f(x, broadcast(b, s)), p) = f(transpose(x, p), broadcast(transpose(b, p), p(s)))"""
    return rewrites(
        transpose(binary(f, x, broadcast(b, s)), p),
        binary(f, transpose(x, p), broadcast(transpose(b, p), s.permuted(p))),
    )


@family
def values_out_of_pads(f: Arithmetic, xs: Operands[Varying], vs: Scalars, p: Padding) -> Law:
    """f(pad(x, v)…) = pad(f(x…), f(v…))"""
    return rewrites(f(xs.each(pad, vs, p)), pad(f(xs), f(vs), p))


@family
def slices_out(f: Elementwise, xs: Operands[Tensor], s: Slices) -> Law:
    """f(slice(x, s)…) = slice(f(x…), s), where all x have one shape"""
    return rewrites(f(xs.each(slice_, s)), slice_(f(xs), s), *xs.of_one_shape)


@family
def transpose_out_of_some(f: Elementwise, xs: Some[Tensor], ys: Others[Tensor], p: Perm) -> Law:
    """f(transpose(x, p)…, y…) = transpose(f(x…, transpose(y, p⁻¹)…), p)"""
    return rewrites(
        f(xs.each(transpose, p), ys), transpose(f(xs, ys.each(transpose, p.inverse)), p)
    )


@rule
def reduce_past_transpose(f: ReduceFn, x: Tensor, p: Perm, a: Axes) -> Law:
    """f(transpose(x, p), a) = transpose(f(x, p(a)), p), where the order does not matter"""
    return rewrites(
        reduce(f, transpose(x, p), a),
        transpose(reduce(f, x, moved(p, a)), p),
        in_any_order(f, x.type.dtype),
    )


@rule
def reduce_parts(f: ReduceFn, x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """f(concat(x, y)) = f(f(x), f(y)), where the order does not matter and the axis is reduced"""
    return rewrites(
        reduce(f, concat(x, y, axis), a),
        binary(of_two(f, x.type.dtype), reduce(f, x, a), reduce(f, y, a)),
        is_among(axis, a),
    )


@rule(reassociates=True)
def factor_from_queries_to_keys(
    q: Tensor, k: Tensor, b: Tensor, v: Tensor, c: Scalar, o: Shape, s: Shape
) -> Law:
    """attention(q * c, k, b, v) = attention(q, k * c, b, v), for a power of two c, up to
    rounding"""
    return rewrites(
        attention(binary("mul", q, broadcast(reshape(c, o), s)), k, b, v),
        attention(q, binary("mul", k, broadcast(reshape(c, o), Shape(k.type.shape))), b, v),
        small_power_of_two(c),
    )


@rule(reassociates=True)
def factor_from_image_to_kernel(
    x: Tensor, w: Tensor, v: Window, c: Scalar, o: Shape, s: Shape
) -> Law:
    """winograd(x * c, w) = winograd(x, w * c), for a power of two c and no border, up to
    rounding"""
    return rewrites(
        winograd(binary("mul", x, broadcast(reshape(c, o), s)), w, v),
        winograd(x, binary("mul", w, broadcast(reshape(c, o), Shape(w.type.shape))), v),
        small_power_of_two(c),
        typing.cast(bool, ~v.has_border),
    )
