"""Laws of orders and casts, all of them right."""

from satura.language import (
    FLOATS,
    Axes,
    BinaryFn,
    DType,
    Law,
    ReduceFn,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    cast,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    select,
    unary,
)

DUALS = {"max": "min", "min": "max", "and": "or", "or": "and"}


@attribute_function
def mirrored(f: BinaryFn, g: UnaryFn, type_: TensorType) -> BinaryFn:
    """The dual of f, where g reverses the order, bit by bit or of all numbers, for every value."""
    refuse_unless(f.name in DUALS, f"{f} is no lattice operation")
    negates = g.name == "neg" and type_.dtype.is_float
    complements = g.name in ("bitnot", "not")
    refuse_unless(negates or complements, f"{g} does not reverse the order of {type_.dtype}")
    return BinaryFn(DUALS[f.name])


@rule
def reverse_lattice(f: BinaryFn, g: UnaryFn, x: Tensor, y: Tensor) -> Law:
    """g(f(x, y)) = f'(g(x), g(y)) for dual f and f', where g is the negation of floats, ~ or not"""
    return rewrites(
        unary(g, binary(f, x, y)),
        binary(mirrored(f, g, x.type), unary(g, x), unary(g, y)),
    )


@rule
def less_or_equal(x: Tensor, y: Tensor) -> Law:
    """x < y or x == y is x <= y, NaN included"""
    return rewrites(binary("or", binary("lt", x, y), binary("eq", x, y)), binary("le", x, y))


@rule
def larger_of_two_below(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """max(x, y) < z is x < z and y < z, NaN included"""
    return rewrites(
        binary("lt", binary("max", x, y), z),
        binary("and", binary("lt", x, z), binary("lt", y, z)),
    )


@rule
def choose_larger(x: Tensor, y: Tensor) -> Law:
    """select(y < x, x, y) = max(x, y) on integers"""
    return rewrites(select(binary("lt", y, x), x, y), binary("max", x, y), x.type.dtype.is_integer)


@attribute_function
def keeps_low_bits(x: TensorType, d: DType) -> bool:
    """Whether a cast to d is a homomorphism of rings, to a type with arithmetic."""
    integers = x.dtype.is_integer and d.is_integer
    return integers and not x.dtype.is_narrow and not d.is_narrow and d.itemsize <= x.dtype.itemsize


@attribute_function
def has_carries_upwards(f: BinaryFn) -> bool:
    return f.name in ("add", "sub", "mul", "and", "or", "xor")


@rule
def compute_narrow(f: BinaryFn, x: Tensor, y: Tensor, d: DType) -> Law:
    """cast(f(x, y), d) = f(cast(x, d), cast(y, d)) on integers, when d is no wider, for f that look
    at low bits alone"""
    return rewrites(
        cast(binary(f, x, y), d),
        binary(f, cast(x, d), cast(y, d)),
        keeps_low_bits(x.type, d),
        has_carries_upwards(f),
    )


@attribute_function
def is_ring_fold(f: ReduceFn) -> bool:
    return f.name in ("sum", "prod")


@rule
def fold_narrow(f: ReduceFn, x: Tensor, axes: Axes, d: DType) -> Law:
    """cast(f(x, axes), d) = f(cast(x, d), axes) for sums and products of integers, when d is no
    wider"""
    return rewrites(
        cast(reduce(f, x, axes), d),
        reduce(f, cast(x, d), axes),
        keeps_low_bits(x.type, d),
        is_ring_fold(f),
    )


def _width(d: DType) -> int:
    least, most = d.bounds
    return (most - least).bit_length()


@attribute_function
def loses_in_order(x: TensorType, a: DType, b: DType) -> bool:
    """Whether all three are integers, and b has no more bits than a."""
    return x.dtype.is_integer and a.is_integer and b.is_integer and _width(b) <= _width(a)


@rule
def merge_integer_casts(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for integers, when b has no more bits than a"""
    return rewrites(cast(cast(x, a), b), cast(x, b), loses_in_order(x.type, a, b))


_DIGITS = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
_WIDER = {
    (DType.F16, DType.F32),
    (DType.F16, DType.F64),
    (DType.BF16, DType.F32),
    (DType.BF16, DType.F64),
    (DType.F32, DType.F64),
}


@attribute_function
def holds(x: TensorType, d: DType) -> bool:
    """Whether d has every value of x, which are numbers with arithmetic."""
    c = x.dtype
    if c.is_narrow or d.is_narrow:
        return False
    if c.is_float:
        return (c, d) in _WIDER
    if not c.is_integer:
        return False
    if d in FLOATS:
        return c.bounds[1].bit_length() <= _DIGITS[d]
    return d.is_integer and d.bounds[0] <= c.bounds[0] and c.bounds[1] <= d.bounds[1]


@attribute_function
def compares(f: BinaryFn) -> bool:
    return f.name in ("eq", "lt", "le")


@rule
def compare_before_widening(f: BinaryFn, x: Tensor, y: Tensor, d: DType) -> Law:
    """f(cast(x, d), cast(y, d)) = f(x, y) for comparisons, when d has all values of x and y"""
    return rewrites(
        binary(f, cast(x, d), cast(y, d)),
        binary(f, x, y),
        compares(f) & holds(x.type, d),
        x.type == y.type,
    )


@rule
def there_and_back(x: Tensor, d: DType, e: DType) -> Law:
    """cast(cast(x, d), e) = x, when e is x's type and d has all of its values"""
    return rewrites(cast(cast(x, d), e), x, e == x.type.dtype, holds(x.type, d))
