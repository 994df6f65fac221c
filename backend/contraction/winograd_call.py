"""A winograd dispatch as the text and the arguments of its kernel.

The taps are packed at compile time; the kernel transforms them. Weights that are not finite or very
large are not transformed: the convolution is then computed tap by tap.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.contraction.axes import Axis, over_axes
from satura.backend.contraction.epilogue import NestEpilogue
from satura.backend.contraction.shares import tile_for_threads
from satura.backend.contraction.spec import RowAxis
from satura.backend.contraction.tile import choose_tile, panel_columns
from satura.backend.contraction.views import View, view_of
from satura.backend.contraction.winograd import (
    LARGEST_WEIGHT,
    PARAMETERS,
    WinogradCall,
    packed_taps,
    unit_cycles,
    winograd_plan,
    winograd_source,
)  # fmt: skip
from satura.backend.emit.code import Code
from satura.backend.lower.anchors import anchor_of, epilogue_nest
from satura.backend.lower.body import Pointer
from satura.backend.lower.canonical import renumber
from satura.backend.lower.walk import shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.ops.winograd import TILE, tile_count
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.tensor_type import Array

_F32 = 4


def winograd_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, name: str,
    any_sizes: bool,
) -> Code | None:  # fmt: skip
    """The kernel of a winograd dispatch; None where it is to be computed as a convolution.

    With `any_sizes` the text must not depend on extents that other sizes may change.
    """
    anchor = anchor_of(dispatch)
    node = schedule.program.nodes[anchor]
    if node.op.name != "winograd" or 0 in shape_of(schedule, node.operands[0]):
        return None
    left = view_of(schedule, dispatch, node.operands[0])
    right = view_of(schedule, dispatch, node.operands[1])
    if left is None or right is None or not _is_contiguous(left):
        return None
    weights = _constant_weights(schedule, right)
    if weights is None:
        return None
    (window,) = node.attributes
    assert isinstance(window, Window)
    images, height, width, columns = shape_of(schedule, anchor)
    tiles = tile_count(schedule.program.nodes[anchor].type)
    tile = choose_tile(None if any_sizes else tiles, columns)
    depth = left.shape[-1]
    if not any_sizes:
        cycles = partial(unit_cycles, depth)
        tile = tile_for_threads(tile, tiles, columns, 1, threads, cycles)
    panel = panel_columns(tile)
    constant = schedule.program.nodes[right.node].constant
    layout = f"{right.pointer.offset} {right.shape} {right.strides} {panel}"
    key = f"winograd {constant.digest.hex()} {layout}"
    number = store.derived(key.encode(), lambda: packed_taps(weights, panel))
    call = WinogradCall(
        left=left.pointer,
        right=Pointer(("constant", number)),
        scratch=Pointer(("scratch", 0)),
        images=images,
        space=(height, width),
        input=(left.shape[1], left.shape[2]),
        lo=(window.lo[0], window.lo[1]),
        strides=(left.strides[0], left.strides[1], left.strides[2]),
        columns=columns,
        depth=depth,
        fill=float(window.fill.value),
    )
    arguments, scratch = winograd_plan(tile, call, threads)
    axes = [Axis(RowAxis(extent, 0), 0, axis) for axis, extent in enumerate((images, *call.space))]
    nest = renumber(epilogue_nest(schedule, dispatch))
    epilogue = NestEpilogue(over_axes(nest, axes), len(PARAMETERS))
    source = winograd_source(name, tile, epilogue)
    work = TILE**2 * tiles * columns * depth
    return Code(name, source.text, (*arguments, *epilogue.arguments), work // 8, scratch)


def _is_contiguous(left: View) -> bool:
    """Whether the channels of a pixel lie side by side."""
    return left.shape[-1] == 1 or left.strides[-1] == _F32


def _constant_weights(schedule: Schedule, right: View) -> Array | None:
    """The weights, if they are known and can be transformed."""
    node = schedule.program.nodes[right.node]
    if node.op.name != "constant":
        return None
    weights = right.elements(node.constant.array)
    if weights.size == 0 or not np.abs(weights).max() <= LARGEST_WEIGHT:
        return None
    return weights
