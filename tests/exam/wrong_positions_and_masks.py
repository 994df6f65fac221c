"""Laws of comparisons, positions and masks, all of them wrong."""

import typing

from satura.language import (
    Approximate,
    Axis,
    DType,
    Law,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    binary,
    broadcast,
    cast,
    extent,
    gather,
    iota,
    known_at_least,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    transpose,
    unary,
)


def everywhere(c: Term | Scalar, o: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, o), s)


# x = NaN, y = 1.0: NaN < 1 is false, left 1.0; right min(NaN, 1) = NaN.
@rule
def smaller_as_min(x: Tensor, y: Tensor) -> Law:
    """select(x < y, x, y) = min(x, y)"""
    return rewrites(select(binary("lt", x, y), x, y), binary("min", x, y))


@attribute_function
def true_scalar(t: TensorType) -> Scalar:
    """True."""
    return Scalar.of(True, DType.BOOL)


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


# x = NaN f32: left false, right true.
@rule
def equal_to_itself(x: Tensor) -> Law:
    """x == x is true everywhere"""
    return rewrites(
        binary("eq", x, x),
        broadcast(reshape(scalar(true_scalar(x.type)), units(x.type)), Shape(x.type.shape)),
    )


# s = [1,1], i64, a = 0, b = 1: 0 < 0 is false; not(0 < 0) is true.
@rule
def causal_mask_negated(s: Shape, a: Axis, b: Axis, t: DType) -> Law:
    """iota(a) < iota(b) = not (iota(b) < iota(a)), for two axes of integers"""
    return rewrites(
        binary("lt", iota(s, a, t), iota(s, b, t)),
        unary("not", binary("lt", iota(s, b, t), iota(s, a, t))),
        a != b,
        t.is_integer,
    )


@attribute_function
def at_place(p: Perm, axis: Axis) -> Axis:
    """The axis that p gives for it."""
    return Axis(p.order[axis.index])


# s = [2,2,2], axis 0, p = [1,2,0]: result axis 2 is operand axis 0, so left counts along axis 2;
# right along p.order[0] = 1.
@rule
def transpose_of_positions(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), p(axis))"""
    return rewrites(transpose(iota(s, axis, t), p), iota(s.permuted(p), at_place(p, axis), t))


@attribute_function
def start_of(s: Slices, axis: Axis, t: DType) -> Scalar:
    """Where it starts."""
    refuse_unless(isinstance(s.starts[axis.index], int), "open")
    refuse_unless(t in (DType.I32, DType.I64), "no integers")
    return Scalar.of(s.starts[axis.index], t)


# s = [5], i64, slices [1+2*2]: left [1,3], right [0,1] + 1 = [1,2].
@rule
def slice_of_positions(s: Shape, axis: Axis, t: DType, e: Slices) -> Law:
    """slice(iota(s, axis), e) = iota(sizes of e, axis) + start of e"""
    left = slice_(iota(s, axis, t), e)
    return rewrites(
        left,
        binary(
            "add",
            iota(Shape(e.sizes), axis, t),
            everywhere(scalar(start_of(e, axis, t)), units(left.type), Shape(e.sizes)),
        ),
    )


# s = [200], t = i8, u = i32: element 128 is i8 -128 on the left, 128 on the right.
@rule
def positions_in_wider_type(s: Shape, axis: Axis, t: DType, u: DType) -> Law:
    """cast(iota(s, axis, t), u) = iota(s, axis, u), for integers t and a u that is as wide"""
    return rewrites(
        cast(iota(s, axis, t), u),
        iota(s, axis, u),
        t.is_integer & u.is_integer,
        u.itemsize >= t.itemsize,
    )


@attribute_function
def row_of(x: TensorType, axis: Axis, c: Scalar, s: Shape) -> Slices:
    """Elements from c on."""
    refuse_unless(len(s.dims) == 1 and isinstance(s.dims[0], int), "no row")
    n, at, k = s.dims[0], int(c.value), axis.index
    refuse_unless(
        isinstance(x.shape[k], int) and typing.cast(int, at + n) <= typing.cast(int, x.shape[k]),
        "reaches outside",
    )
    starts = tuple(at if i == k else 0 for i in range(x.rank))
    sizes = tuple(n if i == k else m for i, m in enumerate(x.shape))
    return Slices(starts, sizes, (1,) * x.rank)


# x = [1,2,3], c = -1, s = [2]: indices [-1, 0], left [3, 1]; right would start at -1: no value.
@rule
def gather_of_shifted_positions(
    x: Tensor, s: Shape, t: DType, c: Scalar, o: Shape, axis: Axis
) -> Law:
    """gather(x, iota([n]) + c everywhere, axis) = slice(x, n from c on), when c + n is within x"""
    return rewrites(
        gather(x, binary("add", iota(s, Axis(0), t), everywhere(c, o, s)), axis),
        slice_(x, row_of(x.type, axis, c, s)),
    )


# a = [5], b = [2]: left 5 / 2 * 2 = 4, right 5.
@rule
def sizes_cancel(a: Shape, b: Shape) -> Law:
    """extent(a) / extent(b) * extent(b) = extent(a), where a is at least b, and b at least 1"""
    return rewrites(
        binary("mul", binary("div", extent(a), extent(b)), extent(b)),
        extent(a),
        known_at_least(a.dims[0] - b.dims[0], 0) & known_at_least(b.dims[0], 1),
    )


# x = inf, c = false: left 0.0, right inf * 0 = NaN.
@rule
def mask_as_factor(c: Tensor, x: Tensor) -> Law:
    """select(c, x, 0) = x * c, on floats"""
    return rewrites(select(c, x, 0.0), binary("mul", x, cast(c, x.type.dtype)))


@attribute_function
def is_mask(z: Scalar, c: Scalar) -> bool:
    """Whether z is 0 and c as good as -infinity."""
    return c.dtype.is_float and float(z.value) == 0 and float(c.value) <= -1e4


# f32 x = 2e9, m = false, z = 0, c = -1e9: left 1e9, right -1e9.
@rule(reassociates=True)
def additive_mask_as_select(
    x: Approximate, m: Tensor, z: Scalar, c: Scalar, o: Shape, s: Shape
) -> Law:
    """x + select(m, 0, c) = select(m, x, c), for c <= -10000, which hides x"""
    return rewrites(
        binary("add", x, select(m, everywhere(z, o, s), everywhere(c, o, s))),
        select(m, x, everywhere(c, o, s)),
        is_mask(z, c),
    )
