"""From a dispatch with concrete sizes to loop nests.

An index space of loop variables is laid over the dispatch; its nodes are walked from the result
down, and layout ops on the way turn into index polynomials of the loads (see
`rewrite.index_map`). Where a polynomial needs a quotient, the loop that it divides is split and
the walk starts again. Pads and concats cut a plain loop nest into boxes in which every guard is
decided; elsewhere, and beyond `MAX_BOXES`, they become masks.
"""

from __future__ import annotations

from satura.backend.lower.body import Nest
from satura.backend.lower.reductions import contraction_nest, row_nest, window_nest
from satura.backend.lower.space import Space, space_of
from satura.backend.lower.walk import LoweringError, Straddle, Walk, refine, shape_of, strides_of
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.types.index_map import Index

MAX_BOXES = 64


def lower(schedule: Schedule, dispatch: Dispatch) -> list[Nest]:
    """Nests that compute `dispatch`, to run in any order; none where the result is empty.

    `schedule` has concrete sizes. Raises LoweringError for a dispatch of no known form.
    """
    shape = shape_of(schedule, dispatch.root)
    if 0 in shape:
        return []
    if dispatch.form is Form.LOOP:
        return _boxes(schedule, dispatch, space_of(shape))
    lowerings = {
        Form.ROW: row_nest, Form.WINDOW: window_nest, Form.CONTRACTION: contraction_nest,
    }  # fmt: skip
    if dispatch.form not in lowerings:
        raise LoweringError(f"a {dispatch.form.value} dispatch has no loop nest")
    return [lowerings[dispatch.form](schedule, dispatch)]


def _boxes(schedule: Schedule, dispatch: Dispatch, space: Space) -> list[Nest]:
    """A nest per box of the result's space."""
    pending = [space]
    done: list[Nest] = []
    while pending:
        box = pending.pop()
        if box.is_empty:
            continue
        may_cut = len(pending) + len(done) < MAX_BOXES
        try:
            done.append(_loop(schedule, dispatch, box, may_cut))
        except Straddle as straddle:
            whole = straddle.box or box
            pending.extend(reversed(whole.cut(straddle.name, straddle.cuts)))
    return done


def _loop(schedule: Schedule, dispatch: Dispatch, space: Space, may_cut: bool) -> Nest:
    def attempt(box: Space) -> tuple[Walk, Nest]:
        lengths = {variable.name: variable.length for variable in box.variables}
        walk = Walk(schedule, dispatch.operands, lengths, may_cut)
        try:
            result = walk.value(dispatch.root, box.index)
        except Straddle as straddle:
            straddle.box = box  # whose loops may be split already
            raise
        return walk, _storing_nest(schedule, dispatch, walk, box.index, result)

    return refine(space, attempt)


def _storing_nest(
    schedule: Schedule, dispatch: Dispatch, walk: Walk, index: Index, result: int
) -> Nest:
    """The nest without reductions that stores value `result` of the root at `index`."""
    dtype = schedule.program.nodes[dispatch.root].type.dtype
    target = dispatch.target
    place = walk.place(target, strides_of(schedule, target), index, dtype.itemsize)
    extents = tuple(walk.ranges[name] for name in walk.loops)
    return Nest(extents, 0, tuple(walk.body.values), (), (), place, result, dtype)
