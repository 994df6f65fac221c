"""Laws of gathers, ramps of indices and places of extremes, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    Constant,
    Count,
    DType,
    Law,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    gather,
    iota,
    reduce,
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


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def start_of(s: Slices, axis: Axis, x: TensorType, i: TensorType) -> Scalar:
    """Where s begins along the axis; it takes everything on the others, in steps of 1."""
    for at, (start, size, step, n) in enumerate(zip(s.starts, s.sizes, s.steps, x.shape)):
        refuse_unless(step == 1, "a step is not 1")
        refuse_unless(at == axis.index or (start == 0 and size == n), "another axis is cut")
    refuse_unless(numbers(s.starts[axis.index]), "symbolic")
    return Scalar.of(s.starts[axis.index], i.dtype)


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


@attribute_function
def shape_of(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


@attribute_function
def is_line(t: TensorType) -> bool:
    """Whether t has one axis."""
    return t.rank == 1


@attribute_function
def differ(a: Axis, b: Axis) -> bool:
    """Whether a and b are two axes."""
    return a.index != b.index


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """min for max, max for min."""
    refuse_unless(f.name in ("max", "min"))
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def has_numbers(t: TensorType) -> bool:
    """Whether t is signed and not narrow."""
    return t.dtype.is_signed and not t.dtype.is_narrow


@attribute_function
def last_place(x: TensorType, s: Slices, a: Axis) -> Scalar:
    """The last index along the axis, which s turns round and leaves the others."""
    refuse_unless(numbers(*x.shape, *s.starts, *s.sizes), "symbolic")
    for i, (n, start, size, step) in enumerate(zip(x.shape, s.starts, s.sizes, s.steps)):
        turned = (start, step) == ((n - 1, -1) if i == a.index else (0, 1))
        refuse_unless(turned and size == n and typing.cast(int, n) > 0, "it is not turned round")
    return Scalar.of(x.shape[a.index] - 1, DType.I64)


@attribute_function
def axis_before(p: Perm, a: Axis) -> Axis:
    """The axis that p moves to a."""
    return Axis(p.order[a.index])


@attribute_function
def ramp(c: Constant, x: TensorType, axis: Axis) -> Slices:
    """What the indices c choose, which count in even steps."""
    refuse_unless(len(c.type.shape) == 1 and c.size >= 2, "no ramp")
    refuse_unless(numbers(x.shape[axis.index]), "symbolic")
    values = [int(v) for v in c.array]
    step = values[1] - values[0]
    even = values[-1] - values[0] == step * (len(values) - 1)
    refuse_unless(even and step != 0, "the steps are not even")
    refuse_unless(min(values[0], values[-1]) >= 0, "negative")
    refuse_unless(max(values[0], values[-1]) < typing.cast(int, x.shape[axis.index]), "outside")
    starts, sizes, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[axis.index], sizes[axis.index], steps[axis.index] = values[0], len(values), step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@attribute_function
def is_counted(c: Constant) -> bool:
    """Whether c has whole numbers."""
    return c.type.dtype.is_integer


@attribute_function
def extent_along(x: TensorType, y: TensorType, a: Axis) -> Scalar:
    """The extent of x along the axis; neither part is empty."""
    refuse_unless(numbers(*x.shape, *y.shape), "symbolic")
    refuse_unless(min(typing.cast(tuple[int, ...], (*x.shape, *y.shape))) > 0, "empty")
    return Scalar.of(x.shape[a.index], DType.I64)


@attribute_function
def is_ordered(t: TensorType) -> bool:
    """Whether t has numbers, not bools or narrow ones."""
    return not t.dtype.is_narrow and t.dtype != DType.BOOL


@attribute_function
def first_wins(last: Count) -> bool:
    """Whether the first of equal ones counts."""
    return last.value == 0


@attribute_function
def is_not_longer(s: Shape, a: Axis, c: Scalar, t: DType) -> bool:
    """Whether all indices are less than c, as whole numbers."""
    n = s.dims[a.index]
    if not t.is_integer or t.is_narrow or not numbers(n):
        return False
    return int(c.value) >= 1 and typing.cast(int, n) <= int(c.value) + 1


@attribute_function
def axes_of(a: Axis) -> Axes:
    """The axis as a set."""
    return Axes((a.index,))


# x = [0, 1, 2, 3], s = [0+2], i = [-1] : i32[1]: left the last of 0, 1: 1; right the last of x: 3.
@rule
def gather_of_slice(x: Tensor, s: Slices, i: Tensor, axis: Axis) -> Law:
    """gather(slice(x, s), i, axis) = gather(x, i + start, axis), when s cuts only the axis"""
    offset = broadcast(
        reshape(scalar(start_of(s, axis, x.type, i.type)), units(i.type)), shape_of(i.type)
    )
    return rewrites(gather(slice_(x, s), i, axis), gather(x, binary("add", i, offset), axis))


# x = f32[2, 2], i = [0, 1] (axis 1), j = [[0]] (axis 0): left gather(f32[2, 2], [[0]], 0) has shape
# [1, 1, 2]. right: gather(x, j, 0) is f32[1, 1, 2], and index 1 is outside its axis 1.
@rule
def exchange_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), for two axes and i of rank
    1"""
    return rewrites(
        gather(gather(x, i, a), j, b),
        gather(gather(x, j, b), i, a),
        differ(a, b) & is_line(i.type),
    )


# t = bool, u = i32, s = [3]: left: bools of 0, 1, 2 are 0, 1, 1; right 0, 1, 2.
# (t = i8 and 200 elements: 128 is -128 there.)
@rule
def cast_of_iota(s: Shape, a: Axis, t: DType, u: DType) -> Law:
    """cast(iota(s, a, t), u) = iota(s, a, u)"""
    return rewrites(cast(iota(s, a, t), u), iota(s, a, u))


# x = [-128, 0] : i8: neg(x) = [-128, 0], whose max is at 1; the min of x is at 0.
@rule
def place_of_negated(f: ReduceFn, x: Tensor, a: Axis, last: Count) -> Law:
    """arg_reduce(f, -x) = arg_reduce(the opposite of f, x), for signed types"""
    return rewrites(
        arg_reduce(f, unary("neg", x), a, last),
        arg_reduce(opposite(f), x, a, last),
        has_numbers(x.type),
    )


# x = [1000, 2000] : f32: exp gives [inf, inf], first place 0; right 1.
@rule
def place_of_exp(x: Tensor, a: Axis, last: Count) -> Law:
    """argmax(exp(x)) = argmax(x): exp grows"""
    return rewrites(arg_reduce("max", unary("exp", x), a, last), arg_reduce("max", x, a, last))


# x = [7, 7] : i32, s = [1+2*-1], last = 0: left 0; right 1 - 0 = 1.
@rule
def place_in_reversed(f: ReduceFn, x: Tensor, s: Slices, a: Axis, last: Count) -> Law:
    """arg_reduce(x turned round) = n - 1 - arg_reduce(x)"""
    place = arg_reduce(f, x, a, last)
    return rewrites(
        arg_reduce(f, slice_(x, s), a, last),
        binary(
            "sub",
            broadcast(
                reshape(scalar(last_place(x.type, s, a)), units(x.type)), shape_of(place.type)
            ),
            place,
        ),
    )


# x = f32[2, 3], p = [1, 0], i : i32[] (rank 0), a = 0: left f32[2]; right: transpose of a line by
# [1, 0], which does not fit. (Right for indices of rank 1.)
@rule
def gather_of_transposed(x: Tensor, p: Perm, i: Tensor, a: Axis) -> Law:
    """gather(transpose(x, p), i, a) = transpose(gather(x, i, p(a)), p)"""
    return rewrites(gather(transpose(x, p), i, a), transpose(gather(x, i, axis_before(p, a)), p))


# x = [0, 1, 2, 3], c = [0, 1, 0, 3]: left 0, 1, 0, 3; right [0+4]: 0, 1, 2, 3.
@rule
def gather_of_ends(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c, axis) = slice(x, …), when c counts in even steps"""
    return rewrites(gather(x, constant(c), axis), slice_(x, ramp(c, x.type, axis)), is_counted(c))


# s = [2, 2], axes 0 and 1: on the diagonal 0 < 0 is false, and so is its exchange: left true, right
# false.
@rule
def triangle_by_exchange(s: Shape, a: Axis, b: Axis, t: DType) -> Law:
    """not(iota along a < iota along b) = iota along b < iota along a"""
    return rewrites(
        unary("not", binary("lt", iota(s, a, t), iota(s, b, t))),
        binary("lt", iota(s, b, t), iota(s, a, t)),
    )


# x = [1.0], y = [NaN] : f32: left: NaN wins: place 1. right: 1 < NaN is false: place 0.
@rule
def place_in_concat(x: Tensor, y: Tensor, a: Axis, last: Count) -> Law:
    """argmax(concat(x, y)) = that of y, moved by x, where max(x) < max(y), and else that of x"""
    offset = extent_along(x.type, y.type, a)
    mine, theirs = arg_reduce("max", x, a, last), arg_reduce("max", y, a, last)
    axes = axes_of(a)
    return rewrites(
        arg_reduce("max", concat(x, y, a), a, last),
        select(
            binary("lt", reduce("max", x, axes), reduce("max", y, axes)),
            binary(
                "add",
                theirs,
                broadcast(reshape(scalar(offset), units(x.type)), shape_of(theirs.type)),
            ),
            mine,
        ),
        is_ordered(x.type) & first_wins(last),
    )


# s = [3], t = i32, c = 2: left 0, 1, 2 mod 2 = 0; right 0, 1, 2.
@rule
def iota_below_modulus(s: Shape, a: Axis, t: DType, c: Scalar, u: Shape, w: Shape) -> Law:
    """iota(s, a, t) mod c = iota(s, a, t), when c is greater than all indices"""
    return rewrites(
        binary("mod", iota(s, a, t), broadcast(reshape(c, u), w)),
        iota(s, a, t),
        is_not_longer(s, a, c, t),
    )
