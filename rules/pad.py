"""Pads merge, pass elementwise functions, and vanish into windows.

A pad's value v is a scalar, so f(pad(x, v)) pads f(x) with f(v), which is folded. The other way,
pad(f(x), w) is f(pad(x, v)) for any v with f(v) = w. At a convolution or a pool the pad becomes the
window's border, whose elements count as the window's fill.
"""

from __future__ import annotations

import numpy as np

from satura.rewrite.language.dsl import Law, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    cast,
    concat,
    conv,
    pad,
    pool,
    reshape,
    scalar,
    select,
    slice_,
    unary,
)
from satura.rewrite.types.attributes import (
    Axis,
    BinaryFn,
    Groups,
    Padding,
    ReduceFn,
    Refuse,
    Scalar,
    Shape,
    Slices,
    UnaryFn,
    Window,
    refuse_unless,
)
from satura.rewrite.types.dims import Dim, known_at_least
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules.folding import applied, applied_to_two, converted


@rule
def drop_zero_pad(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, nothing) = x"""
    return rewrites(pad(x, v, b), x, b.is_zero)


@attribute_function
def summed_padding(a: Padding, b: Padding) -> Padding:
    """What pads like `a` and then `b`."""
    return Padding(_sums(a.lo, b.lo), _sums(a.hi, b.hi))


def _sums(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return tuple(mine + theirs for mine, theirs in zip(a, b, strict=True))


@rule
def compose_pads(x: Tensor, v: Tensor, a: Padding, b: Padding) -> Law:
    """pad(pad(x, v, a), v, b) = pad(x, v, a + b)"""
    return rewrites(pad(pad(x, v, a), v, b), pad(x, v, summed_padding(a, b)))


@rule
def pad_out_of_unary(f: UnaryFn, x: Tensor, v: Scalar, b: Padding) -> Law:
    """f(pad(x, v, b)) = pad(f(x), f(v), b)"""
    return rewrites(unary(f, pad(x, v, b)), pad(unary(f, x), scalar(applied(f, v)), b))


@attribute_function
def preimage(f: UnaryFn, dtype: DType, w: Scalar) -> Scalar:
    """A value v of type `dtype` with f(v) = w, bit for bit; refuses where none is found."""
    guesses = [w.value, 0.0, -0.0, 1.0, -np.inf, np.inf] if dtype.is_float else [w.value, 0, 1, -1]
    for guess in guesses:
        value = Scalar.of(guess, dtype)
        if applied(f, value) == w:
            return value
    raise Refuse(f"no value is known whose {f} is {w}")


@rule
def pad_into_unary(f: UnaryFn, x: Tensor, w: Scalar, b: Padding) -> Law:
    """pad(f(x), w, b) = f(pad(x, v, b)), where f(v) = w"""
    return rewrites(
        pad(unary(f, x), w, b), unary(f, pad(x, scalar(preimage(f, x.type.dtype, w)), b))
    )


@rule
def pad_out_of_cast(x: Tensor, v: Scalar, dtype: DType, b: Padding) -> Law:
    """cast(pad(x, v, b), t) = pad(cast(x, t), cast(v, t), b)"""
    return rewrites(cast(pad(x, v, b), dtype), pad(cast(x, dtype), scalar(converted(v, dtype)), b))


@attribute_function
def unconverted(w: Scalar, dtype: DType) -> Scalar:
    """The value of type `dtype` that casts to w."""
    value = converted(w, dtype)
    refuse_unless(converted(value, w.dtype) == w, f"{w} does not survive a cast to {dtype.value}")
    return value


@rule
def pad_into_cast(x: Tensor, w: Scalar, dtype: DType, b: Padding) -> Law:
    """pad(cast(x, t), w, b) = cast(pad(x, v, b), t), where v casts to w"""
    return rewrites(
        pad(cast(x, dtype), w, b), cast(pad(x, scalar(unconverted(w, x.type.dtype)), b), dtype)
    )


@rule
def pad_out_of_binary(f: BinaryFn, x: Tensor, y: Tensor, v: Scalar, w: Scalar, b: Padding) -> Law:
    """f(pad(x, v, b), pad(y, w, b)) = pad(f(x, y), f(v, w), b)"""
    return rewrites(
        binary(f, pad(x, v, b), pad(y, w, b)),
        pad(binary(f, x, y), scalar(applied_to_two(f, v, w)), b),
    )


@rule
def pad_out_of_binary_with_scalar(
    f: BinaryFn, x: Tensor, v: Scalar, c: Scalar, b: Padding, ones: Shape, s: Shape
) -> Law:
    """f(pad(x, v, b), c everywhere) = pad(f(x, c everywhere), f(v, c), b)"""
    return rewrites(
        binary(f, pad(x, v, b), broadcast(reshape(c, ones), s)),
        pad(
            binary(f, x, broadcast(reshape(c, ones), Shape(x.type.shape))),
            scalar(applied_to_two(f, v, c)),
            b,
        ),
    )


@attribute_function
def chosen(u: Scalar, v: Scalar, w: Scalar) -> Scalar:
    """v where u is true, else w."""
    return v if bool(u.value) else w


@rule
def pad_out_of_select(
    c: Tensor, x: Tensor, y: Tensor, u: Scalar, v: Scalar, w: Scalar, b: Padding
) -> Law:
    """select(pad(c, u, b), pad(x, v, b), pad(y, w, b)) = pad(select(c, x, y), u ? v : w, b)"""
    return rewrites(
        select(pad(c, u, b), pad(x, v, b), pad(y, w, b)),
        pad(select(c, x, y), scalar(chosen(u, v, w)), b),
    )


@attribute_function
def spatial(padding: Padding) -> Padding:
    """The padding of all axes but the first and the last, which must have none."""
    outer = (padding.lo[0], padding.lo[-1], padding.hi[0], padding.hi[-1])
    refuse_unless(all(dim == 0 for dim in outer), "images or channels are padded")
    return Padding(padding.lo[1:-1], padding.hi[1:-1])


@rule
def pad_into_conv(
    x: Tensor, w: Tensor, v: Scalar, b: Padding, window: Window, groups: Groups
) -> Law:
    """conv(pad(x, v, b), w) = conv(x, w) with a border of v, when only spatial axes are padded and
    the window's own border agrees"""
    return rewrites(
        conv(pad(x, v, b), w, window, groups), conv(x, w, window.padded(spatial(b), v), groups)
    )


@rule
def pad_into_pool(f: ReduceFn, x: Tensor, v: Scalar, b: Padding, window: Window) -> Law:
    """pool(pad(x, v, b)) = pool(x) with a border of v, when the window's own border agrees"""
    return rewrites(pool(f, pad(x, v, b), window), pool(f, x, window.padded(b, v)))


@attribute_function
def leaves(padding: Padding, axis: Axis) -> bool:
    """Whether `axis` is not padded."""
    return padding.lo[axis.index] == 0 and padding.hi[axis.index] == 0


@rule
def pad_out_of_concat(x: Tensor, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """concat(pad(x, v, b), pad(y, v, b), a) = pad(concat(x, y, a), v, b), when b leaves axis a"""
    return rewrites(
        concat(pad(x, v, b), pad(y, v, b), axis), pad(concat(x, y, axis), v, b), leaves(b, axis)
    )


@attribute_function
def slices_inside(type_: TensorType, padding: Padding, slices: Slices) -> Slices:
    """The slices of x that are `slices` of the padded x, when they do not reach into the border."""
    for lo, dim, start, size, step in zip(
        padding.lo, type_.shape, slices.starts, slices.sizes, slices.steps, strict=True
    ):
        last = start + (size - 1) * step
        first, end = (start, last) if step > 0 else (last, start)
        inside = known_at_least(first - lo, 0) and known_at_least(lo + dim - 1 - end, 0)
        refuse_unless(known_at_least(size, 1) and inside, "the slices reach into the border")
    starts = zip(slices.starts, padding.lo, strict=True)
    return Slices(tuple(start - lo for start, lo in starts), slices.sizes, slices.steps)


@rule
def slice_inside_pad(x: Tensor, v: Tensor, b: Padding, slices: Slices) -> Law:
    """slice(pad(x, v, b), s) = slice(x, s shifted by b), when s does not reach into the border"""
    return rewrites(slice_(pad(x, v, b), slices), slice_(x, slices_inside(x.type, b, slices)))
