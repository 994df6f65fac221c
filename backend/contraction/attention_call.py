"""An attention dispatch as the text and the arguments of its kernel."""

from __future__ import annotations

from satura.backend.contraction.attention import (
    AttentionCall,
    Operand,
    attention_plan,
    attention_source,
    parameters,
)  # fmt: skip
from satura.backend.contraction.axes import Axis, over_axes
from satura.backend.contraction.epilogue import NestEpilogue
from satura.backend.contraction.spec import RowAxis
from satura.backend.contraction.tile import choose_tile
from satura.backend.contraction.views import view_of
from satura.backend.emit.code import Code
from satura.backend.lower.anchors import anchor_of, epilogue_nest
from satura.backend.lower.body import Pointer
from satura.backend.lower.canonical import renumber
from satura.backend.lower.walk import LoweringError, shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule


def attention_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, name: str, any_sizes: bool
) -> Code | None:
    """The kernel of an attention dispatch; None for others.

    With `any_sizes` the text must not depend on extents that other sizes may change. Raises
    LoweringError for operands whose elements do not lie evenly.
    """
    anchor = anchor_of(dispatch)
    node = schedule.program.nodes[anchor]
    if node.op.name != "attention":
        return None
    found: list[Operand] = []
    for operand in node.operands:
        view = view_of(schedule, dispatch, operand)
        if view is None:
            raise LoweringError(f"attention reads %{operand}, whose elements do not lie evenly")
        *batches, row, column = view.strides
        found.append(Operand(view.pointer, tuple(batches), row, column))
    query, key, bias, value = found
    *batches, rows, depth = shape_of(schedule, node.operands[0])
    keys, columns = shape_of(schedule, node.operands[3])[-2:]
    tile = choose_tile(None if any_sizes else rows, columns, any_columns=any_sizes)
    call = AttentionCall(
        (query, key, bias, value), Pointer(("scratch", 0)), tuple(batches), rows, keys, columns,
        depth,
    )  # fmt: skip
    arguments, scratch = attention_plan(tile, call, threads)
    extents = (*batches, rows)
    axes = [Axis(RowAxis(extent, 0), 0, axis) for axis, extent in enumerate(extents)]
    nest = renumber(epilogue_nest(schedule, dispatch))
    epilogue = NestEpilogue(over_axes(nest, axes), len(parameters(len(batches))))
    source = attention_source(name, tile, len(batches), epilogue)
    work = rows * keys * (depth + columns)
    for extent in batches:
        work *= extent
    return Code(name, source.text, (*arguments, *epilogue.arguments), work // 8, scratch)
