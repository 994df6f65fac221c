"""Laws of concatenations, gathers and reductions, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    DType,
    Law,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    gather,
    iota,
    matmul,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
)


@attribute_function
def column(x: TensorType) -> Shape:
    """A vector as rows of one element."""
    refuse_unless(x.rank == 1)
    return Shape((x.shape[0], 1))


@attribute_function
def pairs(x: TensorType) -> Shape:
    """A vector with each element twice."""
    return Shape((x.shape[0], 2))


# x f32[2] = 1 2: left 1 2 1 2, right 1 1 2 2.
@rule
def concat_with_itself(x: Tensor, axis: Axis) -> Law:
    """concat(x, x) = each row repeated twice, for vectors"""
    return rewrites(
        concat(x, x, axis),
        reshape(
            broadcast(reshape(x, column(x.type)), pairs(x.type)),
            Shape(concat(x, x, axis).type.shape),
        ),
    )


@attribute_function
def is_from_end(axis: Axis, x: TensorType, back: int) -> bool:
    """Whether the axis is number `back` from the end."""
    return axis.index == x.rank - back


# x f32[1, 1], y f32[1, 2], z f32[2, 1], w f32[1, 1]: left [1, 3] times [3, 1]; right x times z
# does not fit: the blocks are cut at different places.
@rule(reassociates=True)
def product_of_blocks(x: Tensor, y: Tensor, z: Tensor, w: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y, columns), concat(z, w, rows)) = matmul(x, z) + matmul(y, w)"""
    return rewrites(
        matmul(concat(x, y, a), concat(z, w, b)),
        binary("add", matmul(x, z), matmul(y, w)),
        is_from_end(a, x.type, 1),
        is_from_end(b, z.type, 2),
    )


# x f32[2, 3], i i64[] = 1, axis 0, j i64[1] = [2]: left row 1 of x and of that element 2; right
# gathers along axis 0 of a 0-d tensor: ill typed.
@rule
def compose_gathers(x: Tensor, i: Tensor, j: Tensor, axis: Axis) -> Law:
    """gather(gather(x, i, axis), j, axis) = gather(x, gather(i, j, 0), axis)"""
    return rewrites(gather(gather(x, i, axis), j, axis), gather(x, gather(i, j, Axis(0)), axis))


@attribute_function
def along(s: Slices, axis: Axis) -> Slices:
    """`s` along one axis."""
    at = axis.index
    refuse_unless(at < len(s.sizes))
    return Slices((s.starts[at],), (s.sizes[at],), (s.steps[at],))


# x f32[2, 3], i i64[2], axis 0, s = [0+2, 0+1]: left f32[2, 1], right f32[2, 3].
@rule
def slice_before_gather(x: Tensor, i: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(gather(x, i, axis), s) = gather(x, slice(i, s along the axis), axis), for vectors i"""
    return rewrites(
        slice_(gather(x, i, axis), s),
        gather(x, slice_(i, along(s, axis)), axis),
        i.type.rank == 1,
    )


# x f32[3], y f32[5], i i64[1] = [-1]: left x2 + y4, right adds f32[3] and f32[5]: ill typed.
@rule
def gather_after_binary(f: BinaryFn, x: Tensor, y: Tensor, i: Tensor, axis: Axis) -> Law:
    """f(gather(x, i, axis), gather(y, i, axis)) = gather(f(x, y), i, axis)"""
    return rewrites(
        binary(f, gather(x, i, axis), gather(y, i, axis)), gather(binary(f, x, y), i, axis)
    )


# iota([4], 0, i64), i i64[1] = [-1]: left the last element, 3, right -1.
@rule
def gather_of_ramp(n: Shape, t: DType, i: Tensor) -> Law:
    """gather(iota(n), i) = cast(i), for vectors"""
    return rewrites(
        gather(iota(n, Axis(0), t), i, Axis(0)), cast(i, t), iota(n, Axis(0), t).type.rank == 1
    )


@attribute_function
def of_operand(p: Perm, axis: Axis) -> Axis:
    """Which axis of the operand that is."""
    refuse_unless(axis.index < len(p.order))
    return Axis(p.order[axis.index])


# x f32[2, 3], p = [1, 0], i i64[1, 1], axis 0: left f32[1, 1, 2]; right gathers f32[2, 1, 1] and
# transposes three axes by [1, 0]: ill typed. Right for vectors i.
@rule
def gather_before_transpose(x: Tensor, p: Perm, i: Tensor, axis: Axis) -> Law:
    """gather(transpose(x, p), i, axis) = transpose(gather(x, i, p(axis)), p)"""
    return rewrites(
        gather(transpose(x, p), i, axis), transpose(gather(x, i, of_operand(p, axis)), p)
    )


# i8, x = [-128, 5]: left max(-128, -5) = -5, right -(-128) = -128.
@rule
def max_of_negated(x: Tensor, a: Axes) -> Law:
    """max(-x, a) = -min(x, a)"""
    return rewrites(reduce("max", unary("neg", x), a), unary("neg", reduce("min", x, a)))


@attribute_function
def both_of(a: Axes, b: Axes) -> Axes:
    """The axes of a, then those of b."""
    return Axes((*a.indices, *b.indices))


# x f32[2, 2], a = [1], b = [0]: the axes [1, 0] are not sorted, right is ill typed; so with a = b.
@rule
def merge_choices(x: Tensor, a: Axes, b: Axes) -> Law:
    """max(max(x, a), b) = max(x, a and b)"""
    return rewrites(reduce("max", reduce("max", x, a), b), reduce("max", x, both_of(a, b)))


# i32, x = [1, 2], c = 3, a = [0]: left 4 + 5 = 9, right 3 + 3 = 6: c is there for each element.
@rule
def shift_out_of_sum(x: Tensor, c: Scalar, u: Shape, s: Shape, a: Axes) -> Law:
    """sum(x + c, a) = sum(x, a) + c, on integers"""
    total = reduce("sum", x, a)
    return rewrites(
        reduce("sum", binary("add", x, broadcast(reshape(c, u), s)), a),
        binary("add", total, broadcast(reshape(c, u), Shape(total.type.shape))),
        x.type.dtype.is_integer,
    )
