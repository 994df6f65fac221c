"""Which indices are inside of their axis whatever data says: ramps, clamped ones and constants."""

from __future__ import annotations

from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.attributes import Axis, BinaryFn
from satura.rewrite.types.dims import Dim, known_at_least
from satura.rewrite.types.tensor_type import DType

_MOVED = ("reshape", "transpose", "broadcast", "slice")
_DEPTH = 8  # nodes behind one another that are looked at

Bounds = tuple[Dim | None, Dim | None]
"""The least and the greatest element, where they are known."""

UNKNOWN: Bounds = None, None


def is_inside(build: Tensors, indices: int, extent: Dim) -> bool:
    """Whether all elements of `indices` are known to be in [0, extent)."""
    least, greatest = _bounds(build, indices, _DEPTH)
    if least is None or greatest is None:
        return False
    return known_at_least(least, 0) and known_at_least(extent - greatest, 1)


def _bounds(build: Tensors, x: int, depth: int) -> Bounds:
    node = build.nodes[x]
    name, operands = node.op.name, node.operands
    if not node.type.dtype.is_integer or not depth:
        return UNKNOWN
    if name == "constant" and node.type.size:
        array = node.constant.array
        return int(array.min()), int(array.max())
    if name == "iota":
        axis = node.attributes[1]
        assert isinstance(axis, Axis)
        return 0, node.type.shape[axis.index] - 1
    if name == "first_places":
        return 0, build.shape(operands[0])[1] - 1
    if name in _MOVED or (name == "cast" and node.type.dtype is DType.I64):
        return _bounds(build, operands[0], depth - 1)
    if name != "binary":
        return UNKNOWN
    function = node.attributes[0]
    assert isinstance(function, BinaryFn)
    first, second = (_bounds(build, operand, depth - 1) for operand in operands)
    return _of_pair(function.name, first, second)


def _of_pair(function: str, first: Bounds, second: Bounds) -> Bounds:
    """The bounds of a binary function's values."""
    (a, b), (c, d) = first, second
    if function == "max":
        return _most(a, c), b if _is_below(d, b) else d if _is_below(b, d) else None
    if function == "min":
        return a if _is_below(a, c) else c if _is_below(c, a) else None, _least(b, d)
    if function == "mod" and c is not None and d is not None and known_at_least(c, 1):
        return 0, d - 1  # it has the divisor's sign
    return UNKNOWN


def _is_below(dim: Dim | None, other: Dim | None) -> bool:
    """Whether both are known, and the first is at most the second."""
    return dim is not None and other is not None and known_at_least(other - dim, 0)


def _most(dim: Dim | None, other: Dim | None) -> Dim | None:
    """What is known of two lower bounds that both hold."""
    return other if dim is None or _is_below(dim, other) else dim


def _least(dim: Dim | None, other: Dim | None) -> Dim | None:
    """What is known of two upper bounds that both hold."""
    return other if dim is None or _is_below(other, dim) else dim
