"""Matches drawn from the variables up: for left sides that few types of results are made by.

Other draws begin with the result, and find what an op could have made it from. Where a left side
computes attributes from the types of its variables, or reads one variable at several places, what
they find seldom fits.
"""

from __future__ import annotations

from random import Random
from typing import cast

from satura.rewrite.check.instances import Instance, dtypes_of, is_of_misfit
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
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType, TensorType

KEPT = 0.8  # of the attributes and types of an instance that others are drawn like
FAILING_DRAWS = 40
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
        except (DrawError, Refuse):
            continue
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
    return instance


class _Pattern:
    """A left side whose variables are bound one after the other, operands first."""

    def __init__(self, draw: Draw, direction: Direction, near: Instance | None) -> None:
        self.draw = draw
        self.direction = direction
        self.values: dict[str, TensorType | Attribute] = {}
        self.types: list[TensorType] = []
        for name, value in near.values if near is not None else ():
            if draw.chance(KEPT):
                self.values[name] = self._moved(value) if isinstance(value, TensorType) else value

    def _moved(self, type_: TensorType) -> TensorType:
        """The type with another extent, or as it is."""
        shape = list(type_.shape)
        if shape and self.draw.chance(0.5):
            shape[self.draw.up_to(len(shape) - 1)] = self.draw.dim()
        return type_.with_shape(tuple(shape))

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
                if isinstance(expression, AttributeVariable) and expression.name not in self.values:
                    types = operands or [self._type(dtypes_of(self.direction, term))]
                    value = _attribute(self.draw, term.op, expression.sort, types)
                    self.values[expression.name] = value

    def _type(self, dtypes: frozenset[DType]) -> TensorType:
        """A type of one of these dtypes, often of the shape of the one before."""
        dtype = self.draw.dtype(dtypes)
        if self.types and self.draw.chance(SAME_TYPE):
            last = self.types[-1]
            return last if last.dtype in dtypes else last.with_dtype(dtype)
        return TensorType(dtype, self.draw.shape())


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
    """Slices that begin and end anywhere, along half of the axes whose extents are known."""
    starts, sizes = [], list(type_.shape)
    for axis, dim in enumerate(type_.shape):
        start = draw.up_to(dim) if isinstance(dim, int) and draw.chance(0.5) else 0
        starts.append(start)
        if isinstance(dim, int) and start:
            sizes[axis] = draw.up_to(dim - start)
    return Slices(tuple(starts), tuple(sizes), (1,) * type_.rank)


def _function(draw: Draw, table: dict[str, ScalarFunction], dtype: DType) -> str:
    return draw.one_of([name for name, each in table.items() if dtype in each.dtypes])
