"""Kernel bodies: loop nests over straight-line code, before they become text.

A nest has loops, of which the last ones may be reduced, and values in evaluation order. A value
reads memory or other values; where it reads is an affine function of the loops, in bytes. All
numbers (extents, strides, addresses, scalars) become arguments of the kernel, so that its text
depends on structure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

Region = tuple[str, int]  # "buffer" with a node, "constant" with a number of the store,
# "scratch" of all threads, or "status"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in memory: `offset` bytes into a region."""

    region: Region
    offset: int = 0


Argument = int | Pointer
MAX_TAPS = 121  # windows of no more taps ask per tap what lies outside
_FLOPS = {f.name: f.flops for f in (*UNARY.values(), *BINARY.values())}
_FLOPS |= dict.fromkeys(("nearest_i8", "nearest_u8", "moved_u8", "steps_i8", "steps_u8"), 4.0)
DEAR = 8.0  # flops from which on to compute takes longer than to load and store


@dataclass(frozen=True, slots=True)
class Access:
    """An address or a number: `start` + Σ strides[i] · loop i + Σ scale · value."""

    start: Argument
    strides: tuple[int, ...]
    extras: tuple[tuple[int, int], ...] = ()  # (value, scale)

    def __hash__(self) -> int:
        """Of structure alone, so that whether numbers are equal is always asked by comparing."""
        where = self.start.region if isinstance(self.start, Pointer) else None
        return hash((where, len(self.strides), *(source for source, _ in self.extras)))


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the body.

    `op` is a scalar function's name, or one of
        load          element at `access`; with an operand: where that mask is false, 0 or the
                      scalar that is the second operand
        position      the i64 number that `access` describes
        argument      `literal`, as i64
        scalar        the element with the bit pattern `literal`
        cast, select  as the ops of these names
        nearest_…     the integer of 8 bits nearest to operand 0, within operands 1 and 2
        moved_…       the same, plus operand 3
        steps_…       the nearest as f32, plus operand 3
        inside        0 <= operand 0 < operand 1, both i64
        quotient      operand 0 // operand 1, both i64, the second positive
        add_index     operand 0 + operand 1 where operand 0 is negative, else operand 0
        report        operand 0, a mask; where it is false, status words say 1, operands 1 and 2
        reduced       result of reduction `literal`
        accumulator   what a contraction kernel hands to its epilogue

    Numbers that a kernel gets as arguments have serials: two of them are never one value, so that
    a kernel's text does not depend on whether they happen to be equal.
    """

    op: str
    dtype: DType
    operands: tuple[int, ...] = ()
    access: Access | None = None
    literal: int = 0
    serial: int = 0

    def __hash__(self) -> int:
        """As of an access: of structure alone."""
        return hash((self.op, self.dtype, self.operands, self.access, self.serial))


@dataclass(frozen=True, slots=True)
class Clip:
    """Reduced loop `loop` (a tap) runs where 0 <= origin + tap · dilation < extent.

    `origin` is a value over the outer loops.
    """

    loop: int
    origin: int
    dilation: int
    extent: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """`function` over all reduced loops of value `operand`, accumulated in its compute type.

    `function` is sum, prod, max or min. With `position`, a value, the result is the position of the
    first element that max or min gives, or of the last one where `takes_last`. `fill`, a value over
    the outer loops, is combined where the clips leave something out.
    """

    function: str
    dtype: DType
    operand: int
    position: int | None = None
    fill: int | None = None
    takes_last: bool = False

    @property
    def identity(self) -> Scalar:
        """The value that changes nothing."""
        return Scalar.of(reduction_identity(self.function, self.dtype), self.dtype)


@dataclass(frozen=True)
class Nest:
    """One loop nest that stores value `result` as `dtype` at `target`.

    The last `reduced` loops belong to the reductions; the store is inside them when the result
    depends on them. Where the result `is_factor`, products are all that reads it.
    """

    extents: tuple[int, ...]
    reduced: int
    values: tuple[Value, ...]
    reductions: tuple[Reduction, ...]
    clips: tuple[Clip, ...]
    target: Access
    result: int
    dtype: DType
    is_factor: bool = False

    @property
    def outer(self) -> range:
        """The loops that are not reduced."""
        return range(len(self.extents) - self.reduced)

    @property
    def inner(self) -> range:
        """The reduced loops."""
        return range(len(self.extents) - self.reduced, len(self.extents))

    @property
    def is_dear(self) -> bool:
        """Whether an iteration takes longer to compute than to load and store."""
        return self.flops(range(len(self.values))) >= DEAR

    def flops(self, indices: Iterable[int]) -> float:
        """Flops of computing these values from what they read."""
        return sum(_FLOPS.get(self.values[index].op, 0.0) for index in indices)

    def accesses(self) -> Iterable[Access]:
        """Every access, the store's last."""
        for value in self.values:
            if value.access is not None:
                yield value.access
        yield self.target

    def is_led(self, access: Access, loop: int) -> bool:
        """Whether data that are read along `loop` say where the access is."""
        sources = needed_values(self.values, [source for source, _ in access.extras])
        places = (self.values[source].access for source in sources)
        return any(place is not None and place.strides[loop] for place in places)

    def is_up_to_0(self, index: int) -> bool:
        """Whether an f32 is surely not above 0: what is left of one when its maximum is gone."""
        value = self.values[index]
        if value.op != "sub" or value.dtype is not DType.F32:
            return False
        one, most = value.operands
        if self.values[most].op != "reduced":
            return False
        reduction = self.reductions[self.values[most].literal]
        is_maximum = reduction.function == "max" and reduction.position is None
        return is_maximum and reduction.operand == one

    def is_weight(self, index: int) -> bool:
        """Whether all that is made of a value is its sum, and its product with a number of the row,
        which `is_factor`: next to the row's largest, what is subnormal does not count."""
        result = self.values[self.result]
        users = [value for value in self.values if index in value.operands]
        if not self.is_factor or users != [result] or result.op not in ("mul", "div"):
            return False
        if any(each.operand == index and each.function != "sum" for each in self.reductions):
            return False
        first, second = result.operands
        other = first if second == index and result.op == "mul" else second
        places = (self.values[source].access for source in needed_values(self.values, [other]))
        moving = (place for place in places if place and any(place.strides[self.inner.start :]))
        return other != index and not any(moving)

    def with_loops(
        self,
        extents: Sequence[int],
        restride: Callable[[tuple[int, ...]], tuple[int, ...]],
        clips: tuple[Clip, ...],
    ) -> Nest:
        """The nest over other loops; `restride` takes strides over the old loops to the new."""

        def restrided(access: Access) -> Access:
            return Access(access.start, restride(access.strides), access.extras)

        values = tuple(
            value if value.access is None else replace(value, access=restrided(value.access))
            for value in self.values
        )
        return replace(
            self, extents=tuple(extents), values=values, target=restrided(self.target), clips=clips
        )


@dataclass
class BodyBuilder:
    """Collects values; equal values are one."""

    values: list[Value] = field(default_factory=list)
    _index: dict[Value, int] = field(default_factory=dict)

    def add(self, value: Value) -> int:
        """Index of `value`."""
        index = self._index.get(value)
        if index is None:
            index = self._index[value] = len(self.values)
            self.values.append(value)
        return index

    def argument(self, number: int) -> int:
        """An i64 scalar that the kernel gets as an argument."""
        serial = len(self.values) + 1
        return self.add(Value("argument", DType.I64, literal=number, serial=serial))

    def scalar(self, dtype: DType, bits: int) -> int:
        """One element that the kernel gets as an argument."""
        return self.add(Value("scalar", dtype, literal=bits, serial=len(self.values) + 1))

    def both(self, first: int | None, second: int | None) -> int | None:
        """The conjunction of two masks; None holds everywhere."""
        if first is None or second is None or first == second:
            return second if first is None else first
        return self.add(Value("and", DType.BOOL, (first, second)))


def needed_values(
    values: Sequence[Value], targets: Iterable[int], known: Iterable[int] = ()
) -> list[int]:
    """Indices, in order, of the values that `targets` depend on and that are not `known`."""
    stop = set(known)
    found: set[int] = set()
    stack = [target for target in targets if target not in stop]
    while stack:
        index = stack.pop()
        if index in found:
            continue
        found.add(index)
        value = values[index]
        sources = [*value.operands]
        if value.access is not None:
            sources.extend(source for source, _ in value.access.extras)
        stack.extend(source for source in sources if source not in stop)
    return sorted(found)
