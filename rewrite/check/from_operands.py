"""Matches drawn from the variables up: for left sides that few types of results are made by.

Other draws begin with the result, and find what an op could have made it from. Where a left side
computes attributes from the types of its variables, or reads one variable at several places, what
they find seldom fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import cast

from satura.rewrite.check.instances import Instance, dtypes_of, is_of_misfit
from satura.rewrite.check.neighbours import stepped
from satura.rewrite.language.called import failed_function
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import AttributeVariable
from satura.rewrite.language.terms import (
    Application,
    Known,
    ScalarTerm,
    Tensor,
    Term,
    term_variables,
    type_of,
)
from satura.rewrite.ops import Op
from satura.rewrite.ops.draw import Draw, DrawError, is_concrete, reject_unless
from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction
from satura.rewrite.ops.reductions import REDUCTIONS, SELECTIONS
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    BinaryFn,
    Count,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Refuse,
    Shape,
    Slices,
    UnaryFn,
    Window,
)
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim, symbols_of
from satura.rewrite.types.plain import KindError
from satura.rewrite.types.tensor_type import DType, TensorType

KEPT = 0.8  # of the attributes and types of an instance that others are drawn like
STEPPED = 0.2  # of these attributes, which are moved by a step
OTHER_DTYPE = 0.4  # of matches near another one
FAILING_DRAWS = 40
RANKS = (1, 1, 2, 2, 3, 4, 0)  # low ones more often than others have them
SAME_TYPE = 0.7  # of tensors, as another one has


def draw_from_operands(
    direction: Direction, random: Random, near: Instance | None = None
) -> Instance | None:
    """A random well-typed match, most of which is as in `near`; None where the draw gives none."""
    try:
        return _drawn(direction, random, near)
    except Exception as error:
        if is_of_misfit(error):
            return None
        raise


def failure_of_left(direction: Direction, random: Random) -> str:
    """What a function that the left side calls raises for one of some draws, and where."""
    for _ in range(FAILING_DRAWS):
        try:
            _drawn(direction, random, None)
        except (DrawError, Refuse) as refusal:
            if isinstance(refusal.__cause__, KindError):
                return str(refusal)
        except Exception as error:
            if not is_of_misfit(error):
                raise
            return f"{type(error).__name__}: {error}, raised in {failed_function(error)}"
    return ""


def _drawn(direction: Direction, random: Random, near: Instance | None) -> Instance:
    pattern = _Pattern(Draw(random, symbolic=random.random() >= 0.7), direction, near)
    pattern.bind(direction.left)
    values = tuple((name, pattern.values[name]) for name in direction.variables)
    instance = Instance(direction, values, 0)
    type_of(direction.left, instance.bindings)
    slices = [value for _, value in values if isinstance(value, Slices)]
    named = symbols_of([dim for each in slices for dim in (*each.starts, *each.sizes)])
    reject_unless(named <= instance.symbols)  # others have no value
    return instance


class _Pattern:
    """A left side whose variables are bound one after the other, operands first."""

    def __init__(self, draw: Draw, direction: Direction, near: Instance | None) -> None:
        self.draw = draw
        self.direction = direction
        self.values: dict[str, TensorType | Attribute] = {}
        self.types: list[TensorType] = []
        self.bound: set[str] = set()  # attributes
        self.near = near
        dtypes = {type_.dtype for type_ in near.types.values()} if near is not None else set()
        renamed = {old: draw.dtype() for old in DType if old in dtypes and draw.chance(OTHER_DTYPE)}
        for name, value in near.values if near is not None else ():
            if draw.chance(KEPT):
                if isinstance(value, TensorType):
                    value = self._moved(value, renamed)
                elif draw.chance(STEPPED):
                    value = stepped(value, draw.random)
                self.values[name] = value

    def _moved(self, type_: TensorType, renamed: Mapping[DType, DType]) -> TensorType:
        """The type with another extent, or as it is; and with another dtype."""
        shape = list(type_.shape)
        if shape and self.draw.chance(0.5):
            shape[self.draw.up_to(len(shape) - 1)] = self.draw.dim()
        return TensorType(renamed.get(type_.dtype, type_.dtype), tuple(shape))

    def _fitted(self, value: Attribute, operand: Term, type_: TensorType) -> Attribute:
        """An attribute of `near`, for an operand of which an extent has moved: slices go to the end
        again, and shapes have the new extent."""
        assert self.near is not None
        old = type_of(operand, self.near.bindings).shape
        if len(old) != type_.rank or old == type_.shape:
            return value
        moved = dict(zip(old, type_.shape, strict=True))
        if isinstance(value, Shape):
            return Shape(tuple(moved.get(dim, dim) for dim in value.dims))
        if not isinstance(value, Slices):
            return value
        axes = zip(value.starts, value.sizes, value.steps, old, type_.shape, strict=True)
        sizes = tuple(
            _left(new, start, step) if size == _left(before, start, step) else size
            for start, size, step, before, new in axes
        )
        return replace(value, sizes=sizes)

    def bind(self, term: Term) -> None:
        """Draw what is still open in `term`."""
        if isinstance(term, Tensor):
            if term.name not in self.values:
                self.values[term.name] = self._type(dtypes_of(self.direction, term))
            bound = cast(TensorType, self.values[term.name])
            reject_unless(not isinstance(term, Known) or is_concrete(bound.shape))
            self.types.append(bound)
        elif isinstance(term, ScalarTerm):
            if isinstance(term.value, AttributeVariable) and term.value.name not in self.values:
                dtypes = dtypes_of(self.direction, term)
                near = [each.dtype for each in self.types if each.dtype in dtypes]
                dtype = self.draw.one_of(near) if near else self.draw.dtype(dtypes)
                self.values[term.value.name] = self.draw.scalar(dtype)
        elif isinstance(term, Application):
            for operand in term.operands:
                self.bind(operand)
                reject_unless(self.values.keys() >= {*term_variables(operand)})
            operands = [type_of(operand, self.values) for operand in term.operands]
            for expression in term.attributes:
                if not isinstance(expression, AttributeVariable):
                    continue
                name = expression.name
                if name not in self.values:
                    types = operands or [self._type(dtypes_of(self.direction, term))]
                    self.values[name] = _attribute(self.draw, term.op, expression.sort, types)
                elif self.near is not None and len(operands) == 1 and name not in self.bound:
                    value = cast(Attribute, self.values[name])
                    self.values[name] = self._fitted(value, term.operands[0], operands[0])
                self.bound.add(name)

    def _type(self, dtypes: frozenset[DType]) -> TensorType:
        """A type of one of these dtypes, often of the shape of the one before."""
        dtype = self.draw.dtype(dtypes)
        if self.types and self.draw.chance(SAME_TYPE):
            last = self.types[-1]
            return last if last.dtype in dtypes else last.with_dtype(dtype)
        return TensorType(dtype, self.draw.shape(self.draw.one_of(RANKS)))


def _attribute(draw: Draw, op: Op, sort: type, types: list[TensorType]) -> Attribute:
    """An attribute of that sort for operands of these types, or for a result where there are none.

    Raises DrawError where none is known.
    """
    type_ = types[0]
    rank = type_.rank
    match sort.__name__:
        case DType.__name__:
            return draw.dtype()
        case Constant.__name__:
            reject_unless(is_concrete(type_.shape))
            return Constant(draw.array(type_, moderate=False))
        case Perm.__name__:
            return draw.perm(rank)
        case Shape.__name__:
            return Shape(draw.regroup(type_.shape) if op.name == "reshape" else _wider(draw, type_))
        case Axis.__name__:
            return Axis(draw.one_of(range(rank)))
        case Axes.__name__:
            return Axes(tuple(axis for axis in range(rank) if draw.chance(0.5)))
        case Count.__name__:
            return Count(draw.up_to(1))
        case Groups.__name__:
            return Groups(1)
        case Padding.__name__:
            lo, hi = (tuple(draw.up_to(2) for _ in range(rank)) for _ in range(2))
            return Padding(lo, hi)
        case Slices.__name__:
            return _slices(draw, type_)
        case Window.__name__:
            return draw.window(rank - 2 if op.name == "conv" else rank, type_.dtype)
        case UnaryFn.__name__:
            return UnaryFn(_function(draw, UNARY, type_.dtype))
        case BinaryFn.__name__:
            return BinaryFn(_function(draw, BINARY, type_.dtype))
        case ReduceFn.__name__:
            return ReduceFn(draw.one_of(SELECTIONS if op.name == "arg_reduce" else REDUCTIONS))
    raise DrawError


def _wider(draw: Draw, type_: TensorType) -> tuple[Dim, ...]:
    """A shape to which the type broadcasts."""
    return tuple(draw.dim() if dim == 1 else dim for dim in type_.shape)


def _slices(draw: Draw, type_: TensorType) -> Slices:
    """Slices along axes whose extents are known: from anywhere, in steps, mostly to the end; some
    begin where the slices before them do, or beside that, and have their steps."""
    before = draw.slices[-1] if draw.slices and draw.chance(0.5) else None
    if before is not None and len(before.steps) == type_.rank:
        axes = [
            _to_the_end(draw, dim, start + draw.up_to(1), step)
            for dim, start, step in zip(type_.shape, before.starts, before.steps, strict=True)
        ]
    else:
        axes = [_sliced(draw, dim) for dim in type_.shape]
    starts, sizes, steps = (tuple(axis[part] for axis in axes) for part in range(3))
    slices = Slices(starts, sizes, cast(tuple[int, ...], steps))
    draw.slices.append(slices)
    return slices


def _sliced(draw: Draw, dim: Dim) -> tuple[Dim, Dim, int]:
    """Start, size and step along an axis; often it is whole."""
    if not isinstance(dim, int) or draw.chance(0.35):
        return 0, dim, 1
    step = draw.one_of((1, 1, 2, 2, 3, -1))
    first = draw.up_to(min(dim, 2) if draw.chance(0.5) else dim)
    return _to_the_end(draw, dim, first if step > 0 else max(dim - 1 - first, 0), step)


def _to_the_end(draw: Draw, dim: Dim, start: Dim, step: int) -> tuple[Dim, Dim, int]:
    """Start, size and step along an axis, of which all is taken from there on, or not all."""
    if not isinstance(dim, int) or not isinstance(start, int):
        return 0, dim, 1
    left = _left(dim, start, step)
    assert isinstance(left, int)
    return start, left if draw.chance(0.7) else draw.up_to(left), step


def _left(dim: Dim, start: Dim, step: int) -> Dim:
    """How many elements there are from `start` on, in steps, to the end."""
    if not isinstance(dim, int) or not isinstance(start, int):
        return dim
    left = -(-(dim - start) // step) if step > 0 else start // -step + 1
    return max(0, min(left, dim))


def _function(draw: Draw, table: dict[str, ScalarFunction], dtype: DType) -> str:
    return draw.one_of([name for name, each in table.items() if dtype in each.dtypes])
