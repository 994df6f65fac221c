"""What a contraction kernel does with finished sums: the elementwise work after it, and the store.

The nest's loops are the contraction's batch and row axes, in order, and the columns innermost.
All names start with `e_`, apart from those of the kernel around it.
"""

from __future__ import annotations

from collections.abc import Iterable

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.emit.body import Arguments, BodyText
from satura.backend.lower.body import Argument, Nest

PREFIX = "e_"


class NestEpilogue:
    """The epilogue of `nest`, whose arguments start at word `first` of the kernel's table."""

    def __init__(self, nest: Nest, first: int) -> None:
        self._arguments = Arguments(PREFIX)
        self._first = first
        self._outer = [f"{PREFIX}i{axis}" for axis in range(len(nest.extents) - 1)]
        self._inner = f"{PREFIX}column"
        self._body = BodyText(
            nest, self._outer, (), self._inner, self._arguments, f"{PREFIX}start", prefix=PREFIX
        )
        sums = [index for index, value in enumerate(nest.values) if value.op == "accumulator"]
        self._sum = f"{PREFIX}sum"
        given = dict.fromkeys(sums, self._sum)
        self._block = self._body.store(self._body.block([nest.result], given))
        self._touched = [
            (value.access, value.dtype.itemsize, "prefetch_to_read")
            for value in nest.values
            if value.op == "load"
            and value.access is not None
            and not value.operands
            and not value.access.extras
            and value.access.strides[-1] == value.dtype.itemsize
            and any(value.access.strides[:-1])
        ]
        if nest.target.strides[-1] == nest.dtype.itemsize and not nest.target.extras:
            self._touched.append((nest.target, nest.dtype.itemsize, "prefetch_to_write"))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The words that follow the contraction's own."""
        return tuple(self._arguments.numbers)

    @property
    def body(self) -> tuple[str, ...]:
        """What it does per column, whatever the axes are."""
        return tuple(self._block.inner)

    def setup_lines(self) -> Iterable[str]:
        """Once per call of the kernel."""
        return [*self._arguments.lines("args", self._first), *self._body.setup]

    def row_lines(
        self, batches: tuple[str, ...], rows: tuple[str, ...], first_column: str
    ) -> Iterable[str]:
        """Once per row and panel, given the names of the coordinates."""
        names = zip(self._outer, (*batches, *rows), strict=True)
        here = [f"{own} = {given}" for own, given in names]
        return [*here, f"{PREFIX}start = {first_column}", *self._block.row]

    def fetch_lines(self, count: str) -> Iterable[str]:
        """After `row_lines`: asks for what `column_lines` touches in `count` columns."""
        for access, size, helper in self._touched:
            base = self._body.row_base(access)
            line = CACHE_LINE // size
            yield f"for {PREFIX}line in range(0, {count}, {line}):"
            yield f"    {helper}({base} + {PREFIX}line * {size})"

    def column_lines(self, first_column: str, index: str, accumulator: str) -> Iterable[str]:
        """For each column."""
        here = [f"{self._inner} = {index}", f"{self._sum} = {accumulator}"]
        return [*here, *self._block.inner]
