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


def inlinable(op: str, dtype: DType, position: int) -> Forms:
    """The forms that an op with a result of some type may inline at a position; no others fuse."""
    kind = REGISTRY[op].kind
    if kind in (Kind.HOST, Kind.ALONE):
        return ()
    if kind is Kind.LAYOUT:
        return _LAYOUT.get(op, _PLAIN)
    if kind is Kind.REDUCTION:
        return (*_PLAIN, Fused.ROW)
    if kind in (Kind.CONTRACTION, Kind.WINDOW):  # integers are converted as they are read
        widens = dtype in (DType.I32, DType.I64) or (op, position) == ("conv", 0)
        return _PLAIN if widens else (Fused.VIEW,)
    if kind is Kind.INDEXING:
        return _PLAIN if position == 1 else ()
    return INLINED
