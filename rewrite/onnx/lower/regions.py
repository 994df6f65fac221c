"""Lowerings of RoiAlign, which samples regions of images, and of Col2Im, which adds blocks up."""

from __future__ import annotations

from math import prod

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.broadcasting import fits
from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.places import inside
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim, product
from satura.rewrite.types.tensor_type import DType

Taps = list[tuple[int, int]]
"""Positions along an axis, [region, sample], and their weights."""


@lowering("RoiAlign")
@computed_wide
def roi_align(node: Context) -> int:
    """The mean of so many samples per bin of each region, between the elements around them."""
    build, x = node.build, node[0]
    samples = node.integer("sampling_ratio")
    if samples <= 0 or node.text("mode", "avg") != "avg":
        raise NoLowering  # as many samples as a region is large
    bins = node.integer("output_height", 1), node.integer("output_width", 1)
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    is_half = node.opset >= 16 and mode == "half_pixel"
    batch, channels, *spatial = build.shape(x)
    scaled = node.tensor(1) * node.number("spatial_scale", 1.0)
    regions = (scaled - 0.5 if is_half else scaled).index
    axes = []
    for at, (extent, count) in enumerate(zip(spatial, bins, strict=True)):
        start, end = (build.one_axis_slice(regions, 1, column - at, 1) for column in (1, 3))
        size = Value(build, build.binary("sub", end, start))
        step = (size if is_half else size.binary("max", 1)) / count
        axes.append(_taps(build, extent, start, step.index, count, samples))
    rows = build.reshape(build.transpose(x, (0, 2, 3, 1)), (product((batch, *spatial)), channels))
    image = build.reshape(inside(build, node[2], batch), (build.shape(node[2])[0], 1, 1))
    terms = []
    for down, height in axes[0]:
        for across, width in axes[1]:
            lines = build.binary("mul", image, build.size_of(spatial[:1], image))
            places = build.apply("add", lines, build.insert(down, 2))
            places = build.binary("mul", places, build.size_of(spatial[1:], places))
            places = build.apply("add", places, build.insert(across, 1))
            weight = build.apply("mul", build.insert(height, 2), build.insert(width, 1))
            value = build.gather(rows, places, 0)
            terms.append(build.apply("mul", value, build.insert(weight, 3)))
    total = terms[0]
    for term in terms[1:]:
        total = build.binary("add", total, term)
    regions_, *_ = build.shape(total)
    split = (regions_, bins[0], samples, bins[1], samples, channels)
    mean = build.drop(build.mean(build.reshape(total, split), (2, 4)), (2, 4))
    return build.transpose(mean, (0, 3, 1, 2))


def _taps(build: Tensors, extent: Dim, start: int, step: int, count: int, samples: int) -> Taps:
    """Elements around each sample. Beyond the image by more than one element they count nothing."""
    number = np.arange(count * samples)
    inside = number // samples + (number % samples + 0.5) / samples
    line = build.constant(inside.reshape(1, -1), build.dtype(start))
    place = Value(build, build.apply("add", start, build.apply("mul", step, line)))
    size = Value(build, build.size_of([extent], place.index))
    near = (place >= -1).binary("and", place <= size)
    place = place.binary("max", 0).binary("min", size - 1)
    low = place.unary("floor")
    high, share = (low + 1).binary("min", size - 1), place - low
    return [
        (at.cast(DType.I64).index, weight.where(near, 0).index)
        for at, weight in ((low, 1 - share), (high, share))
    ]


@lowering("Col2Im")
@computed_wide
def col2im(node: Context) -> int:
    """The image whose overlapping blocks, one per column, are added up."""
    build, x = node.build, node[0]
    image, block = node.fixed(1), node.fixed(2)
    rank = len(image)
    ones, zeros = (1,) * rank, (0,) * (2 * rank)
    strides, pads = node.integers("strides") or ones, node.integers("pads") or zeros
    dilations = node.integers("dilations") or ones
    for name, given, count in (
        ("block_shape", block, rank), ("dilations", dilations, rank), ("strides", strides, rank),
        ("pads", pads, 2 * rank),
    ):  # fmt: skip
        if len(given) != count:
            raise node.wrong(f"its {name} {list(given)} needs {count} numbers for {list(image)}")
    parts = zip(image, pads, pads[rank:], strict=False)
    padded = [extent + lo + hi for extent, lo, hi in parts]
    reach = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, block, strict=True)]
    steps = [
        (extent - far) // stride + 1
        for extent, far, stride in zip(padded, reach, strides, strict=True)
    ]
    batch, width, _ = build.shape(x)
    channels = width // prod(block)
    fitting = (batch, channels * prod(block), prod(steps))
    if not fits(build.shape(x), fitting):
        raise node.wrong(f"{build.type(x)} is not made of blocks {list(block)} of {list(image)}")
    x = build.exactly(x, fitting)
    inner, outer = np.indices(block).reshape(rank, -1, 1), np.indices(steps).reshape(rank, 1, -1)
    places = np.zeros((prod(block), prod(steps)), np.int64)
    for at in range(rank):
        places = places * padded[at] + inner[at] * dilations[at] + outer[at] * strides[at]
    split = build.reshape(x, (batch, channels, prod(block), prod(steps)))
    lines = build.reshape(build.transpose(split, (2, 3, 0, 1)), (places.size, batch * channels))
    empty = build.full(0, (prod(padded), batch * channels), build.dtype(x))
    total = build.scatter(empty, build.constant(places.reshape(-1)), lines, "sum")
    whole = build.reshape(total, (*padded, batch, channels))
    moved = build.transpose(whole, (rank, rank + 1, *range(rank)))
    return build.slice(moved, (0, 0, *pads[:rank]), (batch, channels, *image))
