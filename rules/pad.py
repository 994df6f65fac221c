"""Pads merge, pass elementwise functions, and vanish into windows.

A pad's value v is a scalar, so f(pad(x, v)) pads f(x) with f(v), which is folded. A cast may be to
a wider dtype; it lets a pad move inwards too. At a convolution or a pool the pad becomes the
window's border, whose elements count as the window's fill.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import (
    Law,
    Tensor,
    Unpadded,
    Varying,
    attribute_function,
    family,
    rewrites,
    rule,
)
from satura.rewrite.language.families import Elementwise, Operands, Scalars
from satura.rewrite.language.terms import (
    broadcast,
    cast,
    concat,
    conv,
    pad,
    pool,
    reshape,
    scalar,
    slice_,
)
from satura.rewrite.ops import REGISTRY
from satura.rewrite.types.attributes import (
    Axis,
    Groups,
    Padding,
    ReduceFn,
    Shape,
    Slices,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import Dim, known_at_least
from satura.rewrite.types.tensor_type import DType, TensorType


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


@family
def pad_out_of(f: Elementwise, xs: Operands[Unpadded], vs: Scalars, b: Padding) -> Law:
    """f(pad(x, v, b)…) = pad(f(x…), f(v…), b)"""
    return rewrites(f(xs.each(pad, vs, b)), pad(f(xs), scalar(f.element(vs)), b))


@attribute_function
def value_before_cast(source: DType, w: Scalar) -> Scalar:
    """The value of dtype `source` whose cast is w, bit for bit."""
    value = _cast(w, source)
    refuse_unless(_cast(value, w.dtype) == w, f"no {source} is known that is cast to {w}")
    return value


def _cast(value: Scalar, dtype: DType) -> Scalar:
    return Elementwise(REGISTRY["cast"], (dtype,)).element((value,))


@rule
def pad_into_cast(x: Tensor, dtype: DType, w: Scalar, b: Padding) -> Law:
    """pad(cast(x), w, b) = cast(pad(x, v, b)), where cast(v) = w"""
    return rewrites(
        pad(cast(x, dtype), w, b),
        cast(pad(x, scalar(value_before_cast(x.type.dtype, w)), b), dtype),
    )


@rule
def pad_into_cast_of_both(x: Tensor, v: Varying, dtype: DType, b: Padding) -> Law:
    """pad(cast(x), cast(v), b) = cast(pad(x, v, b)), where x and v are of one dtype"""
    return rewrites(
        pad(cast(x, dtype), cast(v, dtype), b),
        cast(pad(x, v, b), dtype),
        x.type.dtype == v.type.dtype,
    )


@family
def pad_out_of_scalar(
    f: Elementwise, x: Unpadded, v: Scalar, c: Scalar, b: Padding, ones: Shape, s: Shape
) -> Law:
    """f(pad(x, v, b), c everywhere) = pad(f(x, c everywhere), f(v, c), b)"""
    apart = f(pad(x, v, b), broadcast(reshape(c, ones), s))
    inside = f(x, broadcast(reshape(c, ones), Shape(x.type.shape)))
    return rewrites(apart, pad(inside, scalar(f.element((v, c))), b))


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


@rule
def pad_out_of_concat(x: Tensor, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """concat(pad(x, v, b), pad(y, v, b), a) = pad(concat(x, y, a), v, b), when b leaves axis a"""
    return rewrites(
        concat(pad(x, v, b), pad(y, v, b), axis),
        pad(concat(x, y, axis), v, b),
        b.lo[axis.index] == 0,
        b.hi[axis.index] == 0,
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
