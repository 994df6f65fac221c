"""Forms of fragments, and which of them an op can compute in place of reading an operand."""

from __future__ import annotations

from enum import Enum

from satura.rewrite.ops import REGISTRY, Kind
from satura.rewrite.types.tensor_type import DType


class Fused(Enum):
    """Form of a fragment.

    VIEW         layout ops over one leaf: an index map, no work of its own
    LOOP         elementwise ops, pads, concats, gathers and index ramps over leaves and views
    ROW          reductions over the same axes, with LOOP work before, between and after
    CONTRACTION  conv or matmul over views, then an epilogue: elementwise ops, and layout ops that
    WINDOW       leave the store a plain strided one; the same with a pool
    ALONE        an op that nothing fuses with: a recurrence, scatter or first_places
    PLACEMENT    a concat whose parts are written into its buffer by their producers
    HOST         a host call or one of its results
    """

    VIEW = "view"
    LOOP = "loop"
    ROW = "row"
    CONTRACTION = "contraction"
    WINDOW = "window"
    ALONE = "alone"
    PLACEMENT = "placement"
    HOST = "host"


Forms = tuple[Fused, ...]

ANCHORED: Forms = (Fused.CONTRACTION, Fused.WINDOW)
INLINED: Forms = (Fused.VIEW, Fused.LOOP, Fused.ROW, Fused.CONTRACTION, Fused.WINDOW)
_PLAIN: Forms = (Fused.VIEW, Fused.LOOP)
_LAYOUT = {
    "broadcast": (*_PLAIN, Fused.ROW),
    "transpose": (*_PLAIN, *ANCHORED),
    "reshape": INLINED,
}


# To read a member of an enum takes Python 3.11 a call.
_ALONE = (Kind.HOST, Kind.ALONE)
_ANCHORS = (Kind.CONTRACTION, Kind.WINDOW)
_OF_LAYOUT, _OF_REDUCTION, _OF_INDEXING = Kind.LAYOUT, Kind.REDUCTION, Kind.INDEXING
_WIDE = (DType.I32, DType.I64)
_VIEWS: Forms = (Fused.VIEW,)
_ROWS: Forms = (*_PLAIN, Fused.ROW)


def inlinable(op: str, dtype: DType, position: int) -> Forms:
    """The forms that an op with a result of some type may inline at a position; no others fuse."""
    kind = REGISTRY[op].kind
    if kind in _ALONE:
        return ()
    if kind is _OF_LAYOUT:
        return _LAYOUT.get(op, _PLAIN)
    if kind is _OF_REDUCTION:
        return _ROWS
    if kind in _ANCHORS:  # integers are converted as they are read
        return _PLAIN if dtype in _WIDE or (op, position) == ("conv", 0) else _VIEWS
    if kind is _OF_INDEXING:
        return _PLAIN  # of tables only views and ramps, see `readable.py`
    return INLINED
