"""Laws of sums, extremes and casts, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    DType,
    Law,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    known_at_least,
    reduce,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def grows(f: UnaryFn) -> bool:
    """Whether f(x) <= f(y) where x <= y."""
    return f.name in ("floor", "ceil", "round", "sqrt", "log", "relu", "sign")


@attribute_function
def is_full(t: TensorType, a: Axes) -> bool:
    """Whether there is something to reduce."""
    return all(known_at_least(t.shape[i], 1) for i in a.indices)


@attribute_function
def is_power_of_two(c: Scalar) -> bool:
    """Whether c is a power of two, as a float."""
    if not c.dtype.is_float or c.dtype.is_narrow:
        return False
    value = float(c.value)
    return value in tuple(2.0**k for k in range(-8, 9))


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


@attribute_function
def shape_of(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


@attribute_function
def are_integers(t: TensorType, u: DType) -> bool:
    """Whether both have whole numbers."""
    return t.dtype.is_integer and u.is_integer and not t.dtype.is_narrow and not u.is_narrow


@attribute_function
def is_integer(u: DType) -> bool:
    """Whether u has whole numbers that are added."""
    return u.is_integer and not u.is_narrow


@attribute_function
def is_unit_along(t: TensorType, a: Axes) -> bool:
    """Whether every axis of a has extent 1."""
    return all(t.shape[i] == 1 for i in a.indices)


@attribute_function
def zero_of(t: DType) -> Scalar:
    """0 of t."""
    return Scalar.of(0, t)


@attribute_function
def axes_before(p: Perm, a: Axes) -> Axes:
    """The axes that p moves to a."""
    return Axes(tuple(sorted(p.order[i] for i in a.indices)))


@attribute_function
def disjoint(a: Axes, b: Axes) -> bool:
    """Whether a and b share no axis."""
    return not set(a.indices) & set(b.indices)


@attribute_function
def halves(x: TensorType, a: Slices, b: Slices, axis: Axis) -> bool:
    """Whether a and b are the first and the second half of x."""
    n = x.shape[axis.index]
    half = n // 2
    for s, start in ((a, 0), (b, half)):
        for i in range(x.rank):
            wanted = (start, half) if i == axis.index else (0, x.shape[i])
            if s.steps[i] != 1 or (s.starts[i], s.sizes[i]) != wanted:
                return False
    return True


# x = [-1, 4] : f32, f = sqrt: left max(NaN, 2) = NaN; right sqrt(4) = 2. (Also log.)
@rule
def growing_function_past_max(f: UnaryFn, x: Tensor, a: Axes) -> Law:
    """max(f(x), a) = f(max(x, a)), for an f that grows, when a is not empty"""
    return rewrites(
        reduce("max", unary(f, x), a), unary(f, reduce("max", x, a)), grows(f) & is_full(x.type, a)
    )


# x = [true, false], y = [false, true]: left any(false, false) = false; right true and true.
@rule
def any_of_and(x: Tensor, y: Tensor, a: Axes) -> Law:
    """max(x and y, a) = max(x, a) and max(y, a), for bools"""
    return rewrites(
        reduce("max", binary("and", x, y), a),
        binary("and", reduce("max", x, a), reduce("max", y, a)),
        x.type.dtype == DType.BOOL,
    )


# x = f32[1] = [0.0]: left 0 + -0.0 = 0.0; right -(0.0) = -0.0. (Right for integers.)
@rule
def sum_of_negated(x: Tensor, a: Axes) -> Law:
    """sum(-x, a) = -sum(x, a): the sign is exact"""
    return rewrites(reduce("sum", unary("neg", x), a), unary("neg", reduce("sum", x, a)))


# x = [3e38, 3e38, -3e38] : f32, c = 0.5: left 1.5e38; right (3e38 + 3e38 = inf) * 0.5 = inf. Also
# x = [1e-45, 1e-45], c = 0.5: left 0 + 0, right 1e-45.
@rule
def power_of_two_out_of_sum(x: Tensor, c: Scalar, ones: Shape, s: Shape, a: Axes) -> Law:
    """sum(x * c, a) = sum(x, a) * c, for powers of two, which round nothing"""
    total = reduce("sum", x, a)
    return rewrites(
        reduce("sum", binary("mul", x, broadcast(reshape(c, ones), s)), a),
        binary("mul", total, broadcast(reshape(c, ones), shape_of(total.type))),
        is_power_of_two(c),
    )


# x = [100, 100] : i8, t = i32: left i32(-56) = -56; right 200.
@rule
def widen_before_sum(x: Tensor, a: Axes, t: DType) -> Law:
    """cast(sum(x, a), t) = sum(cast(x, t), a), for integers"""
    return rewrites(
        cast(reduce("sum", x, a), t), reduce("sum", cast(x, t), a), are_integers(x.type, t)
    )


# x = f32[1] = [-0.0], f = sum: left 0.0; right -0.0.
@rule
def reduce_of_single_elements(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """reduce(x, a) = x, when all axes of a have extent 1"""
    return rewrites(reduce(f, x, a), x, is_unit_along(x.type, a))


# x = [[0, 1], [1, 0]], a = [1], b = [0]: left max of (0, 0) = 0; right min of (1, 1) = 1.
@rule
def exchange_max_and_min(x: Tensor, a: Axes, b: Axes) -> Law:
    """max(min(x, a), b) = min(max(x, b), a), for other axes"""
    return rewrites(
        reduce("max", reduce("min", x, a), b),
        reduce("min", reduce("max", x, b), a),
        disjoint(a, b),
    )


# x = bool[128], all true, t = i8: the sum is 128 = -128, and 0 < -128 is false; right true.
@rule
def any_by_counting(x: Tensor, a: Axes, t: DType, u: Shape, s: Shape) -> Law:
    """0 < sum(cast(x, t), a) = max(x, a), for bools x and integers t"""
    return rewrites(
        binary("lt", broadcast(reshape(zero_of(t), u), s), reduce("sum", cast(x, t), a)),
        reduce("max", x, a),
        (x.type.dtype == DType.BOOL) & is_integer(t),
    )


# x = [[1e8, 1], [-1e8, 0]] : f32, p = [1, 0], a = [0, 1]. left, in the order of the transposed:
# 1e8 - 1e8 + 1 + 0 = 1; right, in that of x: 1e8 + 1 - 1e8 + 0 = 0.
@rule
def sum_past_transpose(x: Tensor, p: Perm, a: Axes) -> Law:
    """sum(transpose(x, p), a) = transpose(sum(x, the same axes), p), for floats bit for bit"""
    return rewrites(
        reduce("sum", transpose(x, p), a),
        transpose(reduce("sum", x, axes_before(p, a)), p),
        x.type.dtype.is_float,
    )


# x = [-1, 0] : i32: left bools true, false: true. right: max = 0: false. (Right for unsigned ones.)
@rule
def any_nonzero_as_max(x: Tensor, a: Axes) -> Law:
    """max(cast(x, bool), a) = cast(max(x, a), bool): something is not 0"""
    return rewrites(
        reduce("max", cast(x, DType.BOOL), a),
        cast(reduce("max", x, a), DType.BOOL),
        typing.cast(bool, x.type.dtype.is_integer & ~x.type.dtype.is_narrow),
    )


# x = [NaN, 5] : f32, t = i32: left cast(NaN) = 0; right max(0, 5) = 5.
@rule
def cast_past_max(f: ReduceFn, x: Tensor, a: Axes, t: DType) -> Law:
    """cast(max(x, a), t) = max(cast(x, t), a), and so for min: casts from floats to integers
    grow"""
    return rewrites(
        cast(reduce(f, x, a), t),
        reduce(f, cast(x, t), a),
        (f != ReduceFn("sum")) & (f != ReduceFn("prod")),
        x.type.dtype.is_float & is_integer(t),
    )


# x = [1, 2, 3], a = [0+1], b = [1+1]: left 1, 2; right 1, 2, 3. (Right for an even extent.)
@rule
def halves_are_the_whole(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(first half of x, second half of x) = x"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), x, halves(x.type, a, b, axis))
