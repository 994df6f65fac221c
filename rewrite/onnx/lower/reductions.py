"""Lowerings of reductions."""

from __future__ import annotations

from functools import cache

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import Dim, SymbolicDim, product, static
from satura.rewrite.types.tensor_type import DType

_AXES_INPUT_SINCE = {"ReduceSum": 13}
_SCAN_BLOCK = 16
_BLOCKS = range(5, 17)
_LONGEST_BLOCK = 32
_STEPS = 12  # for one element, beside those of its block
_PADDED = 6  # more, where blocks are padded
_OF_BLOCKS = 5  # times as many for a block as for an element
_MOST_DEEP = 2
"""Blocks of 16 of blocks of 16: of a million elements 4,000 remain."""


def _axes(node: Context) -> tuple[int, ...]:
    """The axes to reduce; empty where the node asks for none."""
    rank = node.build.rank(node[0])
    if node.opset < _AXES_INPUT_SINCE.get(node.proto.op_type, 18):
        given = node.integers("axes")
    else:
        given = None if node.optional(1) is None else node.fixed(1)
    if not given:
        return () if node.integer("noop_with_empty_axes") else tuple(range(rank))
    return node.axes(given, rank)


@lowering("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")
def reduce(node: Context) -> int:
    """One reduction; without axes the operand itself, where the node says so."""
    axes = _axes(node)
    if not axes and node.integer("noop_with_empty_axes"):
        return node[0]
    kind = node.proto.op_type.removeprefix("Reduce").lower()
    return _kept_or_dropped(node, node.build.reduce(kind, node[0], axes), axes)


@lowering(
    "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"
)
@computed_wide
def reduce_by_definition(node: Context) -> int:
    """A reduction of other elements, or one whose result goes through a function."""
    build, x, axes = node.build, node[0], _axes(node)
    dtype = build.dtype(x)
    kind = node.proto.op_type.removeprefix("Reduce")
    exact = dtype.is_float or kind in ("Mean", "L1", "SumSquare")
    result = _reduce(build, kind, x if exact else build.cast(x, DType.F64), axes)
    return _kept_or_dropped(node, build.converted(result, dtype), axes)


def _kept_or_dropped(node: Context, result: int, axes: tuple[int, ...]) -> int:
    return result if node.integer("keepdims", 1) else node.build.drop(result, axes)


def _reduce(build: Tensors, kind: str, x: int, axes: tuple[int, ...]) -> int:
    if kind == "Mean":
        return build.mean(x, axes)
    if kind == "L1":
        return build.reduce("sum", build.unary("abs", x), axes)
    if kind == "LogSum":
        return build.unary("log", build.reduce("sum", x, axes))
    if kind == "LogSumExp":
        return log_sum_exp(build, x, axes)
    squares = build.reduce("sum", build.binary("mul", x, x), axes)
    return squares if kind == "SumSquare" else build.unary("sqrt", squares)


def log_sum_exp(build: Tensors, x: int, axes: tuple[int, ...]) -> int:
    """log(sum(exp(x - m))) + m with m the largest element, or 0 where that is infinite."""
    largest = Value(build, build.reduce("max", x, axes))
    shift = largest.like(0).where(largest.unary("isinf"), largest)
    moved = build.binary("sub", x, build.expand(shift.index, build.shape(x)))
    total = Value(build, build.reduce("sum", build.unary("exp", moved), axes))
    return (total.unary("log") + shift).index


@lowering("ArgMax", "ArgMin")
def arg_reduce(node: Context) -> int:
    """Where the largest or smallest element of an axis stands."""
    build, x = node.build, node[0]
    axis = node.axis(node.integer("axis"), build.rank(x))
    f = "max" if node.proto.op_type == "ArgMax" else "min"
    result = build.arg_reduce(f, x, axis, bool(node.integer("select_last_index")))
    return result if node.integer("keepdims", 1) else build.drop(result, [axis])


@lowering("Hardmax")
def hard_max(node: Context) -> int:
    """1 at the first largest element of an axis, 0 elsewhere."""
    build = node.build
    x, axis = with_axis(node)
    flat = build.shape(x)
    if flat[axis] == 0:
        return node[0]
    if not build.is_at_least(flat[axis], 1):  # an element behind all: of equal ones it is no first
        ends = [int(at == axis) for at in range(len(flat))]
        x = build.pad(x, [0] * len(flat), ends, -np.inf)
    where = build.expand(build.arg_reduce("max", x, axis), flat)
    places = build.iota(flat, axis, DType.I64)
    result = build.cast(build.binary("eq", where, places), build.dtype(x))
    return result if x == node[0] else build.reshape(result, build.shape(node[0]))


def with_axis(node: Context) -> tuple[int, int]:
    """Operand 0, maybe reshaped, and its axis that `axis` says.

    Before opset 13 all axes from that on count as one; those of extent 1 change nothing.
    """
    build, x = node.build, node[0]
    shape = build.shape(x)
    if node.opset >= 13:
        return x, node.axis(node.integer("axis", -1), len(shape))
    first = node.axis(node.integer("axis", 1), len(shape))
    long = [axis for axis in range(first, len(shape)) if shape[axis] != 1]
    if len(long) < 2:
        return x, (long or [first])[0]
    return build.reshape(x, (*shape[:first], product(shape[first:]))), first


_RUNNING = {"CumSum": "sum", "CumProd": "prod"}


@lowering(*_RUNNING)
def running(node: Context) -> int:
    """Sums or products of all elements up to each (from each on where reversed), with it or not."""
    f = _RUNNING[node.proto.op_type]
    build, x = node.build, node[0]
    if node.values.needed(node[1]) is None:
        raise NoLowering
    axis = node.axis(node.fixed(1, 1)[0], build.rank(x))
    is_exclusive = bool(node.integer("exclusive"))
    if build.shape(x)[axis] in ((0,) if is_exclusive else (0, 1)):
        return x
    backward = bool(node.integer("reverse"))
    if is_exclusive:
        x = _shift(build, f, x, axis, backward)
    return _running(build, f, x, axis, backward)


def _running(build: Tensors, f: str, x: int, axis: int, backward: bool, depth: int = 0) -> int:
    """f within blocks, and of each block and all before it: few steps per element.

    How many blocks of blocks a symbolic axis has is not known: few of them are compared in pairs.
    """
    shape = build.shape(x)
    extent = shape[axis]
    block = _block_of(extent)
    if block == extent:
        return _under_window(build, f, x, axis, backward)
    if isinstance(extent, SymbolicDim) and depth == _MOST_DEEP:
        return _in_pairs(build, f, x, axis, backward)
    count = (extent + (block - 1)) // block
    missing: list[Dim] = [0] * len(shape)
    missing[axis] = count * block - extent
    nothing = _nothing(build, f, x)
    x = build.padded(x, nothing, [0] * len(shape), missing)
    blocks = [*shape[:axis], count, block, *shape[axis + 1 :]]
    sums = _under_window(build, f, build.reshape(x, blocks), axis + 1, backward)
    last = 0 if backward else block - 1
    totals = build.one_axis_slice(sums, axis + 1, last, 1)
    shifted = _shift(build, f, totals, axis, backward)
    before = _running(build, f, shifted, axis, backward, depth + 1)
    both = "add" if f == "sum" else "mul"
    sums = build.binary(both, sums, build.expand(before, blocks))
    return build.one_axis_slice(build.reshape(sums, build.shape(x)), axis, 0, extent)


def _block_of(extent: Dim) -> int:
    """How many elements a block has; all where one is best."""
    return _scan(extent)[1] if isinstance(extent, int) else _SCAN_BLOCK


@cache
def _scan(extent: int) -> tuple[int, int]:
    """About how many instructions the sums along an axis take, and the block that makes them few.

    A block sees each of its elements, what does not fill it is padded, and blocks take more steps.
    """
    choices = [(extent * (_STEPS + extent), extent)] if extent <= _LONGEST_BLOCK else []
    for block in _BLOCKS:
        if block < extent:
            count = -(-extent // block)
            padded = count * block * (_STEPS + block) + extent * _PADDED * (extent % block > 0)
            choices.append((padded + _OF_BLOCKS * _scan(count)[0], block))
    return min(choices)


def _nothing(build: Tensors, f: str, x: int) -> int:
    return build.constant(0 if f == "sum" else 1, build.dtype(x))


def _shift(build: Tensors, f: str, x: int, axis: int, backward: bool) -> int:
    """x moved on by one element along an axis, with 0, or 1 for products, in front (at the end if
    `backward`)."""
    extent = build.shape(x)[axis]
    one = [1 if i == axis else 0 for i in range(build.rank(x))]
    none = [0] * build.rank(x)
    sides = (none, one) if backward else (one, none)
    longer = build.padded(x, _nothing(build, f, x), *sides)
    return build.one_axis_slice(longer, axis, 1 if backward else 0, extent)


def _in_pairs(build: Tensors, f: str, x: int, axis: int, backward: bool) -> int:
    """For each element f of those that are not behind it (before it if `backward`)."""
    shape = build.shape(x)
    pairs = (*shape[: axis + 1], *shape[axis:])
    other = build.broadcast(build.insert(x, axis), pairs)
    here, there = (build.iota(pairs, at, DType.I64) for at in (axis, axis + 1))
    counts = build.binary("le", here, there) if backward else build.binary("le", there, here)
    nothing = build.number(0 if f == "sum" else 1, other)
    total = build.reduce(f, build.select(counts, other, nothing), [axis + 1])
    return build.drop(total, [axis + 1])


def _under_window(build: Tensors, f: str, x: int, axis: int, backward: bool) -> int:
    """A window that reaches back over the whole axis (forward if `backward`)."""
    shape = build.shape(x)
    extent = static(shape[axis])
    reach = [extent - 1 if i == axis else 0 for i in range(len(shape))]
    none = [0] * len(shape)
    window: Window = build.window(
        build.dtype(x),
        [extent if i == axis else 1 for i in range(len(shape))],
        lo=none if backward else reach,
        hi=reach if backward else none,
        fill=0 if f == "sum" else 1,
    )
    return build.pool(f, x, window)
