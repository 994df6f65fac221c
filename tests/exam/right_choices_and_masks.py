"""Laws of choices, masks and signs, all of them right."""

from satura.language import (
    Arithmetic,
    BinaryFn,
    DType,
    Elementwise,
    Known,
    Law,
    Operands,
    Others,
    Padding,
    Perm,
    Refuse,
    Scalars,
    Shape,
    Some,
    Tensor,
    UnaryFn,
    Untransposed,
    attribute_function,
    binary,
    both,
    broadcast,
    cast,
    family,
    pad,
    rewrites,
    rule,
    select,
    transpose,
    unary,
)


@rule
def nested_choice(c: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """select(c, select(c, x, y), z) = select(c, x, z)"""
    return rewrites(select(c, select(c, x, y), z), select(c, x, z))


@rule
def function_of_choice(f: UnaryFn, c: Tensor, x: Tensor, y: Tensor) -> Law:
    """f(select(c, x, y)) = select(c, f(x), f(y)), both ways"""
    return both(
        rewrites(unary(f, select(c, x, y)), select(c, unary(f, x), unary(f, y))),
        rewrites(
            select(c, unary(f, x), unary(f, y)),
            unary(f, select(c, x, y)),
            x.type == y.type,
        ),
    )


@rule
def choose_before_common_operand(f: BinaryFn, c: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Law:
    """select(c, f(x, z), f(y, z)) = f(select(c, x, y), z)"""
    return rewrites(select(c, binary(f, x, z), binary(f, y, z)), binary(f, select(c, x, y), z))


@attribute_function
def is_upper_bound(f: BinaryFn) -> bool:
    """Whether f compares with an upper bound."""
    return f.name in ("lt", "le")


@rule
def below_both(f: BinaryFn, x: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """x < broadcast(a) and x < broadcast(b) = x < broadcast(min(a, b)), for a and b of one shape;
    also of <="""
    return rewrites(
        binary("and", binary(f, x, broadcast(a, s)), binary(f, x, broadcast(b, s))),
        binary(f, x, broadcast(binary("min", a, b), s)),
        is_upper_bound(f),
        a.type.shape == b.type.shape,
    )


@rule
def either_condition(c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(c, x, select(d, x, y)) = select(c or d, x, y)"""
    return rewrites(select(c, x, select(d, x, y)), select(binary("or", c, d), x, y))


@rule
def integer_mask_as_choice(c: Tensor, x: Tensor, t: DType) -> Law:
    """x * cast(c, t) = select(c, x, 0), for bools c and integers x"""
    return rewrites(
        binary("mul", x, cast(c, t)),
        select(c, x, 0),
        c.type.dtype == DType.BOOL,
        t.is_integer,
    )


@family
def arithmetic_before_pad(f: Arithmetic, xs: Operands[Tensor], vs: Scalars, b: Padding) -> Law:
    """f(pad(x, v, b)…) = pad(f(x…), f(v…), b)"""
    return rewrites(f(xs.each(pad, vs, b)), pad(f(xs), f(vs), b))


@family
def transpose_out(f: Elementwise, xs: Some[Untransposed], ys: Others[Tensor], p: Perm) -> Law:
    """f(transpose(x, p)…, y…) = transpose(f(x…, transpose(y, p⁻¹)…), p)"""
    return rewrites(
        f(xs.each(transpose, p), ys), transpose(f(xs, ys.each(transpose, p.inverse)), p)
    )


@attribute_function
def mirrored(f: UnaryFn) -> UnaryFn:
    """g such that f(-x) = -g(x)."""
    for name, dual in (("floor", "ceil"), ("ceil", "floor"), ("round", "round")):
        if f.name == name:
            return UnaryFn(dual)
    raise Refuse("f has no such g")


@rule
def mirror_rounding(f: UnaryFn, x: Tensor) -> Law:
    """f(-x) = -g(x), where g is ceil for floor, floor for ceil, and round for round"""
    return rewrites(unary(f, unary("neg", x)), unary("neg", unary(mirrored(f), x)))


@rule
def signs_cancel(x: Tensor, y: Tensor) -> Law:
    """-x * -y = x * y, and no rounding is another"""
    return rewrites(binary("mul", unary("neg", x), unary("neg", y)), binary("mul", x, y))
