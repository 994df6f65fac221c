"""Laws of integers and bits, all of them right."""

from satura.language import (
    Axes,
    BinaryFn,
    DType,
    Law,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    equates,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


def width(t: DType) -> int:
    return 8 * t.itemsize


def wrapped(value: int, t: DType) -> Scalar:
    value &= (1 << width(t)) - 1
    if t.is_signed and value >> (width(t) - 1):
        value -= 1 << width(t)
    return Scalar.of(value, t)


@attribute_function
def is_plain_integer(t: DType) -> bool:
    return t.is_integer and not t.is_narrow


@attribute_function
def high_mask(c: Scalar) -> Scalar:
    t = c.type.dtype
    if not t.is_integer or not 0 <= int(c.value) < width(t):
        raise Refuse("no valid shift")
    return wrapped(-1 << int(c.value), t)


@attribute_function
def low_mask(c: Scalar) -> Scalar:
    t = c.type.dtype
    if not t.is_integer or int(c.value) <= 0 or int(c.value).bit_count() != 1:
        raise Refuse("no power of two")
    return wrapped(int(c.value) - 1, t)


@attribute_function
def is_last_bit(c: Scalar) -> bool:
    t = c.type.dtype
    return t.is_integer and t.is_signed and int(c.value) == width(t) - 1


@attribute_function
def is_odd(c: Scalar) -> bool:
    return c.type.dtype.is_integer and int(c.value) % 2 == 1


@attribute_function
def other_bound(f: BinaryFn) -> BinaryFn:
    if f.name not in ("max", "min"):
        raise Refuse("no bound")
    return BinaryFn("min" if f.name == "max" else "max")


@attribute_function
def regroups(f: BinaryFn, t: DType) -> bool:
    return f.name in ("and", "or", "xor", "max", "min") or (
        f.name in ("add", "mul") and t.is_integer
    )


@attribute_function
def of_a_ring(f: BinaryFn) -> bool:
    return f.name in ("add", "sub", "mul", "and", "or", "xor")


@attribute_function
def adds_or_multiplies(f: ReduceFn) -> bool:
    return f.name in ("sum", "prod")


@attribute_function
def no_wider(t: DType, u: DType) -> bool:
    return t.itemsize <= u.itemsize


@rule
def cancel_added(x: Tensor, y: Tensor) -> Law:
    """(x + y) - y = x, on integers"""
    return rewrites(binary("sub", binary("add", x, y), y), x, x.type.dtype.is_integer)


@rule
def mask_of_shifts(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x >> c) << c = x & (-1 << c), where c is a valid shift"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("shl", binary("shr", x, k), k),
        binary("and", x, broadcast(reshape(scalar(high_mask(c)), ones), s)),
    )


@rule
def complement_by_negation(x: Tensor) -> Law:
    """~x = -x - 1, both ways, on integers"""
    return equates(unary("bitnot", x), binary("sub", unary("neg", x), 1), x.type.dtype.is_integer)


@rule
def mod_as_mask(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x mod 2^k = x & (2^k - 1), on integers"""
    return rewrites(
        binary("mod", x, broadcast(reshape(c, ones), s)),
        binary("and", x, broadcast(reshape(scalar(low_mask(c)), ones), s)),
    )


@rule
def select_by_mask(b: Tensor, x: Tensor, t: DType) -> Law:
    """x & -t(b) = select(b, x, 0), for bools b"""
    return rewrites(
        binary("and", x, unary("neg", cast(b, t))), select(b, x, 0), b.type.dtype == DType.BOOL
    )


@rule
def equal_where_xor_is_zero(x: Tensor, y: Tensor) -> Law:
    """(x ^ y) == 0 = x == y"""
    return rewrites(binary("eq", binary("xor", x, y), 0), binary("eq", x, y))


@rule
def abs_by_sign_mask(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """(x ^ m) - m = abs(x), where m = x >> (width - 1), on signed integers"""
    m = binary("shr", x, broadcast(reshape(c, ones), s))
    return rewrites(binary("sub", binary("xor", x, m), m), unary("abs", x), is_last_bit(c))


@rule
def complement_of_bound(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """~max(x, y) = min(~x, ~y), and with max and min exchanged"""
    return rewrites(
        unary("bitnot", binary(f, x, y)),
        binary(other_bound(f), unary("bitnot", x), unary("bitnot", y)),
    )


@rule
def regroup_exactly(f: BinaryFn, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """f(f(x, y), z) = f(x, f(y, z)), for bit ops and bounds, and sums and products of integers"""
    return rewrites(
        binary(f, binary(f, x, y), z), binary(f, x, binary(f, y, z)), regroups(f, x.type.dtype)
    )


@rule
def cancel_odd_factor(x: Tensor, y: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * c == y * c = x == y, on integers where c is odd"""
    k = broadcast(reshape(c, ones), s)
    return rewrites(
        binary("eq", binary("mul", x, k), binary("mul", y, k)), binary("eq", x, y), is_odd(c)
    )


@rule
def narrow_before_sum(f: ReduceFn, x: Tensor, a: Axes, t: DType) -> Law:
    """cast(sum(x), t) = sum(cast(x, t)), to an integer no wider, and the same for products"""
    return rewrites(
        cast(reduce(f, x, a), t),
        reduce(f, cast(x, t), a),
        adds_or_multiplies(f),
        is_plain_integer(x.type.dtype),
        is_plain_integer(t),
        no_wider(t, x.type.dtype),
    )


@rule
def compute_low_bits(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(cast(x, t), cast(y, t)), type of x) = f(x, y), for f whose low bits need no others,
    and an integer t no shorter than x"""
    u = x.type.dtype
    return rewrites(
        cast(binary(f, cast(x, t), cast(y, t)), u),
        binary(f, x, y),
        of_a_ring(f),
        x.type == y.type,
        is_plain_integer(u),
        is_plain_integer(t),
        no_wider(u, t),
    )
