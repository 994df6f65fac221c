"""Convolutions by kernels of 3×3 taps that need fewer products; by other laws they change as convs.

The roundings are others, and the results of one tile share them: errors are small beside the
largest result of the tile. What they cost, and so where they pay, is for extraction to say.
"""

from __future__ import annotations

from satura.rewrite.language.dsl import Known, Law, Varying, attribute_function, rewrites, rule
from satura.rewrite.language.terms import conv, winograd
from satura.rewrite.types.attributes import Groups, Window
from satura.rewrite.types.tensor_type import DType, TensorType


@attribute_function
def has_tiles(type_: TensorType, window: Window) -> bool:
    """Whether the window has 3×3 taps side by side, moves in steps of 1, and sees f32 elements."""
    dense = window.strides == window.dilations == (1, 1)
    return dense and window.sizes == (3, 3) and type_.dtype is DType.F32


@rule(reassociates=True)
def conv_by_tiles(x: Varying, w: Known, window: Window, groups: Groups) -> Law:
    """conv(x, w) = winograd(x, w), on f32, when there is one group and the window has 3×3 taps and
    neither strides nor dilations"""
    return rewrites(
        conv(x, w, window, groups),
        winograd(x, w, window),
        groups.count == 1,
        has_tiles(x.type, window),
    )
