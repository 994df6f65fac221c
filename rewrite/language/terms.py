"""Terms: the two sides of a law, and one constructor per op to write them with.

Tensors come first, then attributes, except that `unary`, `binary`, `reduce`, `arg_reduce` and
`pool` take their function first. A function may be given by name: `binary("add", x, y)`. An op that
a user declares is its own constructor, see `application`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast as assume

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.language.answers import attribute_value, check_answer, told
from satura.rewrite.language.expressions import (
    Expression,
    Literal,
    Placeholder,
    Recorder,
    Values,
    expression_of,
)  # fmt: skip
from satura.rewrite.language.literals import FUNCTIONS, check_literal
from satura.rewrite.language.mistakes import MistakeError, with_article
from satura.rewrite.language.numbers import Number, as_number, scalar_like, shape_like, unit_like
from satura.rewrite.ops import REGISTRY, Op
from satura.rewrite.program.program import ProgramBuilder
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
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.plain import KindError, as_plain
from satura.rewrite.types.tensor_type import DType, TensorType


class Term(Placeholder):
    """A tensor expression in a law."""

    @property
    def type(self) -> TensorType:
        """The tensor's dtype and shape, as an attribute."""
        return assume(TensorType, Recorder(TypeOf(self)))


@dataclass(frozen=True)
class Tensor(Term):
    """A variable for any tensor."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Known(Tensor):
    """A variable for a tensor that is computed from constants alone."""


class Varying(Tensor):
    """A variable for a tensor that depends on an input. Laws of movement start from one: constants
    are computed at compile time, so that moving them only costs time."""


class Untransposed(Varying):
    """A variable for a tensor that varies and has a form other than a transpose, or is reshaped or
    computed element by element from such a tensor. Laws that move transposes outwards start from
    one: so a chain of transposes, with reshapes between, is composed first, and then moves once."""


class Unpadded(Tensor):
    """A variable for a tensor that has a form other than a pad, or is a function of such a tensor:
    see `Untransposed`. A pad under one of another value is such a form, for the two are never
    composed."""


class Approximate(Tensor):
    """A variable for a tensor of rounded numbers: it varies, and is a sum of products, a result of
    exp, sqrt and the like, a product with a constant of many digits, or computed from such a tensor
    and not rounded to whole numbers. Laws up to rounding ask for one where what is exact must stay
    so: 82 / 41 is 2, and 82 * (1 / 41) a little less."""


class Movable(Tensor):
    """A variable for a tensor that is worth transposing. Either it varies, and it is transposed
    somewhere, or a result of it along the same axes is; or it is a constant, or a known tensor that
    is reshaped or transposed. A broadcast constant does not count: it has to stay broadcast."""


@dataclass(frozen=True)
class ScalarTerm(Term):
    """A 0-d constant with the given `Scalar` value."""

    value: Expression

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Application(Term):
    """An op applied to terms; an attribute is a variable, a literal or computed."""

    op: Op
    operands: tuple[Term, ...]
    attributes: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, (*self.operands, *self.attributes)))})"


@dataclass(frozen=True)
class TypeOf(Expression):
    """The type of a term, computed from the types of the tensors in it."""

    term: Term

    def evaluate(self, values: Values) -> TensorType:
        return type_of(self.term, values)

    def variables(self) -> Iterator[str]:
        return term_variables(self.term)

    @property
    def answers(self) -> type:
        return TensorType

    def __str__(self) -> str:
        return f"{self.term}.type"


def term_variables(term: Term) -> Iterator[str]:
    """Names of the variables in `term`, in the order of writing, with repetitions."""
    if isinstance(term, Tensor):
        yield term.name
    elif isinstance(term, ScalarTerm):
        yield from term.value.variables()
    elif isinstance(term, Application):
        for operand in term.operands:
            yield from term_variables(operand)
        for attribute in term.attributes:
            yield from attribute.variables()


def subterms(term: Term) -> Iterator[Term]:
    """`term` and everything in it, operands first."""
    if isinstance(term, Application):
        for operand in term.operands:
            yield from subterms(operand)
    yield term


def type_of(term: Term, values: Values) -> TensorType:
    """The type of `term`; `values` has a TensorType per tensor and a value per attribute.

    Raises Refuse where the ops do not fit.
    """
    if isinstance(term, Tensor):
        return assume(TensorType, values[term.name])
    if isinstance(term, ScalarTerm):
        return TensorType(assume(Scalar, term.value.evaluate(values)).dtype, ())
    assert isinstance(term, Application)
    operands = tuple(type_of(operand, values) for operand in term.operands)
    try:
        attributes = _attribute_values(term, values)
    except KindError as error:
        raise Refuse(str(error)) from error
    try:
        result = term.op.infer(operands, attributes)
    except ProgramError as error:
        raise Refuse(str(error)) from error
    return result[0] if isinstance(result, tuple) else result


def build_term(
    term: Term, builder: ProgramBuilder, tensors: Mapping[str, int], values: Values
) -> int:
    """Add `term` to a program, where variables stand for nodes and attribute values.

    `values` has a TensorType per tensor and a value per attribute. Raises Refuse where an
    attribute cannot be computed, ProgramError where the ops do not fit.
    """
    if isinstance(term, Tensor):
        return tensors[term.name]
    if isinstance(term, ScalarTerm):
        scalar = assume(Scalar, term.value.evaluate(values))
        return builder.add("constant", (), Constant(scalar.array))
    assert isinstance(term, Application)
    operands = [build_term(operand, builder, tensors, values) for operand in term.operands]
    return builder.add(term.op.name, operands, *_attribute_values(term, values))


def _attribute_values(term: Application, values: Values) -> tuple[Attribute, ...]:
    pairs = zip(term.attributes, term.op.attributes, strict=True)
    return tuple(attribute_value(expression, sort, values) for expression, sort in pairs)


Operand = Term | Scalar
OperandOrNumber = Operand | Number | np.generic


def operand_of(value: object, taker: str) -> Term:
    """The term that stands where `taker` takes a tensor; what is computed there is a scalar."""
    if isinstance(value, Term):
        return value
    expression = expression_of(value)
    if isinstance(value, Recorder | Scalar) and expression.answers in (Scalar, None):
        return ScalarTerm(expression)
    advice = "tensors come first, then attributes (functions before both)"
    if isinstance(as_number(value), Number):
        advice = (
            "a number may stand beside a tensor, in binary, select and pad; alone, write"
            " broadcast(reshape(scalar(c), ones), shape), where attribute functions of a type"
            f" answer c = Scalar.of({value!r}, type.dtype) and the two Shapes"
        )
    raise MistakeError(f"{taker} takes a tensor where {told(expression)} stands; {advice}")


def _attribute(value: object, sort: type, op: str) -> Expression:
    if isinstance(value, Term):
        raise MistakeError(f"{op} takes {with_article(sort)} where the tensor '{value}' stands")
    if isinstance(value, str) and sort in FUNCTIONS:
        value = sort(value)
    expression = expression_of(value)
    check_answer(expression, sort, op)
    if isinstance(expression, Literal):
        check_literal(as_plain(value))
    return expression


def _apply(name: str, operands: tuple[OperandOrNumber, ...], *attributes: object) -> Term:
    op = REGISTRY[name]
    return Application(
        op,
        tuple(operand_of(operand, name) for operand in operands),
        tuple(
            _attribute(value, sort, name)
            for value, sort in zip(attributes, op.attributes, strict=True)
        ),
    )


def _of_one_type(taker: str, x: OperandOrNumber, y: OperandOrNumber) -> tuple[Term, Term]:
    """`x` and `y`, where a number has become a constant of the other's type."""
    x, y = as_number(x), as_number(y)
    if isinstance(x, Number) and isinstance(y, Number):
        raise MistakeError(f"{taker} takes a tensor beside a number, not {x} and {y}")
    if isinstance(x, Number):
        second = operand_of(y, taker)
        return _full_constant(x, second), second
    first = operand_of(x, taker)
    return first, _full_constant(y, first) if isinstance(y, Number) else operand_of(y, taker)


def _full_constant(number: Number, other: Term) -> Term:
    """The constant of `other`'s type whose elements are all `number`."""
    value = ScalarTerm(expression_of(scalar_like(number, other.type)))
    if isinstance(other, ScalarTerm):
        return value
    return broadcast(reshape(value, unit_like(other.type)), shape_like(other.type))


def application(op: Op, arguments: tuple[object, ...]) -> Term:
    """An op of a user on tensors, then attributes; its own name calls this."""
    names = inspect.signature(op.type_rule).parameters
    if len(arguments) != len(names):
        raise MistakeError(f"{op.name}({', '.join(names)}) is given {len(arguments)} arguments")
    arity = op.arity or 0
    operands = tuple(operand_of(value, op.name) for value in arguments[:arity])
    pairs = zip(arguments[arity:], op.attributes, strict=True)
    attributes = tuple(_attribute(value, sort, op.name) for value, sort in pairs)
    standing, function = op.in_programs(())
    return Application(standing, operands, tuple(map(Literal, function)) or attributes)


def unary(f: UnaryFn | str, x: Operand) -> Term:
    return _apply("unary", (x,), f)


def binary(f: BinaryFn | str, x: OperandOrNumber, y: OperandOrNumber) -> Term:
    """A number beside a tensor stands for a tensor of its type with this value everywhere."""
    return _apply("binary", _of_one_type("binary", x, y), f)


def select(condition: Operand, x: OperandOrNumber, y: OperandOrNumber) -> Term:
    """`x` or `y` may be a number, as for `binary`."""
    return _apply("select", (condition, *_of_one_type("select", x, y)))


def cast(x: Operand, dtype: DType) -> Term:
    return _apply("cast", (x,), dtype)


def transpose(x: Operand, perm: Perm) -> Term:
    return _apply("transpose", (x,), perm)


def reshape(x: Operand, shape: Shape) -> Term:
    return _apply("reshape", (x,), shape)


def broadcast(x: Operand, shape: Shape) -> Term:
    return _apply("broadcast", (x,), shape)


def slice_(x: Operand, slices: Slices) -> Term:
    return _apply("slice", (x,), slices)


def pad(x: Operand, value: OperandOrNumber, padding: Padding) -> Term:
    """A number as `value` is an element of x's type."""
    value = as_number(value)
    if isinstance(value, Number):
        value = ScalarTerm(expression_of(scalar_like(value, operand_of(x, "pad").type)))
    return _apply("pad", (x, value), padding)


def concat(x: Operand, y: Operand, axis: Axis) -> Term:
    return _apply("concat", (x, y), axis)


def gather(x: Operand, indices: Operand, axis: Axis) -> Term:
    return _apply("gather", (x, indices), axis)


def reduce(f: ReduceFn | str, x: Operand, axes: Axes) -> Term:
    return _apply("reduce", (x,), f, axes)


def arg_reduce(f: ReduceFn | str, x: Operand, axis: Axis, last: Count) -> Term:
    return _apply("arg_reduce", (x,), f, axis, last)


def first_places(x: Operand, count: Count, largest: Count) -> Term:
    return _apply("first_places", (x,), count, largest)


def pool(f: ReduceFn | str, x: Operand, window: Window) -> Term:
    return _apply("pool", (x,), f, window)


def matmul(x: Operand, y: Operand) -> Term:
    return _apply("matmul", (x, y))


def conv(x: Operand, w: Operand, window: Window, groups: Groups) -> Term:
    return _apply("conv", (x, w), window, groups)


def winograd(x: Operand, w: Operand, window: Window) -> Term:
    return _apply("winograd", (x, w), window)


def attention(q: Operand, k: Operand, bias: Operand, v: Operand) -> Term:
    return _apply("attention", (q, k, bias, v))


def iota(shape: Shape, axis: Axis, dtype: DType) -> Term:
    return _apply("iota", (), shape, axis, dtype)


def extent(dim: Shape) -> Term:
    return _apply("extent", (), dim)


def constant(value: Constant) -> Term:
    """A constant tensor; on a left side it binds the variable `value`."""
    return _apply("constant", (), value)


def scalar(value: Scalar) -> Term:
    """The 0-d constant of this value; on a left side it binds the variable `value`."""
    return ScalarTerm(_attribute(value, Scalar, "scalar"))
