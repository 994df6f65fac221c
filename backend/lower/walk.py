"""The walk from a dispatch's result down to its loads: nodes become values of a body.

A layout op only changes the index at which its operand is asked for, so one node may become
several values, one per index.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from satura.backend.lower.body import (
    Access,
    Argument,
    BodyBuilder,
    Nest,
    Pointer,
    Value,
    needed_values,
)  # fmt: skip
from satura.backend.lower.rounding import Roundings
from satura.backend.lower.space import Space
from satura.backend.lower.within import is_within
from satura.rewrite.errors import SaturaError
from satura.rewrite.extract.schedule import Home, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.ops.elementwise import COMMUTATIVE
from satura.rewrite.ops.expression import Formula
from satura.rewrite.ops.formula import formula_of, formula_steps
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Axis, BinaryFn, Padding, Shape, UnaryFn
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import (
    Dim,
    Monomial,
    Quotient,
    SymbolicDim,
    is_one,
    monomials_of,
    static,
    symbol,
)
from satura.rewrite.types.index_map import Index, bounds, is_variable, offset, pull, row_major
from satura.rewrite.types.tensor_type import DType

Mask = int | None
MAX_SPLITS = 8


class LoweringError(SaturaError):
    """A dispatch that no kernel form fits: a fault of satura, not of the model."""


class Straddle(Exception):
    """A guard is true in one part of a box and false in another: cut `name` at `cuts`."""

    def __init__(self, name: str, cuts: Sequence[int]) -> None:
        super().__init__(name)
        self.name = name
        self.cuts = tuple(cuts)
        self.box: Space | None = None


class Walk:
    """Values of one dispatch over the loop variables `ranges`, in the order of `loops`.

    `anchored` gives nodes whose value is computed elsewhere, at one index only: reductions and
    anchors with their value, and `paths` the only index at which a node of the anchor's path can
    be had. With `may_cut` a guard that is not decided raises `Straddle`, else it becomes a mask.
    Loops of one iteration are left out unless `keep_units` is set.
    """

    def __init__(
        self, schedule: Schedule, operands: Sequence[int], ranges: Mapping[str, int],
        may_cut: bool = False, keep_units: bool = False,
    ) -> None:  # fmt: skip
        self.schedule = schedule
        self.nodes = schedule.program.nodes
        self.operands = frozenset(operands)
        moving = (name for name, length in ranges.items() if keep_units or not is_one(length))
        self.loops = tuple(moving)
        self.ranges = dict(ranges)
        self.may_cut = may_cut
        self.body = BodyBuilder()
        self.anchored: dict[int, int] = {}
        self.paths: dict[int, Index] = {}
        self.divided: list[tuple[SymbolicDim, int]] = []
        self._known: dict[tuple[int, Mask], list[tuple[Index, int]]] = {}
        self._keys: list[int] = []
        self._roundings = Roundings(self.body.values, self.add, self.scalar)

    def value(self, node: int, index: Index, mask: Mask = None) -> int:
        """The value of `node` at `index`; anything where `mask` is false."""
        if node in self.anchored:
            return self.anchored[node]
        constant = self.nodes[node]
        if constant.op.name == "constant" and constant.constant.size == 1:
            return self.scalar(Scalar(constant.type.dtype, constant.constant.array.tobytes()))
        index = self.paths.get(node, index)
        known = self._known.setdefault((node, mask), [])
        for at, value in known:
            if at == index:
                return value
        value = self._value(node, index, mask)
        known.append((index, value))
        return value

    def access(self, start: Argument, position: Dim, scale: int) -> Access:
        """`start` + `position` · `scale` over the loops."""
        strides = [0] * len(self.loops)
        extras: dict[int, int] = {}
        constant = 0
        for monomial, factor in sorted(monomials_of(position), key=_numbers_of_quotient):
            if not monomial:
                constant += factor * scale
                continue
            (atom,) = monomial  # with concrete sizes every position is a sum of single atoms
            if isinstance(atom, Quotient):
                source = self._quotient(atom)
            elif atom.startswith("@"):
                source = int(atom[1:])
            else:
                strides[self.loops.index(atom)] += factor * scale
                continue
            extras[source] = extras.get(source, 0) + factor * scale
        if isinstance(start, Pointer):
            start = replace(start, offset=start.offset + constant)
        else:
            start += constant
        return Access(start, tuple(strides), tuple(sorted(extras.items())))

    def place(self, home: Home, strides: Sequence[Dim], index: Index, itemsize: int) -> Access:
        """Where the element at `index` of a tensor with this home lies."""
        inside = tuple(start + at for start, at in zip(home.start, index, strict=True))
        return self.access(Pointer(("buffer", home.buffer)), offset(inside, strides), itemsize)

    def position(self, position: Dim) -> int:
        """`position` as an i64 value."""
        return self.add(Value("position", DType.I64, (), self.access(0, position, 1)))

    def apply(self, op: str, dtype: DType, *operands: int) -> int:
        """A scalar function; the operands of commutative ones in a canonical order."""
        if op in COMMUTATIVE:
            operands = tuple(sorted(operands, key=lambda operand: self._keys[operand]))
        return self.add(Value(op, dtype, operands))

    def value_or(self, mask: int, value: int, fill: int, dtype: DType) -> int:
        """`value` where `mask` holds, else the scalar `fill`."""
        found = self.body.values[value]
        if found.op == "load" and found.operands == (mask,):
            return self.add(replace(found, operands=(mask, fill)))
        return self.apply("select", dtype, mask, value, fill)

    def reduced(self, number: int, dtype: DType) -> int:
        """The result of reduction `number`, rounded to `dtype`."""
        total = self.add(Value("reduced", dtype.compute, literal=number))
        return self._cast(total, dtype.compute, dtype)

    def accumulator(self, dtype: DType) -> int:
        """What a contraction kernel computed, in the compute type, rounded to `dtype`."""
        total = self.add(Value("accumulator", dtype.compute))
        return self._cast(total, dtype.compute, dtype)

    def scalar(self, scalar: Scalar) -> int:
        """One element as an argument of the kernel."""
        bits = int.from_bytes(scalar.bits, "little", signed=False)
        found = self.body.scalar(scalar.dtype, bits)
        self._sync()
        return found

    def guarded(self, position: Dim, extent: Dim, may_pass: bool = False) -> bool | int:
        """Whether 0 <= position < extent: decided, or as a mask.

        With `may_pass` it is not asked if all positions happen to be below the extent: that may
        be so for every other size.
        """
        assert isinstance(extent, int)
        bottom, top = bounds(position, self.ranges)
        if isinstance(top, int) and isinstance(bottom, int):
            if bottom >= 0 and not may_pass and top < extent:
                return True
            if top < 0 or bottom >= extent:
                return False
            if self.may_cut:
                self._cut(position, extent)
        operands = self.position(position), self.body.argument(extent)
        self._sync()
        return self.add(Value("inside", DType.BOOL, operands))

    def _cut(self, position: Dim, extent: int) -> None:
        """Raise Straddle when one loop variable decides the guard."""
        if not isinstance(position, SymbolicDim):
            return
        moving = [(monomial, factor) for monomial, factor in position.terms if monomial]
        if len(moving) != 1:
            return
        ((name,), factor) = moving[0]
        constant = sum(factor for monomial, factor in position.terms if not monomial)
        if isinstance(name, Quotient) or not is_variable(name):
            return
        if factor > 0:
            cuts = [-((constant - edge) // factor) for edge in (0, extent)]
        else:
            cuts = [(constant - edge) // -factor + 1 for edge in (0, extent)]
        raise Straddle(name, cuts)

    def _quotient(self, atom: Quotient) -> int:
        assert isinstance(atom.denominator, int)
        self.divided.append((atom.numerator, atom.denominator))
        operands = self.position(atom.numerator), self.body.argument(atom.denominator)
        self._sync()
        return self.add(Value("quotient", DType.I64, operands))

    def add(self, value: Value) -> int:
        """Index of `value`."""
        index = self.body.add(value)
        self._sync()
        return index

    def _sync(self) -> None:
        """Keys of new values: equal for values that look alike, whatever they read."""
        for value in self.body.values[len(self._keys) :]:
            parts = [value.op, value.dtype.value, *(str(self._keys[i]) for i in value.operands)]
            self._keys.append(zlib.crc32(" ".join(parts).encode()))

    def both(self, first: Mask, second: Mask) -> Mask:
        """The conjunction of two masks."""
        both = self.body.both(first, second)
        self._sync()
        return both

    def _value(self, index: int, at: Index, mask: Mask) -> int:
        node = self.nodes[index]
        if index in self.operands or node.op.name == "constant":
            return self._load(index, node, at, mask)
        if node.op.kind is Kind.ELEMENTWISE:
            return self._elementwise(node, at, mask)
        if node.op.name == "pad":
            return self._pad(node, at, mask)
        if node.op.name == "concat":
            return self._concat(node, at, mask)
        if node.op.name == "gather":
            return self._gather(node, at, mask)
        if node.op.name == "iota":
            axis = node.attributes[1]
            assert isinstance(axis, Axis)
            ramp = self.position(at[axis.index])
            return self.add(Value("cast", node.type.dtype, (ramp,)))
        if node.op.name == "extent":
            dim = node.attributes[0]
            assert isinstance(dim, Shape) and isinstance(dim.dims[0], int)
            number = self.body.argument(dim.dims[0])
            self._sync()
            return number
        if node.op.kind is Kind.LAYOUT:
            operand = node.operands[0]
            source = self.nodes[operand].type.shape
            moved = pull(node.op.name, node.attributes, at, node.type.shape, source, self.ranges)
            return self.value(operand, moved, mask)
        raise LoweringError(f"%{index} = {node} cannot be computed inside a dispatch")

    def _load(self, index: int, node: Node, at: Index, mask: Mask) -> int:
        own = Home(index, (0,) * node.type.rank)
        home = self.schedule.homes.get(index, own)
        strides = strides_of(self.schedule, home)
        access = self.place(home, strides, at, node.type.dtype.itemsize)
        operands = () if mask is None else (mask,)
        return self.add(Value("load", node.type.dtype, operands, access))

    def _elementwise(self, node: Node, at: Index, mask: Mask) -> int:
        operands = [self.value(operand, at, mask) for operand in node.operands]
        formula = formula_of(node.op, node.attributes)
        if formula is not None:
            return self._formula(formula, node, operands)
        attribute = node.attributes[0] if node.attributes else None
        name = node.op.name
        if isinstance(attribute, UnaryFn | BinaryFn):
            name = attribute.name
        if name == "cast":
            source = self.nodes[node.operands[0]].type.dtype
            return self._converted(operands[0], source, node.type.dtype)
        return self.apply(name, node.type.dtype, *operands)

    def _converted(self, value: int, source: DType, wanted: DType) -> int:
        """A cast; a narrow type goes by way of one that holds its values."""
        if (rounded := self._roundings.cast(value, wanted)) is not None:
            return rounded
        if source.is_narrow and source is not wanted:
            value = self.add(Value(f"decode_{source.value}", source.compute, (value,)))
            source = source.compute
        if wanted.is_narrow and source is not wanted:
            if wanted.is_integer and source.is_float:
                for f, bound in zip(("max", "min"), wanted.bounds, strict=True):
                    value = self.apply(f, source, value, self.scalar(Scalar.of(bound, source)))
            if source is not DType.F64 or wanted.is_integer:  # encoding rounds it once
                value = self._cast(value, source, wanted.compute)
            return self.add(Value(f"encode_{wanted.value}", wanted, (value,)))
        return self.apply("cast", wanted, value)

    def _formula(self, formula: Formula, node: Node, operands: Sequence[int]) -> int:
        """What a user's op computes, step by step."""
        dtypes = [self.nodes[operand].type.dtype for operand in node.operands]
        values: list[int] = []
        for step in formula_steps(formula, tuple(dtypes), node.attributes):
            if step.op == "operand":
                value = self._cast(operands[step.position], dtypes[step.position], step.dtype)
            elif step.literal is not None:
                value = self.scalar(step.literal)
            else:
                value = self.apply(step.op, step.dtype, *(values[at] for at in step.operands))
            values.append(value)
        return self._cast(values[-1], step.dtype, node.type.dtype)

    def _cast(self, value: int, dtype: DType, wanted: DType) -> int:
        return value if dtype is wanted else self.add(Value("cast", wanted, (value,)))

    def _pad(self, node: Node, at: Index, mask: Mask) -> int:
        source, fill = node.operands
        padding = node.attributes[0]
        assert isinstance(padding, Padding)
        shape = self.nodes[source].type.shape
        moved = tuple(a - lo for a, lo in zip(at, padding.lo, strict=True))
        inside: Mask = None
        for axis, extent in enumerate(shape):
            if padding.lo[axis] == 0 and padding.hi[axis] == 0:
                continue
            guard = self.guarded(moved[axis], extent)
            if guard is False:
                return self.value(fill, (), mask)
            if guard is not True:
                inside = self.both(inside, guard)
        if inside is None:
            return self.value(source, moved, mask)
        value = self.value(source, moved, self.both(mask, inside))
        return self.apply("select", node.type.dtype, inside, value, self.value(fill, (), mask))

    def _concat(self, node: Node, at: Index, mask: Mask) -> int:
        first, second = node.operands
        axis = node.attributes[0]
        assert isinstance(axis, Axis)
        extent = self.nodes[first].type.shape[axis.index]
        moved = tuple(a - extent if i == axis.index else a for i, a in enumerate(at))
        guard = self.guarded(at[axis.index], extent)
        if guard is True:
            return self.value(first, at, mask)
        if guard is False:
            return self.value(second, moved, mask)
        other = self.add(Value("not", DType.BOOL, (guard,)))
        x = self.value(first, at, self.both(mask, guard))
        y = self.value(second, moved, self.both(mask, other))
        return self.apply("select", node.type.dtype, guard, x, y)

    def _gather(self, node: Node, at: Index, mask: Mask) -> int:
        """An indirect read; an index outside sets the status word and reads nothing."""
        source, indices = node.operands
        attribute = node.attributes[0]
        assert isinstance(attribute, Axis)
        axis, rank = attribute.index, self.nodes[indices].type.rank
        extent = self.nodes[source].type.shape[axis]
        assert isinstance(extent, int)
        found = self.value(indices, at[axis : axis + rank], mask)
        found = self._cast(found, self.nodes[indices].type.dtype, DType.I64)
        if is_within(self.nodes, indices, extent):
            moved = (*at[:axis], symbol(f"@{found}"), *at[axis + rank :])
            return self._reporting(self.value(source, moved, mask), found, node)
        length = self.body.argument(extent)
        self._sync()
        wrapped = self.add(Value("add_index", DType.I64, (found, length)))
        valid = self.add(Value("inside", DType.BOOL, (wrapped, length)))
        if mask is not None:  # where nothing is read, any index will do
            outside = self.add(Value("not", DType.BOOL, (mask,)))
            valid = self.add(Value("or", DType.BOOL, (valid, outside)))
        valid = self.add(Value("report", DType.BOOL, (valid, length, found)))
        moved = (*at[:axis], symbol(f"@{wrapped}"), *at[axis + rank :])
        if self.nodes[source].op.name == "iota" and source not in self.operands:
            # The choice keeps the report, and what is made of it inside of what it is a place of.
            ramp, first = (self.value(source, place, mask) for place in (moved, (0,) * len(moved)))
            return self.apply("select", node.type.dtype, valid, ramp, first)
        return self._reporting(self.value(source, moved, self.both(mask, valid)), valid, node)

    def _reporting(self, read: int, asked: int, node: Node) -> int:
        """What was `read` for a node, or a choice that keeps the reports of what was `asked`: an
        element of a constant that is spread reads none of them."""
        dtype, values = node.type.dtype, self.body.values
        kept = needed_values(values, [read])
        for index in needed_values(values, [asked]):
            if values[index].op == "report" and index not in kept:
                zero = self.scalar(Scalar(dtype, bytes(dtype.itemsize)))
                read = self.apply("select", dtype, index, read, zero)
        return read


def _numbers_of_quotient(term: tuple[Monomial, int]) -> tuple[int, ...]:
    """The key by which terms are met: a dim has them in the order of its text, in which a size may
    stand for a number."""
    monomial, factor = term
    below = [atom.denominator for atom in monomial if isinstance(atom, Quotient)]
    numbers = [number for number in below if isinstance(number, int)]  # as sizes are, too
    return (*numbers, factor) if numbers else ()


def shape_of(schedule: Schedule, node: int) -> tuple[int, ...]:
    """The shape of a node of a schedule with concrete sizes."""
    return tuple(map(static, schedule.program.nodes[node].type.shape))


def refine(space: Space, attempt: Callable[[Space], tuple[Walk, Nest]]) -> Nest:
    """The nest of `attempt` over `space`, with loops split where that saves divisions."""
    for _ in range(MAX_SPLITS):
        walk, nest = attempt(space)
        splits = (space.divisible(numerator, below) for numerator, below in walk.divided)
        split = next((found for found in splits if found), None)
        if split is None:
            return nest
        space = space.split(*split)
    return attempt(space)[1]


def strides_of(schedule: Schedule, home: Home) -> tuple[Dim, ...]:
    """Strides, in elements, of tensors in the buffer of `home`."""
    return row_major(schedule.program.nodes[home.buffer].type.shape)
