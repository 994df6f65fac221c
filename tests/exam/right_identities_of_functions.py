"""Laws of identities of unary and binary functions, all of them right."""

from satura.language import (
    BinaryFn,
    Law,
    Tensor,
    UnaryFn,
    attribute_function,
    binary,
    equates,
    rewrites,
    rule,
    unary,
)


@rule
def ceil_from_floor(x: Tensor) -> Law:
    """-floor(-x) = ceil(x)"""
    return equates(unary("neg", unary("floor", unary("neg", x))), unary("ceil", x))


@rule
def negation_as_product(x: Tensor) -> Law:
    """-x = x * -1, on types that have -1"""
    return rewrites(unary("neg", x), binary("mul", x, -1), x.type.dtype.is_signed)


@rule
def double(x: Tensor) -> Law:
    """x + x = x * 2"""
    return rewrites(binary("add", x, x), binary("mul", x, 2))


@rule
def nan_is_unequal(x: Tensor) -> Law:
    """isnan(x) = not(x == x)"""
    return rewrites(unary("isnan", x), unary("not", binary("eq", x, x)))


@rule
def infinite_by_size(x: Tensor) -> Law:
    """isinf(x) = (abs(x) == inf)"""
    return equates(unary("isinf", x), binary("eq", unary("abs", x), float("inf")))


@attribute_function
def is_bound(f: BinaryFn) -> bool:
    return f.name in ("max", "min")


@rule
def nan_of_bound(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """isnan(f(x, y)) = isnan(x) or isnan(y), for max and min"""
    return rewrites(
        unary("isnan", binary(f, x, y)),
        binary("or", unary("isnan", x), unary("isnan", y)),
        is_bound(f),
    )


@attribute_function
def keeps_nan(f: UnaryFn) -> bool:
    """Whether f is a number for all numbers and infinities."""
    return f.name in (
        "neg",
        "abs",
        "relu",
        "sign",
        "floor",
        "ceil",
        "round",
        "exp",
        "tanh",
        "sigmoid",
        "atan",
        "erf",
    )


@rule
def nan_through_function(f: UnaryFn, x: Tensor) -> Law:
    """isnan(f(x)) = isnan(x), for functions that are defined everywhere, infinities included"""
    return rewrites(unary("isnan", unary(f, x)), unary("isnan", x), keeps_nan(f))


@attribute_function
def is_commutative(f: BinaryFn) -> bool:
    return f.name in ("add", "mul", "max", "min", "eq", "and", "or", "xor")


@rule
def function_of_sorted(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(max(x, y), min(x, y)) = f(x, y), for a commutative f"""
    return rewrites(
        binary(f, binary("max", x, y), binary("min", x, y)), binary(f, x, y), is_commutative(f)
    )


@rule
def distance(x: Tensor, y: Tensor) -> Law:
    """max(x, y) - min(x, y) = abs(x - y), on floats"""
    return equates(
        binary("sub", binary("max", x, y), binary("min", x, y)),
        unary("abs", binary("sub", x, y)),
        x.type.dtype.is_float,
    )


@rule
def relu_into_bound(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """relu(f(x, y)) = f(relu(x), relu(y)), for max and min"""
    return equates(
        unary("relu", binary(f, x, y)),
        binary(f, unary("relu", x), unary("relu", y)),
        is_bound(f),
    )


@rule
def size_as_max(x: Tensor) -> Law:
    """max(x, -x) = abs(x), on signed numbers"""
    return rewrites(binary("max", x, unary("neg", x)), unary("abs", x), x.type.dtype.is_signed)
