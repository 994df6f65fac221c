"""Lowering of DeformConv: what each tap sees is gathered, and multiplied as rows of a matrix."""

from __future__ import annotations

from math import prod

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, computed_wide, lowering
from satura.rewrite.onnx.lower.contraction import add_bias
from satura.rewrite.onnx.lower.geometry import Geometry, geometry, kernel_of
from satura.rewrite.onnx.lower.sampling import ImageAxis, sampled
from satura.rewrite.types.dims import Dim, product


@lowering("DeformConv")
@computed_wide
def deform_conv(node: Context) -> int:
    """The convolution of elements that are `offset` away from where they would stand, between
    neighbours in proportion, times their `mask`."""
    build, x, w, offset = node.build, node[0], node[1], node[2]
    batch, channels, *spatial = build.shape(x)
    kernel = kernel_of(node, build.shape(w)[2:])
    window = geometry(node, spatial, kernel)
    taps, rank = prod(kernel), len(kernel)
    inner, outer = build.shape(w)[1], build.shape(w)[0]
    groups, shares = node.integer("group", 1), node.integer("offset_group", 1)
    own, each, results = (
        node.fixed_dim(dim, "a number of channels") for dim in (channels, inner, outer)
    )
    if min(groups, shares) < 1 or own != each * groups or own % shares or results % groups:
        raise node.wrong(
            f"{own} channels and {results} results do not fit weights {build.type(w)}, group"
            f" {groups} and offset_group {shares}"
        )
    places = build.shape(offset)[2:]
    build.need_if_possible(build.shape(offset)[1], shares * taps * rank)
    offset = build.reshape(offset, (batch, shares, taps, rank, *places))
    mask = node.optional(4)
    if mask is not None:
        mask = build.reshape(mask, (batch, shares, taps, *places))
    seen = []
    for share in range(shares):
        part = build.one_axis_slice(x, 1, share * (own // shares), own // shares)
        here = build.drop(build.one_axis_slice(offset, 1, share, 1), [1])
        value = _seen(node, part, here, window, spatial)
        if mask is not None:
            factor = build.drop(build.one_axis_slice(mask, 1, share, 1), [1])
            value *= Value(build, build.insert(factor, 2 + rank))
        seen.append(value.index)
    last = rank + 2
    whole = build.transpose(build.concat(seen, last), (0, *range(2, last), 1, last))
    rows = build.reshape(whole, (product((batch, *places)), taps, own))
    weights = build.transpose(build.reshape(w, (results, each, taps)), (2, 1, 0))
    sums = build.conv(rows, weights, build.window(build.dtype(x), (taps,)), groups)
    result = build.reshape(sums, (batch, *places, results))
    result = build.transpose(result, (0, rank + 1, *range(1, rank + 1)))
    bias = node.optional(3)
    return result if bias is None else add_bias(build, result, bias)


def _seen(node: Context, x: int, offset: int, window: Geometry, spatial: list[Dim]) -> Value:
    """What all taps see of x, as [batch, taps, *places, channels]; `offset` has an axis of axes
    behind the taps."""
    build = node.build
    axes = [ImageAxis(build, extent, "zeros", False) for extent in spatial]
    numbers = np.indices(window.kernel).reshape(len(axes), -1)
    around = []
    for at, axis in enumerate(axes):
        moved = Value(build, build.drop(build.one_axis_slice(offset, 2, at, 1), [2]))
        steps = numbers[at] * window.dilations[at] - window.lo[at]
        first = Value(build, build.constant(steps, moved.dtype)).along(1, moved)
        start = Value(build, build.iota(moved.shape, 2 + at, moved.dtype)) * window.strides[at]
        around.append(axis.around(start + first + moved))
    return Value(build, sampled(build, x, axes, around))
