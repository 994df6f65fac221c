"""Lowerings of sums of products: Gemm, MatMul, Conv, ConvTranspose."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.context import Context, Lowered, computed_wide, lowering
from satura.rewrite.onnx.lower.geometry import Geometry, geometry
from satura.rewrite.onnx.lower.tensors import Tensors, common_shape
from satura.rewrite.types.dims import Dim, product


@lowering("Gemm")
def gemm_node(node: Context) -> Lowered:
    """alpha · A·B + beta · C; f16 products that are scaled are not rounded before."""
    scaled = (node.number("alpha", 1.0), node.number("beta", 1.0)) != (1, 1)
    return computed_wide(gemm)(node) if scaled else gemm(node)


def gemm(node: Context) -> int:
    """alpha · A·B + beta · C, with A and B transposed where asked."""
    build = node.build
    a, b = node[0], node[1]
    if build.rank(a) != 2 or build.rank(b) != 2:
        raise node.wrong(f"it multiplies matrices, not ranks {build.rank(a)} and {build.rank(b)}")
    a = build.transpose(a, (1, 0)) if node.integer("transA") else a
    b = build.transpose(b, (1, 0)) if node.integer("transB") else b
    result = _scale(build, build.matmul(a, b), node.number("alpha", 1.0))
    c = node.optional(2)
    if c is None:
        return result
    beta = _scale(build, c, node.number("beta", 1.0))
    return build.binary("add", result, build.expand(beta, build.shape(result)))


def _scale(build: Tensors, x: int, factor: float) -> int:
    return x if factor == 1 else build.apply_number("mul", x, factor)


@lowering("MatMul")
def matmul_node(node: Context) -> int:
    """NumPy's matmul."""
    if 0 in (node.build.rank(node[0]), node.build.rank(node[1])):
        raise node.wrong("scalars have no matrix product")
    return matmul(node.build, node[0], node[1])


def matmul(build: Tensors, x: int, y: int) -> int:
    """NumPy's matmul; stacked rows times one matrix is one product of matrices."""
    if build.rank(x) == 1:
        result = matmul(build, build.insert(x, 0), y)
        return build.drop(result, [build.rank(result) - (1 if build.rank(y) == 1 else 2)])
    if build.rank(y) == 1:
        result = matmul(build, x, build.insert(y, 1))
        return build.drop(result, [build.rank(result) - 1])
    rows, columns = build.shape(x), build.shape(y)
    if len(columns) == 2:
        if len(rows) == 2:
            return build.matmul(x, y)
        flat = build.reshape(x, (product(rows[:-1]), rows[-1]))
        return build.reshape(build.matmul(flat, y), (*rows[:-1], columns[-1]))
    batch = common_shape(rows[:-2], columns[:-2])
    wide_x = build.expand(x, (*batch, *rows[-2:]))
    wide_y = build.expand(y, (*batch, *columns[-2:]))
    return build.matmul(wide_x, wide_y)


@lowering("Conv")
def conv_node(node: Context) -> int:
    """transpose(conv(transpose(x), transpose(w))) + bias"""
    result = conv(node, node[0], node[1])
    bias = node.optional(2)
    return result if bias is None else add_bias(node.build, result, bias)


def conv(node: Context, x: int, w: int) -> int:
    """The convolution of channels-first x and w, without bias."""
    build = node.build
    rank = build.rank(x)
    if rank < 3 or build.rank(w) != rank:
        raise node.wrong(
            f"input has rank {rank}, weights have rank {build.rank(w)}; expected n, c, …"
        )
    kernel = node.static(build.shape(w)[2:], "the kernel's shape")
    window = geometry(node, build.shape(x)[2:], kernel)
    last = build.transpose(x, (0, *range(2, rank), 1))
    weights = build.transpose(w, (*range(2, rank), 1, 0))
    result = channels_last(build, last, weights, window, node.integer("group", 1))
    return build.transpose(result, (0, rank - 1, *range(1, rank - 1)))


def channels_last(build: Tensors, x: int, w: int, window: Geometry, groups: int) -> int:
    """`conv` with the window of `window`; borders below 0 are slices of x."""
    x, lo, hi = crop_negative_borders(build, x, (0, *window.lo, 0), (0, *window.hi, 0))
    attribute = build.window(
        build.dtype(x), window.kernel, window.strides, window.dilations, lo[1:-1], hi[1:-1]
    )
    return build.conv(x, w, attribute, groups)


def crop_negative_borders(
    build: Tensors, x: int, lo: Sequence[int], hi: Sequence[int]
) -> tuple[int, list[int], list[int]]:
    """x cut where a border is negative, and the borders without those."""
    if min(*lo, *hi) < 0:
        starts = [max(0, -amount) for amount in lo]
        ends = [max(0, -amount) for amount in hi]
        sizes = [n - a - b for n, a, b in zip(build.shape(x), starts, ends, strict=True)]
        x = build.slice(x, starts, sizes)
    return x, [max(0, amount) for amount in lo], [max(0, amount) for amount in hi]


def add_bias(build: Tensors, x: int, bias: int) -> int:
    """x plus one number per channel."""
    return build.binary("add", x, build.along(bias, 1, build.shape(x)))


@lowering("ConvTranspose")
def conv_transpose(node: Context) -> int:
    """The convolution with flipped weights of x with strides - 1 zeros between its elements."""
    build, x, w = node.build, node[0], node[1]
    rank = build.rank(x)
    if rank < 3 or build.rank(w) != rank:
        raise node.wrong(
            f"input has rank {rank}, weights have rank {build.rank(w)}; expected n, c, …"
        )
    kernel = node.static(build.shape(w)[2:], "the kernel's shape")
    spatial = build.shape(x)[2:]
    strides = node.integers("strides") or (1,) * len(kernel)
    dilations = node.integers("dilations") or (1,) * len(kernel)
    extra = node.integers("output_padding") or (0,) * len(kernel)
    lengths = {len(strides), len(dilations), len(extra)}
    if lengths != {len(kernel)} or min(*strides, *dilations) < 1:
        raise node.wrong(f"strides, dilations and output_padding do not fit the kernel {kernel}")
    reach = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
    lo, hi = _transposed_pads(node, spatial, reach, strides, extra)
    spread = _interleave_zeros(build, build.transpose(x, (0, *range(2, rank), 1)), strides)
    window = Geometry(
        kernel, (1,) * len(kernel), dilations,
        tuple(r - a for r, a in zip(reach, lo, strict=True)),
        tuple(r - b + e for r, b, e in zip(reach, hi, extra, strict=True)),
    )  # fmt: skip
    groups = node.integer("group", 1)
    result = channels_last(build, spread, _flip_kernel(node, w, groups), window, groups)
    result = build.transpose(result, (0, rank - 1, *range(1, rank - 1)))
    bias = node.optional(2)
    return result if bias is None else add_bias(build, result, bias)


def _transposed_pads(
    node: Context,
    spatial: Sequence[Dim],
    reach: Sequence[int],
    strides: Sequence[int],
    extra: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Borders cut off the full result, from pads, output_shape or auto_pad."""
    axes = len(reach)
    pads = node.integers("pads") or (0,) * (2 * axes)
    auto = node.text("auto_pad", "NOTSET")
    wanted = node.integers("output_shape")
    if len(pads) != 2 * axes or (wanted is not None and len(wanted) < axes):
        raise node.wrong(f"pads or output_shape do not fit {axes} kernel axes")
    if wanted is None and not auto.startswith("SAME"):
        return list(pads[:axes]), list(pads[axes:])
    sizes = node.static(spatial, "the spatial extents")
    if wanted is None:
        wanted = tuple(n * s for n, s in zip(sizes, strides, strict=True))
    lo, hi = [], []
    for axis in range(axes):
        full = strides[axis] * (sizes[axis] - 1) + extra[axis] + reach[axis] + 1
        total = full - wanted[len(wanted) - axes + axis]
        smaller = total // 2
        first = smaller if auto == "SAME_UPPER" else total - smaller
        lo.append(first)
        hi.append(total - first)
    return lo, hi


def _interleave_zeros(build: Tensors, x: int, strides: Sequence[int]) -> int:
    """Zeros between the elements of channels-last x: split, pad, join, cut the last zeros off."""
    if all(stride == 1 for stride in strides):
        return x
    n, *spatial, c = build.shape(x)
    split = build.reshape(x, [n, *(dim for extent in spatial for dim in (extent, 1)), c])
    amounts = [0, *(amount for stride in strides for amount in (0, stride - 1)), 0]
    zero = build.constant(0, build.dtype(x))
    padded = build.padded(split, zero, [0] * len(amounts), amounts)
    joined = [extent * stride for extent, stride in zip(spatial, strides, strict=True)]
    whole = build.reshape(padded, [n, *joined, c])
    sizes = [size - (stride - 1) for size, stride in zip(joined, strides, strict=True)]
    return build.slice(whole, [0] * (len(spatial) + 2), [n, *sizes, c])


def _flip_kernel(node: Context, w: int, groups: int) -> int:
    """Weights [c, oc/g, *kernel] as [*flipped kernel, c/g, oc]."""
    build = node.build
    channels, width, *kernel = node.static(build.shape(w), "the weights' shape")
    if groups < 1 or channels % groups:
        raise node.wrong(f"{channels} channels do not split into {groups} groups")
    axes = range(3, 3 + len(kernel))
    split = build.reshape(w, (groups, channels // groups, width, *kernel))
    moved = build.transpose(split, (*axes, 1, 0, 2))
    joined = build.reshape(moved, (*kernel, channels // groups, groups * width))
    shape = build.shape(joined)
    starts = [*(k - 1 for k in kernel), 0, 0]
    return build.slice(joined, starts, shape, [*(-1 for _ in kernel), 1, 1])
