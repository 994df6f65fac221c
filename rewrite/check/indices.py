"""Arguments that gathers find their places by: what is computed from them lies in range.

Where that is not the argument itself, as in gather(x, i + 3), an argument is often out of range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from satura.rewrite.check.compare import apply_op
from satura.rewrite.ops import Kind
from satura.rewrite.ops.draw import Draw
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Axis
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType

COMPUTED_DRAWS = 0.5  # of arguments from which indices are computed
CANDIDATES = 40  # to be tried as such an argument
END_DRAWS = 0.75  # of indices of which many are at an end
NEAR_END = 3
MOST_INDICES = 10_000  # elements of one; others stay in range themselves
WRAPS = (8, 16, 32)  # bits that a cast keeps


def gather_extents(nodes: Sequence[Node]) -> dict[int, int]:
    """The least extent that gathers read from, for each node that their indices are made of."""
    extents: dict[int, int] = {}
    for index in reversed(range(len(nodes))):
        node = nodes[index]
        read = dict.fromkeys(node.operands, extents.get(index, 0))
        if node.op.name == "gather":
            read = {node.operands[1]: _extent_read(nodes, node)}
        for operand, extent in read.items():
            if extent:
                extents[operand] = min(extent, extents.get(operand, extent))
    return extents


def places_in(extent: int, array: Array, draw: Draw) -> Array:
    """The integers as places among so many slices, counted from either end; some are the last."""
    wide = array.astype(np.int64) + extent
    places = wide % (2 * extent) - extent
    if draw.chance(END_DRAWS):
        random = np.random.default_rng(draw.random.getrandbits(64))
        last = extent - 1 - random.integers(0, min(NEAR_END, extent), array.shape)
        chosen = np.where(random.random(array.shape) < 0.7, last, places)
        places = np.where(random.random(array.shape) < 0.2, -1 - last, chosen)
    return np.asarray(places.astype(array.dtype))


def index_nodes(nodes: Sequence[Node]) -> frozenset[int]:
    """The nodes that indices of gathers are made of."""
    gathers = (node for node in nodes if node.op.name == "gather")
    return frozenset(each for node in gathers for each in behind(nodes, node.operands[1]))


def with_computed_indices(
    nodes: Sequence[Node], arguments: dict[str, Array], draw: Draw
) -> dict[str, Array]:
    """The arguments, of which some that indices are computed from have any elements that give one
    in range, as far as each index is computed from one element."""
    for gather in nodes:
        if gather.op.name != "gather":
            continue
        sources = behind(nodes, gather.operands[1])
        names = [nodes[i].input_name for i in sources if nodes[i].op.name == "input"]
        whole = [
            name
            for name in names
            if arguments[name].dtype.kind in "iu" and 0 < arguments[name].size <= MOST_INDICES
        ]
        is_computed = any(nodes[i].op.kind is Kind.ELEMENTWISE for i in sources)
        extent = _extent_read(nodes, gather)
        if is_computed and whole and extent and draw.chance(COMPUTED_DRAWS):
            name = draw.one_of(whole)
            part = {i: nodes[i] for i in sources}
            fitting = [
                number
                for number in _candidates(part, arguments[name], extent, draw)
                if _is_in_range(part, arguments, name, number, extent)
            ]
            if fitting:
                random = np.random.default_rng(draw.random.getrandbits(64))
                drawn = random.choice(
                    np.array(fitting, arguments[name].dtype), arguments[name].shape
                )
                arguments = arguments | {name: drawn}
    return arguments


def _extent_read(nodes: Sequence[Node], gather: Node) -> int:
    """How many slices a gather chooses from."""
    axis = cast(Axis, gather.attributes[0])
    return static(nodes[gather.operands[0]].type.shape[axis.index])


def behind(nodes: Sequence[Node], index: int) -> list[int]:
    """The nodes that one is computed from, itself included, in order."""
    found, stack = {index}, [index]
    while stack:
        new = set(nodes[stack.pop()].operands) - found
        found |= new
        stack += new
    return sorted(found)


def _candidates(part: Mapping[int, Node], array: Array, extent: int, draw: Draw) -> list[int]:
    """Integers of the array's type about 0, numbers of the law, and where an integer wraps."""
    constants = [node.constant.array for node in part.values() if node.op.name == "constant"]
    numbers = {int(each.flat[0]) for each in constants if each.size and each.dtype.kind in "iu"}
    centres = [0, *sorted(numbers | {-each for each in numbers}), *(1 << bits for bits in WRAPS)]
    least, most = DType.of(array.dtype).bounds
    drawn = [
        draw.one_of(centres) + draw.random.randint(-2 * extent, 2 * extent)
        for _ in range(CANDIDATES)
    ]
    drawn += [extent - 1, extent - 2, -extent]
    return [number for number in dict.fromkeys(drawn) if least <= number <= most]


def _is_in_range(
    part: Mapping[int, Node], arguments: Mapping[str, Array], name: str, number: int, extent: int
) -> bool:
    """Whether all indices are where an argument is this number everywhere; they come last."""
    values: dict[int, Array] = {}
    for place, node in part.items():
        if node.op.name == "input":
            given = arguments[node.input_name]
            values[place] = np.full_like(given, number) if node.input_name == name else given
        else:
            operands = [values[operand] for operand in node.operands]
            values[place] = apply_op(node.op, operands, node.attributes)
    indices = values[max(part)].astype(np.int64)
    return bool(np.all((indices >= -extent) & (indices < extent)))
