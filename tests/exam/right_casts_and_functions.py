"""Laws of casts, and functions among them, all of them right."""

from satura.language import (
    FLOATS,
    Axis,
    BinaryFn,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    broadcast,
    cast,
    equates,
    iota,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)


@attribute_function
def is_number(t: DType) -> bool:
    return t in FLOATS or (t.is_integer and not t.is_narrow)


@attribute_function
def is_whole(t: DType) -> bool:
    return t.is_integer and not t.is_narrow


@attribute_function
def is_plain_float(t: DType) -> bool:
    return t in FLOATS


@attribute_function
def no_wider(t: DType, u: DType) -> bool:
    return t.itemsize <= u.itemsize


DIGITS = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}


@attribute_function
def holds(t: DType, u: DType) -> bool:
    """Whether t has every value of u."""
    if u in FLOATS:
        return t == u or (t in FLOATS and t.itemsize > u.itemsize)
    if not u.is_integer or u.is_narrow:
        return False
    least, most = u.bounds
    if t in FLOATS:
        return t.itemsize >= 4 and most < 1 << DIGITS[t]
    return t.is_integer and not t.is_narrow and t.bounds[0] <= least and most <= t.bounds[1]


@attribute_function
def compares(f: BinaryFn) -> bool:
    return f.name in ("eq", "lt", "le")


@attribute_function
def chooses(f: BinaryFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def is_half(t: DType) -> bool:
    return t in (DType.F16, DType.BF16)


@attribute_function
def makes_floats(f: UnaryFn) -> bool:
    return f.name not in ("isnan", "isinf")


@attribute_function
def covers(lo: Scalar, hi: Scalar, t: DType) -> bool:
    if not t.is_integer or t.is_narrow or not lo.type.dtype.is_float:
        return False
    return float(lo.value) <= t.bounds[0] and float(hi.value) >= t.bounds[1]


@rule
def bool_through_numbers(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for bools x and numbers a and b"""
    return rewrites(
        cast(cast(x, a), b), cast(x, b), x.type.dtype == DType.BOOL, is_number(a), is_number(b)
    )


@rule
def low_bits_of_low_bits(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), for integers where b is no wider than a"""
    return rewrites(
        cast(cast(x, a), b),
        cast(x, b),
        is_whole(x.type.dtype),
        is_whole(a),
        is_whole(b),
        no_wider(b, a),
    )


@rule
def there_and_back(x: Tensor, a: DType) -> Law:
    """cast(cast(x, a), type of x) = x, where a holds all values of x or is a wider integer"""
    t = x.type.dtype
    return rewrites(
        cast(cast(x, a), t), x, holds(a, t) | (is_whole(a) & is_whole(t) & no_wider(t, a))
    )


@rule
def compare_without_casts(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """f(cast(x, t), cast(y, t)) = f(x, y), for comparisons, where t holds all values of x"""
    return rewrites(
        binary(f, cast(x, t), cast(y, t)),
        binary(f, x, y),
        compares(f),
        x.type == y.type,
        holds(t, x.type.dtype),
    )


@rule
def cast_into_bound(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(max(x, y), t) = max(cast(x, t), cast(y, t)), where t holds all values of x; so for
    min"""
    return rewrites(
        cast(binary(f, x, y), t),
        binary(f, cast(x, t), cast(y, t)),
        chooses(f),
        holds(t, x.type.dtype),
    )


@rule
def half_function_by_f32(f: UnaryFn, x: Tensor) -> Law:
    """f(x) in f16 or bf16 = what f makes in f32, rounded once"""
    t = x.type.dtype
    return rewrites(cast(unary(f, cast(x, DType.F32)), t), unary(f, x), is_half(t), makes_floats(f))


@rule
def cast_into_select(c: Tensor, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(select(c, x, y), t) = select(c, cast(x, t), cast(y, t)), both ways"""
    return equates(cast(select(c, x, y), t), select(c, cast(x, t), cast(y, t)), x.type == y.type)


@rule
def bounds_in_saturating_cast(
    x: Tensor, t: DType, lo: Scalar, hi: Scalar, o: Shape, s: Shape
) -> Law:
    """cast(min(max(x, lo), hi), t) = cast(x, t), where lo and hi leave all of the integer t"""
    return rewrites(
        cast(
            binary(
                "min", binary("max", x, broadcast(reshape(lo, o), s)), broadcast(reshape(hi, o), s)
            ),
            t,
        ),
        cast(x, t),
        covers(lo, hi, t),
    )


@rule
def cast_truncates_by_itself(x: Tensor, t: DType) -> Law:
    """cast(select(x < 0, ceil(x), floor(x)), t) = cast(x, t), for integers t"""
    return rewrites(
        cast(select(binary("lt", x, 0.0), unary("ceil", x), unary("floor", x)), t),
        cast(x, t),
        is_whole(t),
    )


@rule
def truth_of_numbers(x: Tensor) -> Law:
    """bool(x) = not (x == 0), for numbers: a NaN is true, -0.0 is not"""
    return rewrites(cast(x, DType.BOOL), unary("not", binary("eq", x, 0)), is_number(x.type.dtype))


@rule
def nan_of_cast(x: Tensor, t: DType) -> Law:
    """isnan(cast(x, t)) = isnan(x), for floats"""
    return rewrites(
        unary("isnan", cast(x, t)),
        unary("isnan", x),
        is_plain_float(x.type.dtype),
        is_plain_float(t),
    )


@rule
def cast_of_iota(s: Shape, a: Axis, t: DType, u: DType) -> Law:
    """cast(iota of t, u) = iota of u, for integers where u is no wider than t"""
    return rewrites(cast(iota(s, a, t), u), iota(s, a, u), is_whole(t), is_whole(u), no_wider(u, t))
