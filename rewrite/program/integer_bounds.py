"""What the integers of a tensor are at least and at most, whatever data says.

Places that lowerings compute are bounded: ramps, constants, extents, and what is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Axis, BinaryFn, Shape
from satura.rewrite.types.dims import Dim, known_at_least
from satura.rewrite.types.tensor_type import DType

_DEPTH = 64  # nodes behind one another that are looked at
_MOVED = ("reshape", "transpose", "broadcast", "slice", "gather")

Bounds = tuple[Dim | None, Dim | None]
"""The least and the greatest element, where they are known."""

UNKNOWN: Bounds = None, None


def are_inside(nodes: Sequence[Node], indices: int, extent: Dim) -> bool:
    """Whether all elements of `indices` are known to be in [0, extent)."""
    least, greatest = _Bounds(nodes).of(indices, _DEPTH)
    if least is None or greatest is None:
        return False
    return known_at_least(least, 0) and known_at_least(extent - greatest, 1)


class _Bounds:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.known: dict[int, Bounds] = {}

    def of(self, x: int, depth: int) -> Bounds:
        """The bounds of node x; those of a node that several others read are found once."""
        if x not in self.known:
            is_integer = self.nodes[x].type.dtype.is_integer
            self.known[x] = self._found(self.nodes[x], depth) if is_integer and depth else UNKNOWN
        return self.known[x]

    def _found(self, node: Node, depth: int) -> Bounds:
        name = node.op.name
        if name == "constant" and node.type.size:
            array = node.constant.array
            return int(array.min()), int(array.max())
        if name == "iota":
            axis = node.attributes[1]
            assert isinstance(axis, Axis)
            return 0, node.type.shape[axis.index] - 1
        if name == "first_places":
            return 0, self.nodes[node.operands[0]].type.shape[1] - 1
        if name == "extent":
            shape = node.attributes[0]
            assert isinstance(shape, Shape)
            return shape.dims[0], shape.dims[0]
        if name in _MOVED:
            return self.of(node.operands[0], depth - 1)
        if name == "cast":
            bounds = self.of(node.operands[0], depth - 1)
            was_longer = self.nodes[node.operands[0]].type.dtype is DType.U64
            return UNKNOWN if node.type.dtype is not DType.I64 or was_longer else bounds
        if name != "binary":
            return UNKNOWN
        function = node.attributes[0]
        assert isinstance(function, BinaryFn)
        first, second = (self.of(operand, depth - 1) for operand in node.operands)
        return _of_pair(function.name, node.type.dtype, first, second)


def _of_pair(function: str, dtype: DType, first: Bounds, second: Bounds) -> Bounds:
    """The bounds of a binary function's values."""
    (a, b), (c, d) = first, second
    if function == "max":
        return _most(a, c), b if _is_below(d, b) else d if _is_below(b, d) else None
    if function == "min":
        return a if _is_below(a, c) else c if _is_below(c, a) else None, _least(b, d)
    if function == "mod" and c is not None and d is not None and known_at_least(c, 1):
        return 0, d - 1  # it has the divisor's sign
    numbers = [bound for bound in (a, b, c, d) if isinstance(bound, int)]
    if dtype is not DType.I64 or len(numbers) < 4 or function not in ("add", "mul"):
        return UNKNOWN
    a, b, c, d = numbers
    pairs = ((a, c), (a, d), (b, c), (b, d))
    results = [x + y if function == "add" else x * y for x, y in pairs]
    overflows = min(results) < -(1 << 63) or max(results) >= 1 << 63
    return UNKNOWN if overflows else (min(results), max(results))


def _is_below(dim: Dim | None, other: Dim | None) -> bool:
    """Whether both are known, and the first is at most the second."""
    return dim is not None and other is not None and known_at_least(other - dim, 0)


def _most(dim: Dim | None, other: Dim | None) -> Dim | None:
    """What is known of two lower bounds that both hold."""
    return other if dim is None or _is_below(dim, other) else dim


def _least(dim: Dim | None, other: Dim | None) -> Dim | None:
    """What is known of two upper bounds that both hold."""
    return other if dim is None or _is_below(other, dim) else dim
