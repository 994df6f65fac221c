"""Lowerings of sums of products: Gemm, MatMul, Conv."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.context import Context, Lowered, computed_wide, lowering
from satura.rewrite.onnx.lower.geometry import Geometry, kernel_of, padded_geometry
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import product


@lowering("Gemm")
def gemm_node(node: Context) -> Lowered:
    """alpha · A·B + beta · C; f16 products that are scaled are not rounded before."""
    scaled = (node.number("alpha", 1.0), node.number("beta", 1.0)) != (1, 1)
    return computed_wide(gemm)(node) if scaled else gemm(node)


def gemm(node: Context) -> int:
    """alpha · A·B + beta · C, with A and B transposed where asked; C is not read where beta is 0,
    not even its NaNs."""
    build = node.build
    a, b = node[0], node[1]
    if build.rank(a) != 2 or build.rank(b) != 2:
        raise node.wrong(f"it multiplies matrices, not ranks {build.rank(a)} and {build.rank(b)}")
    a = build.transpose(a, (1, 0)) if node.integer("transA") else a
    b = build.transpose(b, (1, 0)) if node.integer("transB") else b
    result = _scale(build, build.matmul(a, b), node.number("alpha", 1.0))
    c, beta = node.optional(2), node.number("beta", 1.0)
    if c is None or beta == 0:
        return result
    return build.binary("add", result, build.expand(_scale(build, c, beta), build.shape(result)))


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
    batch = build.common_shape(rows[:-2], columns[:-2])
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
    groups = node.integer("group", 1)
    if groups < 1:
        raise node.wrong(f"attribute 'group' must be at least 1, not {groups}")
    channels, inner = build.shape(x)[1], build.shape(w)[1]
    if not isinstance(channels, int):
        build.need_if_possible(channels, inner * groups)
    elif channels % groups == 0:
        build.need_if_possible(inner, channels // groups)
        inner = channels // groups
    node.static((inner, build.shape(w)[0]), "the number of channels")
    kernel = kernel_of(node, build.shape(w)[2:])
    x, window = padded_geometry(node, x, kernel, 0)
    last = build.transpose(x, (0, *range(2, rank), 1))
    weights = build.transpose(w, (*range(2, rank), 1, 0))
    result = channels_last(build, last, weights, window, groups)
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
