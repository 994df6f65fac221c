"""Lowerings of ops that make tensors from shapes and constants."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, isfinite, lcm

import numpy as np
from onnx import TensorProto

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.tensors import array_of
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.types.clamps import largest
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType

Number = Dim | float
_FINEST = 2**16  # parts of a whole, of which products with sizes are exact


@lowering("Constant")
def constant(node: Context) -> int:
    """The attribute's value."""
    for name, dtype in (("value_float", DType.F32), ("value_floats", DType.F32),
                        ("value_int", DType.I64), ("value_ints", DType.I64)):  # fmt: skip
        if node.has(name):
            return node.build.constant(np.asarray(node.attribute_value(name)), dtype)
    tensor = node.attribute_value("value")
    if not isinstance(tensor, TensorProto):
        raise node.unsupported("only dense tensors of numbers and bools can be constants")
    return node.build.constant(array_of(tensor))


@lowering("ConstantOfShape")
def constant_of_shape(node: Context) -> int:
    """One value everywhere; 0.0 by default."""
    tensor = node.attribute_value("value")
    value = array_of(tensor) if isinstance(tensor, TensorProto) else np.zeros(1, np.float32)
    if value.size != 1:
        raise node.wrong("its value must have one element")
    return node.build.full(value.reshape(()), node.extents(0), DType.of(value.dtype))


@lowering("Shape")
def shape(node: Context) -> int:
    """The extents from `start` to `end`."""
    dims = node.build.shape(node[0])
    if node.opset >= 15:
        end = node.integer("end") if node.has("end") else None
        dims = dims[slice(node.integer("start"), end)]
    if not any(isinstance(dim, SymbolicDim) for dim in dims):
        return node.build.constant(np.array(dims, np.int64))
    parts = [node.build.reshape(_extent(node, dim), (1,)) for dim in dims]
    return node.build.concat(parts, 0)


@lowering("Size")
def size(node: Context) -> int:
    """The number of elements."""
    return _extent(node, node.build.type(node[0]).size)


def _extent(node: Context, dim: Dim) -> int:
    if isinstance(dim, int):
        return node.build.constant(np.int64(dim))
    return node.build.extent(dim)


@lowering("Range")
def range_(node: Context) -> int:
    """start, start + delta, … below limit, as an index ramp."""
    build = node.build
    dtype = node.common_dtype(node[0], node[1], node[2])
    start, limit, step = (_end(node, position) for position in range(3))
    count = _range_count(node, start, limit, step)
    ramp = build.iota((count,), 0, dtype)
    spread = [build.expand(build.reshape(node[i], ()), (count,)) for i in (0, 2)]
    return build.binary("add", spread[0], build.binary("mul", ramp, spread[1]))


def _end(node: Context, position: int) -> Number:
    """A number of a range, which has an end and therefore no number that is none or without end."""
    number: Number = node.value(position).reshape(-1)[0]
    if not isinstance(number, SymbolicDim) and not isfinite(number):
        name = node.proto.input[position]
        raise node.wrong(f"input {position} ('{name}') is {number}, and no range goes by that")
    return number


def _range_count(node: Context, start: Number, limit: Number, step: Number) -> Dim:
    step = node.fixed_dim(step, "its delta") if isinstance(step, SymbolicDim) else step
    if step == 0:
        raise node.wrong("its delta is 0")
    if not isinstance(start, SymbolicDim) and not isinstance(limit, SymbolicDim):
        return _covered(limit - start, step)
    start, limit, step = _whole(node, start, limit, step)
    distance = limit - start
    if isinstance(distance, int):
        return _covered(distance, step)
    count = (distance + step - 1) // step if step > 0 else (-distance - step - 1) // -step
    least = count if node.build.is_at_least(count, 0) else largest(count, 0)
    if least is not None:
        return least
    if node.build.for_all_sizes:
        raise node.unknown(f"its length {count} may be negative")
    node.build.need_at_least(count, 0)
    return count


def _covered(distance: float, step: float) -> int:
    """How many steps begin before a distance; of integers exactly."""
    is_whole = isinstance(distance, int) and isinstance(step, int)
    return max(0, int(-(-distance // step)) if is_whole else ceil(distance / step))


def _whole(node: Context, start: Number, limit: Number, step: float) -> tuple[Dim, Dim, int]:
    """A range of whole numbers that has as many."""
    numbers = [each if isinstance(each, SymbolicDim) else Fraction(each) for each in (start, limit)]
    exact = Fraction(step)
    parts = lcm(*(each.denominator for each in (*numbers, exact) if isinstance(each, Fraction)))
    if parts > _FINEST:
        raise node.unknown(f"its numbers are parts of {parts}, and its length depends on sizes")
    first, last = (
        each * parts if isinstance(each, SymbolicDim) else int(each * parts) for each in numbers
    )
    return first, last, int(exact * parts)


@lowering("EyeLike")
def eye_like(node: Context) -> int:
    """1 where column = row + k, else 0."""
    build, shape_ = node.build, node.build.shape(node[0])
    if len(shape_) != 2:
        raise node.wrong(f"it needs a matrix, not rank {len(shape_)}")
    dtype = dtype_of(node.integer("dtype")) if node.has("dtype") else build.dtype(node[0])
    row, column = (build.iota(shape_, axis, DType.I64) for axis in (0, 1))
    diagonal = build.binary("eq", build.apply_number("add", row, node.integer("k")), column)
    return build.cast(diagonal, dtype)


@lowering("Trilu")
def triangle(node: Context) -> int:
    """The upper or lower triangle of the last two axes, 0 elsewhere."""
    build, x = node.build, node[0]
    rank, shape_ = build.rank(x), build.shape(x)
    if rank < 2:
        raise node.wrong(f"it needs rank 2 or more, not {rank}")
    row, column = (build.iota(shape_, axis, DType.I64) for axis in (rank - 2, rank - 1))
    k = node.optional(1)
    if k is not None:
        row = build.binary("add", row, build.expand(build.reshape(k, ()), shape_))
    order = (row, column) if node.integer("upper", 1) else (column, row)
    return build.select(build.binary("le", *order), x, build.number(0, x))


@lowering("OneHot")
def one_hot(node: Context) -> int:
    """`on` where the index (wrapped when negative) equals the position along the new axis."""
    build = node.build
    indices = build.cast(node[0], DType.I64)
    (depth,) = node.extents(1, 1)
    axis = node.axis(node.integer("axis", -1), build.rank(indices) + 1)
    shape_ = list(build.shape(indices))
    shape_.insert(axis, depth)
    spread = Value(build, build.expand(build.insert(indices, axis), shape_))
    wrapped = spread + Value(build, build.size_of([depth], spread.index))
    index = wrapped.where(spread < 0, spread)
    hit = build.binary("eq", index.index, build.iota(shape_, axis, DType.I64))
    off, on = (
        build.expand(build.reshape(build.one_axis_slice(node[2], 0, i, 1), ()), shape_)
        for i in (0, 1)
    )
    return build.select(hit, on, off)
