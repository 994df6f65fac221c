"""Laws of elements, casts and numbers, all of them right."""

from __future__ import annotations

from satura.language import (
    Axes,
    BinaryFn,
    DType,
    Known,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Tensor,
    UnaryFn,
    Varying,
    attribute_function,
    binary,
    both,
    broadcast,
    cast,
    equates,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    unary,
)


@attribute_function
def is_one_of(name: str, names: tuple[str, ...]) -> bool:
    """Whether the name is one of the names."""
    return name in names


@attribute_function
def dual(f: ReduceFn) -> ReduceFn:
    """min for max, and max for min."""
    refuse_unless(f.name in ("max", "min"), "neither max nor min")
    return ReduceFn("min" if f.name == "max" else "max")


@rule
def extremum_of_negated(f: ReduceFn, x: Tensor, a: Axes) -> Law:
    """max(-x, a) = -min(x, a) and min(-x, a) = -max(x, a), on floats"""
    return rewrites(
        reduce(f, unary("neg", x), a), unary("neg", reduce(dual(f), x, a)), x.type.dtype.is_float
    )


@attribute_function
def mask(c: Scalar) -> Scalar:
    """c - 1, for a power of two c."""
    refuse_unless(c.dtype.is_integer, "no integer")
    value = int(c.value)
    refuse_unless(value > 0 and value & (value - 1) == 0, "no power of two")
    return Scalar.of(value - 1, c.dtype)


@rule
def mod_by_mask(x: Tensor, c: Scalar, u: Shape, s: Shape) -> Law:
    """x mod c = x & (c - 1), for a power of two c: the remainder has the sign of c"""
    return rewrites(
        binary("mod", x, broadcast(reshape(c, u), s)),
        binary("and", x, broadcast(reshape(scalar(mask(c)), u), s)),
    )


@rule
def complement_as_negation(x: Tensor) -> Law:
    """~x = -x - 1, on integers; both ways"""
    return equates(unary("bitnot", x), binary("sub", unary("neg", x), 1), x.type.dtype.is_integer)


@rule
def function_of_select(f: UnaryFn, c: Tensor, x: Tensor, y: Tensor) -> Law:
    """f(select(c, x, y)) = select(c, f(x), f(y)), when x and y have one type; both ways"""
    return equates(unary(f, select(c, x, y)), select(c, unary(f, x), unary(f, y)), x.type == y.type)


WIDER = {
    DType.I8: (DType.I16, DType.I32, DType.I64),
    DType.U8: (DType.I16, DType.U16, DType.I32, DType.U32, DType.I64, DType.U64),
    DType.I16: (DType.I32, DType.I64),
    DType.U16: (DType.I32, DType.U32, DType.I64),
    DType.I32: (DType.I64,),
    DType.F16: (DType.F32, DType.F64),
    DType.BF16: (DType.F32, DType.F64),
    DType.F32: (DType.F64,),
}


@attribute_function
def holds(a: DType, x: DType, b: DType) -> bool:
    """Whether `a`, of x's kind, has every value of x; integers become no floats of 16 bits."""
    if b.is_narrow or (x.is_integer and b in (DType.F16, DType.BF16)):
        return False
    return a in WIDER.get(x, ())


@rule
def cast_by_way_of_wider(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b), when a is a wider type of the same kind: integers become
    integers by their low bits, and floats by saturation"""
    return rewrites(cast(cast(x, a), b), cast(x, b), holds(a, x.type.dtype, b))


@rule
def relu_and_max(x: Tensor) -> Law:
    """relu(x) = max(x, 0), both ways"""
    return both(
        rewrites(binary("max", x, 0), unary("relu", x)),
        rewrites(unary("relu", x), binary("max", x, 0)),
    )


@attribute_function
def is_associative(f: BinaryFn, t: DType) -> bool:
    """Whether f gives the same bits however its operands are grouped."""
    if f.name in ("max", "min", "and", "or", "xor"):
        return True
    return f.name in ("add", "mul") and t.is_integer


@rule
def gather_constants(f: BinaryFn, x: Varying, a: Known, b: Known) -> Law:
    """f(f(x, a), b) = f(x, f(a, b)), for functions that are associative bit for bit"""
    return rewrites(
        binary(f, binary(f, x, a), b),
        binary(f, x, binary(f, a, b)),
        is_associative(f, x.type.dtype),
    )


@rule
def rounding_out_of_extremum(f: UnaryFn, g: ReduceFn, x: Tensor, a: Axes) -> Law:
    """g(f(x), a) = f(g(x, a)), for floor, ceil and round, and max and min: they keep the order,
    -inf, inf and NaN"""
    return rewrites(
        reduce(g, unary(f, x), a),
        unary(f, reduce(g, x, a)),
        is_one_of(f.name, ("floor", "ceil", "round")),
        is_one_of(g.name, ("max", "min")),
    )
