"""QuantizeLinear and DequantizeLinear found in the arithmetic that they are lowered to.

Runtimes compute with integers between them, and cannot find them in the arithmetic. Matched is what
is equal for each number: where x is NaN the ops leave open what the result is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.onnx.write.formula import is_function, number_of, spread_from
from satura.rewrite.program.program import Node
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import DType

Nodes = Sequence[Node]
QUANTISED = (DType.I8, DType.U8, DType.I16, DType.U16)
_DIFFERENCES = {
    DType.I8: (DType.I16, DType.I32), DType.U8: (DType.I16, DType.I32),
    DType.I16: (DType.I32,), DType.U16: (DType.I32,),
}  # fmt: skip
"""The types that hold all differences of two numbers."""


@dataclass(frozen=True)
class Mark:
    """One of the two ops on node `x`, or on a constant that is narrower than the node, with a scale
    and a zero point, or with lines along `axis`."""

    op_type: str
    x: int | Constant
    scale: Constant
    zero: Constant
    axis: int | None


@dataclass(frozen=True)
class _Line:
    """One number, or one for each place along an axis."""

    array: NDArray[np.float64]
    axis: int | None


_NOUGHT = _Line(np.zeros(()), None)


def quantised(nodes: Nodes, index: int) -> Mark | None:
    """The QuantizeLinear that node `index` is the result of: round(x / scale) + zero, clamped."""
    node = nodes[index]
    target = node.type.dtype
    if node.op.name != "cast" or target not in QUANTISED:
        return None
    clamped = _clamped(nodes, node.operands[0], *map(float, target.bounds))
    if clamped is None or nodes[clamped].type.dtype is not DType.F32:
        return None
    for rounded, zero in _moved(nodes, clamped):
        if is_function(nodes[rounded], "round"):
            for x, scale in _scaled(nodes, nodes[rounded].operands[0]):
                mark = _mark("QuantizeLinear", x, scale, zero, target)
                if mark is not None:
                    return mark
    return None


def dequantised(nodes: Nodes, index: int) -> Mark | None:
    """The DequantizeLinear that node `index` is the result of: (x - zero) * scale."""
    node = nodes[index]
    if node.type.dtype is not DType.F32 or not is_function(node, "mul"):
        return None
    for wide, factor in (node.operands, node.operands[::-1]):
        scale = _line(nodes, factor)
        if scale is not None and nodes[wide].op.name == "cast":
            x, zero = _difference(nodes, nodes[wide].operands[0])
            if nodes[x].type.dtype in QUANTISED:
                of, dtype = _narrowed(nodes[x], x)
                return _mark("DequantizeLinear", of, scale, zero, dtype)
    return None


def _narrowed(node: Node, index: int) -> tuple[int | Constant, DType]:
    """The node, or the constant that it is in 8 bits, as before its zero point was subtracted."""
    if node.op.name == "constant" and node.type.dtype is DType.I16 and node.constant.size:
        array = node.constant.array
        for dtype in (DType.I8, DType.U8):
            least, most = dtype.bounds
            if least <= array.min() and array.max() <= most:
                return Constant(array.astype(dtype.numpy)), dtype
    return index, node.type.dtype


def _clamped(nodes: Nodes, index: int, least: float, most: float) -> int | None:
    """What is clamped between two numbers, in either order."""
    for first, second in (("min", "max"), ("max", "min")):
        bounds = {"min": most, "max": least}
        inner = _bounded(nodes, index, first, bounds[first])
        x = None if inner is None else _bounded(nodes, inner, second, bounds[second])
        if x is not None:
            return x
    return None


def _bounded(nodes: Nodes, index: int, function: str, bound: float) -> int | None:
    """What has one bound."""
    node = nodes[index]
    if function == "max" and bound == 0 and is_function(node, "relu"):
        return node.operands[0]
    if is_function(node, function):
        for x, number in (node.operands, node.operands[::-1]):
            if number_of(nodes, number) == bound:
                return x
    return None


def _moved(nodes: Nodes, index: int) -> Iterator[tuple[int, _Line]]:
    """What a zero point is added to, and the zero point."""
    yield index, _NOUGHT
    node = nodes[index]
    if is_function(node, "add"):
        for x, number in (node.operands, node.operands[::-1]):
            zero = _line(nodes, number)
            if zero is not None:
                yield x, zero


def _scaled(nodes: Nodes, index: int) -> Iterator[tuple[int, _Line]]:
    """What is divided by a scale, and the scale; a product with powers of two is a quotient."""
    node = nodes[index]
    if is_function(node, "div"):
        scale = _line(nodes, node.operands[1])
        if scale is not None:
            yield node.operands[0], scale
    if is_function(node, "mul"):
        for x, factor in (node.operands, node.operands[::-1]):
            line = _line(nodes, factor)
            if line is not None and (np.frexp(line.array)[0] == 0.5).all():
                yield x, _Line(1 / line.array, line.axis)


def _difference(nodes: Nodes, index: int) -> tuple[int, _Line]:
    """What a zero point is subtracted from, in a type without overflow, and the zero point."""
    node = nodes[index]
    if is_function(node, "sub"):
        wide, (x, *_) = nodes[node.operands[0]], (*nodes[node.operands[0]].operands, -1)
        zero = _line(nodes, node.operands[1])
        if wide.op.name == "cast" and zero is not None:
            is_wide = node.type.dtype in _DIFFERENCES.get(nodes[x].type.dtype, ())
            return (x, zero) if is_wide else (index, _NOUGHT)
    return index, _NOUGHT


def _line(nodes: Nodes, index: int) -> _Line | None:
    """The number or the line of numbers that a constant has for each element."""
    node = nodes[spread_from(nodes, index)]
    if node.op.name != "constant":
        return None
    if node.type.dtype not in (DType.F32, DType.I16, DType.I32):
        return None
    array, shape = node.constant.array.astype(np.float64), nodes[index].type.shape
    longer = [axis for axis, extent in enumerate(array.shape) if extent != 1]
    if not longer:
        return _Line(array.reshape(()), None)
    if len(longer) > 1 or array.ndim != len(shape) or array.size != shape[longer[0]]:
        return None
    return _Line(array.ravel(), longer[0])


def _mark(op_type: str, x: int | Constant, scale: _Line, zero: _Line, dtype: DType) -> Mark | None:
    """The op, whose numbers are of the same length; None where it cannot have them."""
    axes = {line.axis for line in (scale, zero)} - {None}
    least, most = dtype.bounds
    if (
        len(axes) > 1
        or not (np.isfinite(scale.array) & (scale.array > 0)).all()
        or not ((zero.array >= least) & (zero.array <= most)).all()
        or (zero.array != np.rint(zero.array)).any()
    ):
        return None
    first, second = np.broadcast_arrays(scale.array, zero.array)
    return Mark(
        op_type,
        x,
        Constant(first.astype(np.float32)),
        Constant(second.astype(dtype.numpy)),
        next(iter(axes), None),
    )
