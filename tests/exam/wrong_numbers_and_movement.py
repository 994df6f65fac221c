"""Laws of numbers and what moves them, all of them wrong."""

from satura.language import (
    Arithmetic,
    Axes,
    Axis,
    BinaryFn,
    DType,
    Law,
    Operands,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    Varying,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    family,
    gather,
    iota,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
    winograd,
)


@attribute_function
def only_start(s: Slices) -> Scalar:
    if len(s.starts) != 1 or not isinstance(s.starts[0], int):
        raise Refuse("not one known start")
    return Scalar.of(s.starts[0], DType.I64)


@attribute_function
def moved_by_inverse(p: Perm, a: Axes) -> Axes:
    return Axes(tuple(sorted(p.inverse.order[i] for i in a.indices)))


@attribute_function
def of_two(f: ReduceFn) -> BinaryFn:
    return BinaryFn({"sum": "add", "prod": "mul"}.get(f.name, f.name))


# unary neg, i32: v = 1: the border is -1 on the left and 1 on the right.
@family
def value_out_of_pads(f: Arithmetic, xs: Operands[Varying], v: Scalar, p: Padding) -> Law:
    """f(pad(x, v)…) = pad(f(x…), v)"""
    return rewrites(f(xs.each(pad, v, p)), pad(f(xs), v, p))


# x = f32[1], y = i8[1], t = i32: the casts can be joined, but f32[1] and i8[1] cannot.
@rule
def concat_before_cast(x: Tensor, y: Tensor, t: DType, a: Axis) -> Law:
    """concat(cast(x, t), cast(y, t)) = cast(concat(x, y), t)"""
    return rewrites(concat(cast(x, t), cast(y, t), a), cast(concat(x, y, a), t))


# iota of [4], s = 2 elements from 0 in steps of 2: [0, 2]; the right side is [0, 1].
@rule
def slice_of_iota(w: Shape, a: Axis, s: Slices) -> Law:
    """slice(iota, s) = iota of s's size + its start, for one axis of i64"""
    return rewrites(
        slice_(iota(w, a, DType.I64), s),
        binary(
            "add",
            iota(Shape(s.sizes), a, DType.I64),
            broadcast(reshape(scalar(only_start(s)), Shape((1,))), Shape(s.sizes)),
        ),
    )


# i32, x = zeros 2x2, b = [[1, 2]], p = (1, 0): left [[1, 1], [2, 2]]; right [[1, 2], [1, 2]].
@rule
def bias_past_transpose(x: Varying, b: Tensor, s: Shape, p: Perm) -> Law:
    """transpose(x + broadcast(b), p) = transpose(x, p) + broadcast(b), where p leaves the shape"""
    return rewrites(
        transpose(binary("add", x, broadcast(b, s)), p),
        binary("add", transpose(x, p), broadcast(b, s)),
        s.permuted(p) == s,
    )


# i32 [1, 2, 3], p = (1, 2, 0), a = {0}: axis 0 of the transpose is axis 1 of x; p's inverse says 2.
@rule
def max_past_transpose(x: Tensor, p: Perm, a: Axes) -> Law:
    """max(transpose(x, p), a) = transpose(max(x, p(a)), p)"""
    return rewrites(
        reduce("max", transpose(x, p), a), transpose(reduce("max", x, moved_by_inverse(p, a)), p)
    )


# x = [10, 20], i = [-1]: the left side is x[0] = 10; -1 counts from the end, so the right one 20.
@rule
def bound_of_indices(x: Tensor, i: Tensor, a: Axis) -> Law:
    """gather(x, max(i, 0)) = gather(x, i): an index is not below 0"""
    return rewrites(gather(x, binary("max", i, 0), a), gather(x, i, a))


# c = 0, q = k = 1 (1x1 and 1x2), bias = [[0, 5]], v = [[0], [1]]: the left side weighs by
# softmax([0, 5]): 0.993; the right one by softmax([1, 1]): 0.5.
@rule(reassociates=True)
def factor_from_queries_to_bias(
    q: Tensor, k: Tensor, b: Tensor, v: Tensor, c: Scalar, o: Shape, s: Shape
) -> Law:
    """attention(q * c, k, b, v) = attention(q, k, b * c, v), up to rounding"""
    return rewrites(
        attention(binary("mul", q, broadcast(reshape(c, o), s)), k, b, v),
        attention(q, k, binary("mul", b, broadcast(reshape(c, o), Shape(b.type.shape))), v),
    )


# x = -1 everywhere, w = -1 everywhere: relu(x) = 0, so 0; x * w sums to 9, whose relu is 9.
@rule(reassociates=True)
def relu_out_of_winograd(x: Tensor, w: Tensor, v: Window) -> Law:
    """winograd(relu(x), w) = relu(winograd(x, w)), up to rounding"""
    return rewrites(winograd(unary("relu", x), w, v), unary("relu", winograd(x, w, v)))


# i32[1] [1] and [2], max along no axes: [1, 2] with 2 elements; max([1], [2]) has 1.
@rule
def reduce_parts(f: ReduceFn, x: Tensor, y: Tensor, axis: Axis, a: Axes) -> Law:
    """f(concat(x, y)) = f(f(x), f(y)), on integers"""
    return rewrites(
        reduce(f, concat(x, y, axis), a),
        binary(of_two(f), reduce(f, x, a), reduce(f, y, a)),
        x.type.dtype.is_integer,
    )
