"""What dispatches with an anchor have in common: what follows it in the same loops, and the store.

The anchor is the reduction, the window or the contraction that a dispatch has its form from.
"""

from __future__ import annotations

from dataclasses import replace

from satura.backend.lower.body import Clip, Nest, Reduction
from satura.backend.lower.space import space_of
from satura.backend.lower.walk import LoweringError, Walk, shape_of, strides_of
from satura.rewrite.extract.index_paths import index_paths
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.index_map import Index


def anchor_of(dispatch: Dispatch) -> int:
    """The node that a dispatch has its form from."""
    if dispatch.anchor is None:
        raise LoweringError(f"the {dispatch.form.value} dispatch of %{dispatch.root} has no anchor")
    return dispatch.anchor


def paths_after(
    schedule: Schedule, dispatch: Dispatch, start: dict[int, Index], full: Index | None,
    ranges: dict[str, Dim],
) -> dict[int, Index]:  # fmt: skip
    """What `index_paths` says of a dispatch. Raises LoweringError for a node that has no index."""
    nodes = schedule.program.nodes
    paths = index_paths(nodes, dispatch.nodes, start, ranges, full)
    for index in dispatch.nodes:
        node = nodes[index]
        if index not in paths and any(operand in paths for operand in node.operands):
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
    walk.paths = paths_after(schedule, dispatch, {anchor: outer.index}, None, outer.ranges)
    walk.anchored[anchor] = walk.accumulator(schedule.program.nodes[anchor].type.dtype)
    return finished_nest(schedule, dispatch, walk, 0, [], [])
