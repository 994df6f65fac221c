"""Dear values that one pass over the reduced loops computes and a later one needs again.

They are kept in scratch. One that only the last pass needs, element by element, is kept where the
result will be: what the cache has to fetch of that is on its way while the value is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from satura.backend.emit.body import Arguments, Block, BodyText, Level
from satura.backend.emit.reductions import cost, reads_loops
from satura.backend.emit.row_groups import GROUP
from satura.backend.lower.body import DEAR, needed_values
from satura.backend.lower.canonical import Canonical
from satura.rewrite.types.tensor_type import DType

LARGEST_SPILL = 1 << 20  # bytes of scratch for values that two passes need
WIDEST = 8  # bytes of an element, at most


@dataclass(frozen=True)
class Place:
    """Where a value is kept in the innermost loop: the beginning of a call that puts it there, and
    the call that gets it."""

    put: str
    get: str


@dataclass(frozen=True)
class _Kept:
    """A value that pass `stage` keeps: in a scratch array, else where the result will be."""

    stage: int
    array: str | None


class KeptValues:
    """What the passes of a kernel keep; `array` makes a scratch array of some elements.

    `pitch` is the number of elements of a row, or of a block of columns.
    """

    def __init__(
        self, form: Canonical, body: BodyText, pitch: int, grouped: bool,
        middles: Sequence[str], array: Callable[[DType, int], str],
    ) -> None:  # fmt: skip
        self._form = form
        self._nest = form.nest
        self._body = body
        self._pitch = pitch
        self._grouped = grouped
        self._middles = middles
        self._array = array
        self._kept: dict[int, _Kept] = {}
        self._pitch_name = ""

    def plan(self, passes: Sequence[Sequence[int]], arguments: Arguments) -> None:
        """Choose dear values that a later pass needs again, and give them a place.

        A pass is given by the numbers of its reductions; the last one, which stores, is left out.
        """
        values, levels, form = self._nest.values, self._body.levels, self._form
        stages = [[self._nest.reductions[n].operand for n in members] for members in passes]
        stages.append([self._nest.result])
        count = self._pitch * prod(self._nest.extents[form.outer : form.outer + form.middle])
        count *= GROUP if self._grouped else 1
        first: dict[int, int] = {}
        for stage, targets in enumerate(stages):
            for index in sorted(first, reverse=True):
                here = needed_values(values, targets, self._kept)
                if index not in here or index in self._kept or self._nest.clips:
                    continue
                if cost(self._nest, index) >= DEAR and count * WIDEST <= LARGEST_SPILL:
                    is_last = stage == len(passes)
                    array = None
                    if not (is_last and self._fits_the_result(index)):
                        array = self._array(values[index].dtype, count)
                    self._kept[index] = _Kept(first[index], array)
            for index in needed_values(values, targets, self._kept):
                if levels[index] is Level.INNER and self.moves(index):
                    first.setdefault(index, stage)
        has_rows = form.middle or self._grouped
        if has_rows and any(keep.array for keep in self._kept.values()):
            self._pitch_name = arguments.new(self._pitch)

    def has_some(self, stage: int) -> bool:
        """Whether pass `stage` keeps anything."""
        return any(keep.stage == stage for keep in self._kept.values())

    def places(self, stage: int, block: Block) -> dict[int, Place]:
        """The places of the values that pass `stage` keeps, whose lines are in `block`."""
        return {
            index: self._place(index, keep.array, block)
            for index, keep in self._kept.items()
            if keep.stage == stage
        }

    def moves(self, index: int) -> bool:
        """Whether a value changes along the reduced loops."""
        last = len(self._nest.extents) - (1 if self._form.column else 0)
        return reads_loops(self._nest, index, range(self._form.outer, last), store=False)

    def _fits_the_result(self, index: int) -> bool:
        """Whether a value may stand where the result will be: element by element, in one row."""
        dtype, target = self._nest.dtype, self._nest.target
        is_row = not (self._form.column or self._form.middle or target.extras)
        is_like = self._nest.values[index].dtype is dtype and dtype in (DType.F32, DType.F64)
        is_free = all(keep.array is not None for keep in self._kept.values())
        return is_row and is_like and is_free and target.strides[-1] == dtype.itemsize

    def _place(self, index: int, array: str | None, block: Block) -> Place:
        kind = self._nest.values[index].dtype.value
        if array is None:
            put, get = (self._body.at_result(f"{n}_{kind}", block) for n in ("write", "stored"))
            return Place(put, f"{get})")
        place = f"{array}, {self._row()}i"
        return Place(f"put_{kind}({place}", f"get_{kind}({place})")

    def _row(self) -> str:
        """The text of what the innermost loop adds its place to."""
        if self._grouped:
            return f"member * {self._pitch_name} + "
        if not self._form.middle:
            return ""
        flat = "j0"
        for number, extent in enumerate(self._middles[1:], 1):
            flat = f"({flat} * {extent} + j{number})"
        return f"{flat} * {self._pitch_name} + "
