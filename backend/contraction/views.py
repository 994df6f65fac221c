"""How a contraction reads operands: strided views of tensors, maybe through elementwise ops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satura.backend.lower.body import Pointer
from satura.backend.lower.space import space_of
from satura.backend.lower.walk import shape_of, strides_of
from satura.rewrite.extract.schedule import Dispatch, Home, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.dims import static
from satura.rewrite.types.index_map import coefficient, is_affine, offset, pull
from satura.rewrite.types.tensor_type import Array

_VIEWS = ("transpose", "reshape", "broadcast", "slice")


@dataclass(frozen=True)
class View:
    """A strided view of a materialised tensor; strides in bytes, 0 along axes of extent 1."""

    node: int
    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def elements(self, array: Array) -> Array:
        """What this sees of the tensor, which is `array`: not a copy."""
        flat = array.reshape(-1)[self.pointer.offset // self.itemsize :]
        shape, strides = tuple(map(int, self.shape)), tuple(map(int, self.strides))
        return np.lib.stride_tricks.as_strided(flat, shape, strides)


@dataclass(frozen=True)
class Seen:
    """A view whose elements go through `steps`: each an op and its operands, None for the element
    at hand and an array of one element for each of the others."""

    view: View
    steps: tuple[tuple[Node, tuple[Array | None, ...]], ...]

    def applied(self, elements: Array) -> Array:
        """What the steps make of elements in memory."""
        for node, operands in self.steps:
            given = [elements if other is None else other for other in operands]
            elements = np.asarray(node.op.reference(*given, *node.attributes))
        return elements


def view_of(schedule: Schedule, dispatch: Dispatch, node: int) -> View | None:
    """How `node` lies in a materialised tensor; None where that is not a strided view."""
    seen = view_through(schedule, dispatch, node)
    return None if seen is None or seen.steps else seen.view


def view_through(schedule: Schedule, dispatch: Dispatch, node: int) -> Seen | None:
    """How `node` comes from a materialised tensor, by a view and elementwise ops with constants."""
    shape = shape_of(schedule, node)
    space = space_of(shape)
    index, at = space.index, node
    nodes = schedule.program.nodes
    steps: list[tuple[Node, tuple[Array | None, ...]]] = []
    while at not in dispatch.operands and nodes[at].op.name != "constant":
        if nodes[at].op.kind is Kind.ELEMENTWISE:
            operands = tuple(_one_element(schedule, operand) for operand in nodes[at].operands)
            if operands.count(None) != 1:
                return None
            steps.insert(0, (nodes[at], operands))
            at = nodes[at].operands[operands.index(None)]
            continue
        if nodes[at].op.name not in _VIEWS:
            return None
        below = nodes[at].operands[0]
        index = pull(
            nodes[at].op.name, nodes[at].attributes, index, nodes[at].type.shape,
            nodes[below].type.shape, space.ranges,
        )  # fmt: skip
        at = below
    home = schedule.homes.get(at, Home(at, (0,) * nodes[at].type.rank))
    inside = tuple(start + i for start, i in zip(home.start, index, strict=True))
    position = offset(inside, strides_of(schedule, home))
    if not is_affine(position):
        return None
    size = nodes[at].type.dtype.itemsize
    strides = tuple(static(coefficient(position, v.name)) * size for v in space.variables)
    start = position if isinstance(position, int) else dict(position.terms).get((), 0)
    view = View(at, Pointer(("buffer", home.buffer), start * size), shape, strides, size)
    return Seen(view, tuple(steps))


def _one_element(schedule: Schedule, node: int) -> Array | None:
    """The only element of a constant that is spread over a tensor; None for anything else."""
    nodes = schedule.program.nodes
    while nodes[node].op.name in _VIEWS:
        node = nodes[node].operands[0]
    found = nodes[node]
    if found.op.name != "constant" or found.constant.size != 1:
        return None
    return found.constant.array.reshape(1)
