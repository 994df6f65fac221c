"""Long sums in parts, which threads share, and the sums of these: they are rounded in another way.

Where that pays is for extraction to say: most programs have results enough for all threads.
"""

from __future__ import annotations

from math import prod

from satura.rewrite.language.dsl import Law, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import matmul, reduce, reshape, transpose
from satura.rewrite.types.attributes import Axes, Perm, ReduceFn, Shape, refuse_unless
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules.contraction import keeps_products
from satura.rules.reshape import with_units_at

LONG_DEPTH, SMALL_PRODUCT = 2048, 2048
LONG_AXIS, MANY_ELEMENTS, FEW_RESULTS = 512, 4096, 8
MOST_PARTS = 64


def part_count(extent: int) -> int:
    """Into how many even parts an axis is cut: as many as may be.

    Refuses where no number divides the extent.
    """
    found = max(count for count in range(1, MOST_PARTS + 1) if extent % count == 0)
    refuse_unless(found > 1, "the axis has no even parts")
    return found


def in_parts(x: TensorType, axis: int) -> Shape:
    """The shape of x with an axis cut into parts."""
    extent = static(x.shape[axis])
    count = part_count(extent)
    return Shape((*x.shape[:axis], count, extent // count, *x.shape[axis + 1 :]))


@attribute_function
def is_deep(x: TensorType, y: TensorType) -> bool:
    """Whether few elements are sums of many products, which are rounded as sums are; all extents
    have to be known."""
    dims = (*x.shape, y.shape[-1])
    if not keeps_products(x) or not all(isinstance(dim, int) for dim in dims):
        return False
    *others, depth, columns = map(static, dims)
    return depth >= LONG_DEPTH and prod(others) * columns <= SMALL_PRODUCT


@attribute_function
def rows_in_parts(x: TensorType) -> Shape:
    """The shape of x with its last axis cut into parts."""
    return in_parts(x, x.rank - 1)


@attribute_function
def parts_first(x: TensorType) -> Perm:
    """The permutation that brings the parts of the last axis of x before its rows."""
    *batch, rows, parts, depth = range(x.rank + 1)
    return Perm((*batch, parts, rows, depth))


@attribute_function
def columns_in_parts(y: TensorType) -> Shape:
    """The shape of y with its last axis but one cut into parts."""
    return in_parts(y, y.rank - 2)


@attribute_function
def over_parts(x: TensorType) -> Axes:
    """The axis of the parts, behind the batches of x."""
    return Axes((x.rank - 2,))


@attribute_function
def product_shape(x: TensorType, y: TensorType) -> Shape:
    """The shape of matmul(x, y)."""
    return Shape((*x.shape[:-1], y.shape[-1]))


@rule(reassociates=True)
def matmul_in_parts(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = the sum of the products of parts of x's columns and of y's rows, when these
    are many and the product is small"""
    parts = matmul(
        transpose(reshape(x, rows_in_parts(x.type)), parts_first(x.type)),
        reshape(y, columns_in_parts(y.type)),
    )
    return rewrites(
        matmul(x, y),
        reshape(reduce("sum", parts, over_parts(x.type)), product_shape(x.type, y.type)),
        is_deep(x.type, y.type),
    )


@attribute_function
def is_long(x: TensorType, axes: Axes) -> bool:
    """Whether few results are made of many elements along `axes`, whose partial results are
    rounded no further; all extents have to be known."""
    if x.dtype in (DType.F16, DType.BF16) or not all(isinstance(dim, int) for dim in x.shape):
        return False
    extents = [static(x.shape[axis]) for axis in axes.indices]
    results = prod(static(dim) for axis, dim in enumerate(x.shape) if axis not in axes.indices)
    is_long = max(extents, default=0) >= LONG_AXIS and prod(extents) >= MANY_ELEMENTS
    return is_long and results <= FEW_RESULTS


def longest(x: TensorType, axes: Axes) -> int:
    """Which one of `axes` is the longest, the first one of several."""
    return max(axes.indices, key=lambda axis: static(x.shape[axis]))


@attribute_function
def longest_in_parts(x: TensorType, axes: Axes) -> Shape:
    """The shape of x with the longest of `axes` cut into parts."""
    return in_parts(x, longest(x, axes))


@attribute_function
def within_parts(x: TensorType, axes: Axes) -> Axes:
    """`axes` of x where the longest of them is cut into parts, but for that of the parts."""
    at = longest(x, axes)
    return Axes(tuple(axis + (axis >= at) for axis in axes.indices))


@attribute_function
def of_the_parts(x: TensorType, axes: Axes) -> Axes:
    """The axis of the parts."""
    return Axes((longest(x, axes),))


@rule(reassociates=True)
def reduce_in_parts(f: ReduceFn, x: Tensor, axes: Axes) -> Law:
    """reduce(f, x, axes) = reduce(f, reduce(f, parts of x, axes within), parts), when there are
    few results and the parts are of a long axis"""
    parts = reduce(f, reshape(x, longest_in_parts(x.type, axes)), within_parts(x.type, axes))
    whole = reduce(f, parts, of_the_parts(x.type, axes))
    return rewrites(
        reduce(f, x, axes),
        reshape(whole, with_units_at(Shape(x.type.shape), axes)),
        is_long(x.type, axes),
    )
