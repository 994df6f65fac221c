"""Laws of reductions, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    DType,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    pad,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    unary,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def is_extreme(f: ReduceFn) -> bool:
    """Whether f is max or min."""
    return f.name in ("max", "min")


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """min for max, max for min."""
    refuse_unless(f.name in ("max", "min"))
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def is_plain_float(t: TensorType) -> bool:
    """Whether arithmetic knows the floats of t."""
    return t.dtype.is_float and not t.dtype.is_narrow


@attribute_function
def only_adds(f: ReduceFn) -> bool:
    """Whether low bits of the result are decided by low bits of the elements."""
    return f.name in ("sum", "prod")


@attribute_function
def narrows(x: TensorType, t: DType) -> bool:
    """Whether both have integers, and t no more bits."""
    return (
        x.dtype.is_integer
        and t.is_integer
        and not x.dtype.is_narrow
        and not t.is_narrow
        and t.itemsize <= x.dtype.itemsize
    )


@attribute_function
def leaves_alone(f: ReduceFn, t: TensorType) -> bool:
    """Whether f of one element is this element: a sum makes 0.0 of -0.0."""
    return f.name != "sum" or not t.dtype.is_float


@attribute_function
def is_unit_along(t: TensorType, a: Axes) -> bool:
    """Whether every axis of a has extent 1."""
    return all(t.shape[i] == 1 for i in a.indices)


@attribute_function
def spares(axis: Axis, a: Axes) -> bool:
    """Whether axis is none of a."""
    return axis.index not in a.indices


@attribute_function
def step_of(f: ReduceFn, t: TensorType) -> BinaryFn:
    """The binary function of f, where the order of the elements does not matter."""
    refuse_unless(t.dtype != DType.BOOL, "bools")
    refuse_unless(f.name in ("max", "min") or t.dtype.is_integer, "it rounds")
    return BinaryFn({"sum": "add", "prod": "mul", "max": "max", "min": "min"}[f.name])


@attribute_function
def is_neutral(v: Scalar, f: ReduceFn) -> bool:
    """Whether v is f's identity, bit for bit, where the order of the elements does not matter."""
    t = v.dtype
    if t.is_narrow or t == DType.BOOL:
        return False
    if f.name in ("sum", "prod"):
        return t.is_integer and int(v.value) == (1 if f.name == "prod" else 0)
    if t.is_float:
        return float(v.value) == (float("-inf") if f.name == "max" else float("inf"))
    return int(v.value) == t.bounds[0 if f.name == "max" else 1]


@attribute_function
def pads_only(b: Padding, a: Axes) -> bool:
    """Whether b pads nothing but a."""
    return all(
        i in a.indices or (lo == 0 and hi == 0) for i, (lo, hi) in enumerate(zip(b.lo, b.hi))
    )


@attribute_function
def ones_at(s: Shape, a: Axes) -> Shape:
    """s with extent 1 along a."""
    return Shape(tuple(1 if i in a.indices else d for i, d in enumerate(s.dims)))


@attribute_function
def repetitions(x: TensorType, s: Shape, a: Axes) -> Scalar:
    """How often each integer is added, in its own type."""
    refuse_unless(x.dtype.is_integer and not x.dtype.is_narrow, "no integers")
    count = 1
    for i, (n, d) in enumerate(zip(x.shape, s.dims)):
        if i in a.indices and n == 1:
            refuse_unless(numbers(d), "symbolic")
            count *= typing.cast(int, d)
    low, high = x.dtype.bounds
    refuse_unless(low <= count <= high, "too many")
    return Scalar.of(count, x.dtype)


@attribute_function
def units(s: Shape) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * len(s.dims))


@attribute_function
def is_unsigned(t: TensorType) -> bool:
    """Whether t has whole numbers from 0 on."""
    return t.dtype.is_integer and not t.dtype.is_signed and not t.dtype.is_narrow


@attribute_function
def joined(a: Axes, b: Axes) -> Axes:
    """The axes of both."""
    return Axes(tuple(sorted({*a.indices, *b.indices})))


@attribute_function
def is_wide(t: TensorType) -> bool:
    """Whether t is f32 or f64."""
    return t.dtype in (DType.F32, DType.F64)


# ~x turns the order of all integers round, also of unsigned ones, and exchanges the bounds.
@rule
def max_of_bitnot(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """max(~x, a) = ~min(x, a), and the other way round"""
    return rewrites(reduce(f, unary("bitnot", x), a), unary("bitnot", reduce(opposite(f), x, a)))


# Nothing: max(-inf, -inf) = -inf. -0.0 alone: max(-0.0, 0.0) = 0.0.
@rule
def largest_magnitude(x: Tensor, a: Axes) -> Law:
    """max(abs(x), a) = the larger one of max(x, a) and -min(x, a), for floats"""
    return rewrites(
        reduce("max", unary("abs", x), a),
        binary("max", reduce("max", x, a), unary("neg", reduce("min", x, a))),
        is_plain_float(x.type),
    )


@rule
def any_of_or(x: Tensor, y: Tensor, a: Axes) -> Law:
    """max(x or y, a) = max(x, a) or max(y, a), for bools"""
    return rewrites(
        reduce("max", binary("or", x, y), a),
        binary("or", reduce("max", x, a), reduce("max", y, a)),
        x.type.dtype == DType.BOOL,
    )


@rule
def not_any(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """not(any x) = all(not x), and the other way round"""
    return rewrites(unary("not", reduce(f, x, a)), reduce(opposite(f), unary("not", x), a))


@rule
def narrow_before_sum(f: ReduceFn, x: Tensor, a: Axes, t: DType) -> Law:
    """cast(f(x, a), t) = f(cast(x, t), a), for sums and products of integers, t not wider"""
    return rewrites(
        cast(reduce(f, x, a), t),
        reduce(f, cast(x, t), a),
        only_adds(f) & narrows(x.type, t),
    )


@rule
def reduce_of_units(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """reduce(x, a) = x, when all axes of a have extent 1, but for sums of floats"""
    return rewrites(reduce(f, x, a), x, is_unit_along(x.type, a) & leaves_alone(f, x.type))


@rule
def reduce_beside_concat(f: ReduceFn, x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """reduce(concat(x, y, axis), a) = concat(reduce(x, a), reduce(y, a), axis), for another axis"""
    return rewrites(
        reduce(f, concat(x, y, axis), a),
        concat(reduce(f, x, a), reduce(f, y, a), axis),
        spares(axis, a),
    )


@rule
def reduce_through_concat(f: ReduceFn, x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """reduce(concat(x, y, axis), a) = f(reduce(x, a), reduce(y, a)), when nothing is rounded"""
    return rewrites(
        reduce(f, concat(x, y, axis), a),
        binary(step_of(f, x.type), reduce(f, x, a), reduce(f, y, a)),
        typing.cast(bool, ~spares(axis, a)),
    )


@rule
def reduce_of_neutral_pad(f: ReduceFn, x: Tensor, v: Scalar, b: Padding, a: Axes) -> Law:
    """reduce(pad(x, v, b), a) = reduce(x, a), when v is f's identity and b pads only a"""
    return rewrites(reduce(f, pad(x, v, b), a), reduce(f, x, a), is_neutral(v, f) & pads_only(b, a))


@rule
def sum_of_repeated(x: Tensor, s: Shape, a: Axes) -> Law:
    """sum(broadcast(x, s), a) = broadcast(sum(x, a)) * the number of repetitions, for integers"""
    return rewrites(
        reduce("sum", broadcast(x, s), a),
        binary(
            "mul",
            broadcast(reduce("sum", x, a), ones_at(s, a)),
            broadcast(reshape(scalar(repetitions(x.type, s, a)), units(s)), ones_at(s, a)),
        ),
    )


@rule
def any_nonzero(x: Tensor, a: Axes) -> Law:
    """max(cast(x, bool), a) = cast(max(x, a), bool), for unsigned integers"""
    return rewrites(
        reduce("max", cast(x, DType.BOOL), a),
        cast(reduce("max", x, a), DType.BOOL),
        is_unsigned(x.type),
    )


@rule(reassociates=True)
def sum_of_sums(x: Tensor, a: Axes, b: Axes) -> Law:
    """sum(sum(x, a), b) = sum(x, a and b), in f32 and f64"""
    return rewrites(
        reduce("sum", reduce("sum", x, a), b), reduce("sum", x, joined(a, b)), is_wide(x.type)
    )
