"""Laws of permutations, repetitions, slices and pads, all of them wrong."""

import typing

from satura.language import (
    Axis,
    BinaryFn,
    Law,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    attribute_function,
    binary,
    broadcast,
    concat,
    pad,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    transpose,
)


# x = f32[2, 3, 4], p = [1, 0, 2], q = [0, 2, 1]: transpose(x, p) is [3, 2, 4], then [3, 4, 2];
# q[p] = (q.order[1], q.order[0], q.order[2]) = [2, 0, 1] gives [4, 2, 3].
@rule
def compose_in_wrong_order(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q∘p)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


@attribute_function
def returns(p: Perm) -> bool:
    """Whether p is its own inverse as far as its first axis says: so it is up to rank 3."""
    return len(p.order) > 0 and p.inverse.order[0] == p.order[0]


# x = f32[1, 2, 3, 4], p = [0, 2, 3, 1]: twice it is [0, 3, 1, 2], so that the left side is [1, 4,
# 2, 3].
@rule
def drop_double_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p) = x, when p and its inverse move the first axis alike"""
    return rewrites(transpose(transpose(x, p), p), x, returns(p))


@attribute_function
def is_row(a: Shape) -> bool:
    return len(a.dims) == 2 and a.dims[0] == 1


@attribute_function
def swapped(s: Shape) -> Shape:
    return Shape(s.dims[::-1])


# x = f32 [1, 2], a = [1, 2], s = [2, 2], t = [4]: [1, 2, 1, 2]; as a column, repeated: [1, 1, 2,
# 2].
@rule
def tile_as_repeat(x: Tensor, a: Shape, s: Shape, t: Shape) -> Law:
    """reshape(broadcast(reshape(x, [1, n]), [k, n]), t) = the same with [n, 1] and [n, k]"""
    return rewrites(
        reshape(broadcast(reshape(x, a), s), t),
        reshape(broadcast(reshape(x, swapped(a)), swapped(s)), t),
        is_row(a),
    )


# f = add, x = f32[1, 2], y = f32[2, 1], s = [2, 2]: the right side adds tensors of different
# shapes.
@rule
def compute_before_broadcast(f: BinaryFn, x: Varying, y: Varying, s: Shape) -> Law:
    """f(broadcast(x, s), broadcast(y, s)) = broadcast(f(x, y), s)"""
    return rewrites(binary(f, broadcast(x, s), broadcast(y, s)), broadcast(binary(f, x, y), s))


@attribute_function
def after(a: Slices, b: Slices) -> Slices:
    """a and then b."""
    return Slices(
        tuple(i + j for i, j in zip(a.starts, b.starts)),
        b.sizes,
        tuple(i * j for i, j in zip(a.steps, b.steps)),
    )


# x = f32 [0, 1, 2, 3], a = [0+2*2]: [0, 2], b = [1+1]: [2]; the right side starts at 1: [1].
# The start of b has to be multiplied by the step of a.
@rule
def compose_slices(x: Tensor, a: Slices, b: Slices) -> Law:
    """slice(slice(x, a), b) = slice(x, a then b)"""
    return rewrites(slice_(slice_(x, a), b), slice_(x, after(a, b)))


@attribute_function
def same_number(v: Scalar, w: Scalar) -> bool:
    return bool(v.value == w.value)


@attribute_function
def together(a: Padding, b: Padding) -> Padding:
    return Padding(
        tuple(i + j for i, j in zip(a.lo, b.lo)), tuple(i + j for i, j in zip(a.hi, b.hi))
    )


# x = f32[0] = [], v = -0.0, w = 0.0, a = b = one before: [0.0, -0.0]; the right side is [0.0, 0.0].
# The numbers are equal, the bits are not.
@rule
def compose_pads(x: Tensor, v: Scalar, w: Scalar, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), w, b) = pad(x, w, a + b), when v = w"""
    return rewrites(pad(pad(x, v, a), w, b), pad(x, w, together(a, b)), same_number(v, w))


@attribute_function
def is_zero(v: Scalar) -> bool:
    return not any(v.bits)


@attribute_function
def inner(x: TensorType, p: Padding) -> Slices:
    """Where x is in the padded tensor."""
    return Slices(p.lo, x.shape, (1,) * x.rank)


# x = f32[0], p = one before, y = [-1]: 0 * -1 = -0.0; the right side has 0.0. And y = [inf]: NaN.
@rule
def multiply_inside_padding(x: Tensor, v: Scalar, p: Padding, y: Tensor) -> Law:
    """pad(x, 0, p) * y = pad(x * the inner part of y, 0, p): zeros stay"""
    return rewrites(
        binary("mul", pad(x, v, p), y),
        pad(binary("mul", x, slice_(y, inner(x.type, p))), v, p),
        is_zero(v),
    )


@attribute_function
def in_second(x: TensorType, axis: Axis, s: Slices) -> Slices:
    """s less the first part, behind which it starts."""
    at = axis.index
    dims = (x.shape[at], s.starts[at], s.sizes[at])
    refuse_unless(all(isinstance(n, int) for n in dims), "open sizes")
    refuse_unless(
        typing.cast(int, s.starts[at]) >= typing.cast(int, x.shape[at]),
        "it starts in the first part",
    )
    starts = tuple(n - x.shape[at] if i == at else n for i, n in enumerate(s.starts))
    return Slices(starts, s.sizes, s.steps)


# x = f32[2], y = f32[1], s = [2+2*-1]: y[0] and x[1]; the right side slices y by [0+2*-1], which
# reaches outside. Backwards it has to end in y, too.
@rule
def slice_of_second(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), s) = slice(y, s less x), when s starts behind x"""
    return rewrites(slice_(concat(x, y, axis), s), slice_(y, in_second(x.type, axis, s)))
