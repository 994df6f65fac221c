"""What dispatches with an anchor have in common: what follows it in the same loops, and the store.

The anchor is the reduction, the window or the contraction that a dispatch has its form from.
"""

from __future__ import annotations

from dataclasses import replace

from satura.backend.lower.body import Clip, Nest, Reduction
from satura.backend.lower.space import space_of
from satura.backend.lower.walk import LoweringError, Walk, shape_of, strides_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.index_map import Index, push


def anchor_of(dispatch: Dispatch) -> int:
    """The node that a dispatch has its form from."""
    if dispatch.anchor is None:
        raise LoweringError(f"the {dispatch.form.value} dispatch of %{dispatch.root} has no anchor")
    return dispatch.anchor


def index_paths(
    schedule: Schedule, dispatch: Dispatch, start: dict[int, Index], full: Index | None,
    ranges: dict[str, Dim],
) -> dict[int, Index]:  # fmt: skip
    """The index at which every node that depends on the anchor has its element.

    `start` says it for the anchors. A broadcast leads back to the space's own index, `full`.
    """
    nodes = schedule.program.nodes
    paths = dict(start)
    for index in dispatch.nodes:
        node = nodes[index]
        if index in paths:
            continue
        before = [operand for operand in node.operands if operand in paths]
        if not before:
            continue
        if node.op.kind is Kind.ELEMENTWISE:
            paths[index] = paths[before[0]]
        elif node.op.name == "broadcast" and full is not None:
            paths[index] = full
        elif node.op.name in ("transpose", "reshape"):
            source = nodes[before[0]].type.shape
            paths[index] = push(
                node.op.name, node.attributes, paths[before[0]], node.type.shape, source, ranges
            )
        else:
            raise LoweringError(f"%{index} = {node} does not fit after its dispatch's anchor")
    return paths


def finished_nest(
    schedule: Schedule, dispatch: Dispatch, walk: Walk, reduced: int,
    reductions: list[Reduction], clips: list[Clip],
) -> Nest:  # fmt: skip
    """The nest whose result is the dispatch's root.

    A reduction of no elements reads none: its operand is the value that changes nothing, so that
    no load of it, say of an index, is moved before a loop that never runs.
    """
    if not all(walk.ranges[name] for name in walk.loops[len(walk.loops) - reduced :]):
        reductions = [replace(each, operand=walk.scalar(each.identity)) for each in reductions]
    root = schedule.program.nodes[dispatch.root]
    index = walk.paths[dispatch.root]
    result = walk.value(dispatch.root, index)
    strides = strides_of(schedule, dispatch.target)
    place = walk.place(dispatch.target, strides, index, root.type.dtype.itemsize)
    return Nest(
        tuple(walk.ranges[name] for name in walk.loops), reduced, tuple(walk.body.values),
        tuple(reductions), tuple(clips), place, result, root.type.dtype,
    )  # fmt: skip


def epilogue_nest(schedule: Schedule, dispatch: Dispatch) -> Nest:
    """What follows the dispatch's anchor, over all axes of the anchor's result."""
    anchor = anchor_of(dispatch)
    outer = space_of(shape_of(schedule, anchor))
    walk = Walk(
        schedule, dispatch.operands, {v.name: v.length for v in outer.variables}, keep_units=True
    )
    walk.paths = index_paths(schedule, dispatch, {anchor: outer.index}, None, outer.ranges)
    walk.anchored[anchor] = walk.accumulator(schedule.program.nodes[anchor].type.dtype)
    return finished_nest(schedule, dispatch, walk, 0, [], [])
