"""Laws of families, windows, contractions, indices and sizes, all of them right."""

import typing

import numpy as np

from satura.language import (
    Arithmetic,
    Axis,
    Constant,
    Contraction,
    Elementwise,
    Groups,
    Law,
    Operands,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Scalars,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    Window,
    attention,
    attribute_function,
    binary,
    concat,
    constant,
    conv,
    extent,
    family,
    gather,
    matmul,
    pad,
    pool,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
    winograd,
)


@family
def reverse_after(f: Elementwise, xs: Operands[Varying], s: Slices) -> Law:
    """slice(f(x…), s) = f(slice(x, s)…)"""
    return rewrites(slice_(f(xs), s), f(xs.each(slice_, s)))


@family
def pad_after(f: Arithmetic, xs: Operands[Varying], vs: Scalars, p: Padding) -> Law:
    """f(pad(x, v, p)…) = pad(f(x…), f(v…), p)"""
    return rewrites(f(xs.each(pad, vs, p)), pad(f(xs), f(vs), p))


@attribute_function
def with_relu(w: Window) -> Window:
    """w, where its fill is relu(fill)."""
    fill = w.fill
    kept = fill if not bool(typing.cast(float, fill.value) <= 0) else Scalar.of(0, fill.dtype)
    return Window(w.sizes, w.strides, w.dilations, w.lo, w.hi, kept)


@attribute_function
def selects(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@rule
def relu_into_pool(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """relu(pool(x, w)) = pool(relu(x), w with relu(fill)), for max and min"""
    return rewrites(
        unary("relu", pool(f, x, w)), pool(f, unary("relu", x), with_relu(w)), selects(f)
    )


@attribute_function
def is_linear(w: Window) -> bool:
    """Whether the border adds nothing."""
    return not w.has_border or bool(w.fill.value == 0)


@rule(reassociates=True)
def conv_of_sum(x: Tensor, y: Tensor, w: Tensor, window: Window, groups: Groups) -> Law:
    """conv(x + y, w) = conv(x, w) + conv(y, w), when the border is 0"""
    return rewrites(
        conv(binary("add", x, y), w, window, groups),
        binary("add", conv(x, w, window, groups), conv(y, w, window, groups)),
        is_linear(window),
    )


@attribute_function
def is_transposition(p: Perm) -> bool:
    """Whether p exchanges the last two axes alone."""
    r = len(p.order)
    return r >= 2 and p.order == (*range(r - 2), r - 1, r - 2)


@rule(reassociates=True)
def transpose_out_of_matmul(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(transpose(x), transpose(y)) = transpose(matmul(y, x)), of matrices"""
    return rewrites(
        matmul(transpose(x, p), transpose(y, p)), transpose(matmul(y, x), p), is_transposition(p)
    )


@family(reassociates=True)
def negation_out_of(f: Contraction, x: Tensor, y: Tensor) -> Law:
    """f(x, -y) = -f(x, y), for contractions: a sum of zeros is 0.0 or -0.0"""
    return rewrites(f(x, unary("neg", y)), unary("neg", f(x, y)))


@rule(reassociates=True)
def negate_values(q: Tensor, k: Tensor, b: Tensor, v: Tensor) -> Law:
    """attention(q, k, b, -v) = -attention(q, k, b, v)"""
    return rewrites(attention(q, k, b, unary("neg", v)), unary("neg", attention(q, k, b, v)))


@rule(reassociates=True)
def negate_taps(x: Tensor, w: Tensor, window: Window) -> Law:
    """winograd(x, -w) = -winograd(x, w)"""
    return rewrites(winograd(x, unary("neg", w), window), unary("neg", winograd(x, w, window)))


@attribute_function
def are_other(a: Axis, b: Axis, i: TensorType, j: TensorType) -> bool:
    """Whether lines of indices choose along two axes."""
    return a.index != b.index and i.rank == j.rank == 1


@rule
def exchange_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis, b: Axis) -> Law:
    """gather(gather(x, i, a), j, b) = gather(gather(x, j, b), i, a), for lines of indices"""
    return rewrites(
        gather(gather(x, i, a), j, b),
        gather(gather(x, j, b), i, a),
        are_other(a, b, i.type, j.type),
    )


@attribute_function
def sum_of(a: Shape, b: Shape) -> Shape:
    return Shape((a.dims[0] + b.dims[0],))


@rule
def add_sizes(a: Shape, b: Shape) -> Law:
    """extent(a) + extent(b) = extent(a + b)"""
    return rewrites(binary("add", extent(a), extent(b)), extent(sum_of(a, b)))


@attribute_function
def side_by_side(a: Constant, b: Constant, axis: Axis) -> Constant:
    return Constant(np.concatenate([a.array, b.array], axis.index))


@rule
def fold_concat(a: Constant, b: Constant, axis: Axis) -> Law:
    """concat(a, b, axis) of constants is a constant"""
    return rewrites(concat(constant(a), constant(b), axis), constant(side_by_side(a, b, axis)))
