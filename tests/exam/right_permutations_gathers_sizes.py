"""Laws of permutations, gathers, sizes and pads, all of them right."""

import typing

import numpy as np
import numpy.typing as npt

from satura.language import (
    FLOATS,
    Axes,
    Axis,
    BinaryFn,
    Constant,
    Dim,
    DType,
    Elementwise,
    Law,
    Operands,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Varying,
    attribute_function,
    binary,
    cast,
    concat,
    constant,
    extent,
    family,
    gather,
    iota,
    pad,
    reduce,
    refuse_unless,
    replaces,
    reshape,
    rewrites,
    rule,
    transpose,
)


@rule
def cycle_of_three(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(transpose(x, p), p), p) = x, when p∘p∘p is the identity"""
    return replaces(transpose(transpose(transpose(x, p), p), p), x, p[p][p].is_identity)


@rule
def transpose_of_iota(s: Shape, axis: Axis, d: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), p⁻¹(axis))"""
    return rewrites(
        transpose(iota(s, axis, d), p),
        iota(s.permuted(p), Axis(p.inverse.order[axis.index]), d),
    )


@attribute_function
def in_range(c: Constant, s: Shape) -> bool:
    """Whether all indices are places of an axis, counted from its start."""
    refuse_unless(len(s.dims) == 1 and isinstance(s.dims[0], int), "not one known axis")
    refuse_unless(c.type.dtype.is_integer, "no indices")
    indices = typing.cast(npt.NDArray[np.integer], c.array)
    return bool(np.all(indices >= 0) and np.all(indices < typing.cast(int, s.dims[0])))


@rule
def gather_of_iota(s: Shape, axis: Axis, c: Constant, a: Axis) -> Law:
    """gather(iota(s), c) = cast(c, i64) for constant places c of the only axis"""
    return rewrites(
        gather(iota(s, axis, DType.I64), constant(c), a),
        cast(constant(c), DType.I64),
        in_range(c, s),
    )


@rule
def compose_gathers(x: Tensor, i: Tensor, j: Tensor, a: Axis) -> Law:
    """gather(gather(x, i, a), j, a) = gather(x, gather(i, j, 0), a), when i has an axis"""
    return rewrites(
        gather(gather(x, i, a), j, a), gather(x, gather(i, j, Axis(0)), a), i.type.rank >= 1
    )


@family
def compute_before_gather(f: Elementwise, xs: Operands[Varying], i: Tensor, a: Axis) -> Law:
    """f(gather(x, i, a)…) = gather(f(x…), i, a), when all x have one shape"""
    return rewrites(f(xs.each(gather, i, a)), gather(f(xs), i, a), *xs.of_one_shape)


@rule
def gather_by_parts(x: Tensor, i: Tensor, j: Tensor, b: Axis, a: Axis) -> Law:
    """gather(x, concat(i, j, b), a) = concat(gather(x, i, a), gather(x, j, a), a + b)"""
    return rewrites(
        gather(x, concat(i, j, b), a),
        concat(gather(x, i, a), gather(x, j, a), Axis(a.index + b.index)),
    )


@rule
def reshape_out_of_indices(x: Tensor, i: Tensor, s: Shape, a: Axis) -> Law:
    """gather(x, reshape(i, s), a) = reshape(gather(x, i, a), …)"""
    left = gather(x, reshape(i, s), a)
    return rewrites(left, reshape(gather(x, i, a), Shape(left.type.shape)))


@attribute_function
def combined(f: BinaryFn, s: Shape, t: Shape) -> Shape:
    """The size that is the sum or the product of both."""
    if f.name == "add":
        return Shape((s.dims[0] + t.dims[0],))
    if f.name == "mul":
        return Shape((s.dims[0] * t.dims[0],))
    raise Refuse(f"{f} does not make sizes of sizes")


@rule
def compute_sizes(f: BinaryFn, s: Shape, t: Shape) -> Law:
    """extent(s) + extent(t) = extent(s + t), and so for products"""
    return rewrites(binary(f, extent(s), extent(t)), extent(combined(f, s, t)))


@attribute_function
def without(p: Padding, axis: Axis, end: str) -> Padding:
    """p, but nothing at one end of an axis."""

    def part(values: tuple[Dim, ...], name: str) -> tuple[Dim, ...]:
        return tuple(0 if i == axis.index and name == end else n for i, n in enumerate(values))

    return Padding(part(p.lo, "lo"), part(p.hi, "hi"))


@rule
def pad_of_parts(x: Tensor, y: Tensor, axis: Axis, v: Scalar, p: Padding) -> Law:
    """pad(concat(x, y, axis), v, p) = concat(pad(x, v, p but after), pad(y, v, p but before),
    axis)"""
    return rewrites(
        pad(concat(x, y, axis), v, p),
        concat(pad(x, v, without(p, axis, "hi")), pad(y, v, without(p, axis, "lo")), axis),
    )


@attribute_function
def identity(f: ReduceFn, type_: TensorType) -> Scalar:
    """What changes no result of f: 0.0 would, that of -0.0."""
    d = type_.dtype
    if d in FLOATS and f.name in ("max", "min"):
        return Scalar.of(-np.inf if f.name == "max" else np.inf, d)
    refuse_unless(d.is_integer and not d.is_narrow, f"no identity of {f}")
    least, most = d.bounds
    return Scalar.of({"sum": 0, "prod": 1, "max": least, "min": most}[f.name], d)


@attribute_function
def pads_only(p: Padding, axes: Axes) -> bool:
    """Whether p adds elements along `axes` alone."""
    both = enumerate(zip(p.lo, p.hi))
    return all(i in axes.indices or (lo == 0 and hi == 0) for i, (lo, hi) in both)


@rule
def reduce_without_padding(f: ReduceFn, x: Tensor, v: Scalar, p: Padding, axes: Axes) -> Law:
    """f(pad(x, v, p), axes) = f(x, axes), when v is f's identity, for integers, and max and min of
    floats, and only the axes are padded"""
    return rewrites(
        reduce(f, pad(x, v, p), axes),
        reduce(f, x, axes),
        v == identity(f, x.type),
        pads_only(p, axes),
    )
