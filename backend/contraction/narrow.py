"""Integer operands that are numbers of 8 bits less a zero point, as dequantisation leaves them.

Between the tensor in memory and the contraction stand views and elementwise ops with constants. All
that matters of these ops is what they make of the 256 numbers that an element can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satura.backend.contraction.views import View, view_through
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.types.tensor_type import Array, DType

_OCTETS = (DType.I8, DType.U8)


@dataclass(frozen=True)
class Narrow:
    """An operand whose elements are those of `view` less `zero`."""

    view: View
    dtype: DType
    zero: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest element that there can be."""
        least, most = self.dtype.bounds
        return int(least) - self.zero, int(most) - self.zero


def narrow_operand(schedule: Schedule, dispatch: Dispatch, node: int) -> Narrow | None:
    """How an integer operand of a contraction comes from 8 bits; None where it does not."""
    found = view_through(schedule, dispatch, node)
    if found is None:
        return None
    dtype = schedule.program.nodes[found.view.node].type.dtype
    if dtype not in _OCTETS:
        return None
    least, most = dtype.bounds
    before = np.arange(int(least), int(most) + 1, dtype=np.int64)
    zeros = before - found.applied(before.astype(dtype.numpy)).astype(np.int64)
    zero = int(zeros[0])
    return Narrow(found.view, dtype, zero) if (zeros == zero).all() else None


def known_integers(schedule: Schedule, dispatch: Dispatch, node: int) -> tuple[View, Array] | None:
    """The elements of a constant integer operand as i64, and how they lie in memory."""
    found = view_through(schedule, dispatch, node)
    if found is None or schedule.program.nodes[found.view.node].op.name != "constant":
        return None
    array = schedule.program.nodes[found.view.node].constant.array
    if DType.of(array.dtype) is DType.BOOL or not DType.of(array.dtype).is_integer:
        return None
    view = found.view
    return view, np.ascontiguousarray(found.applied(view.elements(array)).astype(np.int64))
