"""Formulas: what an elementwise op computes, as one expression that NumPy and kernels both follow.

    x / (1 + abs(x))            tanh(x) if x > 0 else alpha * (exp(x) - 1)

A formula is a Python expression in the names of an op's operands and of its attributes that are
numbers. It may call every function of `unary` and `binary` by name (docs/ops.md lists them),
`where`, and element types, which convert: `f32(x)`. Operators are the functions of that meaning,
with satura's answers for integers (`7 / 2` is 3, `x / 0` is 0) and NaN. All operands of a function
have one element type; numbers take the type of what they meet. f16 and bf16 are computed in f32.

For given element types a formula is a list of steps, each a scalar function of earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction, convert
from satura.rewrite.ops.expression import Call, Expression, Formula, Number, Operand, Parameter
from satura.rewrite.ops.registry import Op
from satura.rewrite.types.attributes import (
    Attribute,
    BinaryFn,
    Count,
    Refuse,
    UnaryFn,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType


@dataclass(frozen=True, slots=True)
class Step:
    """One value: `operand` number `position`, the `number` in `literal`, or an op on earlier steps.

    An op is `cast`, `select` or a scalar function; all but comparisons have operands of `dtype`.
    Numbers of attributes have positions from 1 on. Equal attribute values are not merged, so the
    steps do not depend on them.
    """

    op: str
    dtype: DType
    operands: tuple[int, ...] = ()
    position: int = 0
    literal: Scalar | None = None


def formula_flops(formula: Formula) -> float:
    """Weight of one evaluation."""
    return sum(_weight(call.function) for call in _calls(formula.root))


def evaluate_formula(
    formula: Formula, operands: Sequence[Array], attributes: Sequence[Attribute]
) -> Array:
    """The formula on arrays of one shape, in the type that it computes in."""
    values: list[Array] = []
    dtypes = [DType.of(operand.dtype) for operand in operands]
    with np.errstate(all="ignore"):
        for step in formula_steps(formula, tuple(dtypes), tuple(attributes)):
            arguments = [values[index] for index in step.operands]
            if step.op == "operand":
                value = operands[step.position].astype(step.dtype.numpy, copy=False)
            elif step.literal is not None:
                value = np.full(operands[0].shape, step.literal.value, step.dtype.numpy)
            elif step.op == "cast":
                value = convert(arguments[0], step.dtype)
            elif step.op == "select":
                value = np.where(*arguments)
            else:
                value = scalar_function(step.op).reference(*arguments)
            values.append(np.asarray(value))
    return values[-1]


def formula_of(op: Op, attributes: Sequence[Attribute]) -> Formula | None:
    """The formula of a user's op; None for the canonical functions."""
    if op.user is not None:
        return op.user.formula
    function = attributes[0] if attributes else None
    if isinstance(function, UnaryFn | BinaryFn):
        return scalar_function(function.name).expansion
    return None


def scalar_function(name: str) -> ScalarFunction:
    """The function of `unary` or `binary` of this name."""
    return UNARY[name] if name in UNARY else BINARY[name]


def _weight(function: str) -> float:
    known = function in UNARY or function in BINARY
    return scalar_function(function).flops if known else 1.0


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from _calls(argument)


@lru_cache(maxsize=4096)
def formula_steps(
    formula: Formula, dtypes: tuple[DType, ...], attributes: tuple[Attribute, ...]
) -> tuple[Step, ...]:
    """The formula on operands of these element types; the last step is the result.

    It is of a type that is computed in, never f16 or bf16. Raises Refuse where the types or
    the attributes' values do not fit.
    """
    typing = _Typing(dtypes, attributes)
    typing.value(formula.root, typing.usual)
    return tuple(typing.steps)


class _Typing:
    """Gives every part of a formula its element type; equal parts are one step."""

    def __init__(self, dtypes: Sequence[DType], attributes: Sequence[Attribute]) -> None:
        self.dtypes = dtypes
        self.attributes = attributes
        self.steps: list[Step] = []
        self.usual = next((dtype for dtype in dtypes if dtype is not DType.BOOL), DType.F32)

    def dtype(self, expression: Expression) -> DType | None:
        """The element type of an expression; None for a number that takes any."""
        if isinstance(expression, Operand):
            return self.dtypes[expression.position]
        if isinstance(expression, Number):
            return DType.BOOL if isinstance(expression.value, bool) else None
        if isinstance(expression, Parameter):
            return None
        if expression.function in _DTYPES:
            return _DTYPES[expression.function]
        if expression.function == "select":
            return self.common(expression, expression.arguments[1:])
        common = self.common(expression, expression.arguments)
        return DType.BOOL if scalar_function(expression.function).to_bool else common

    def common(self, call: Call, arguments: Sequence[Expression]) -> DType | None:
        """The element type that all of them have. Raises Refuse where they differ."""
        found = [dtype for dtype in map(self.dtype, arguments) if dtype is not None]
        names = " and ".join(dict.fromkeys(dtype.value for dtype in found))
        refuse_unless(
            len(set(found)) < 2, f"'{call.text}' mixes {names}; convert one, as in f32(…)"
        )
        return found[0] if found else None

    def value(self, expression: Expression, wanted: DType) -> int:
        """The step that computes `expression`; a number becomes one of type `wanted`."""
        if isinstance(expression, Operand):
            dtype = self.dtypes[expression.position].compute
            return self.add(Step("operand", dtype, position=expression.position))
        if isinstance(expression, Number):
            return self.number(expression.value, wanted)
        if isinstance(expression, Parameter):
            at = expression.position
            return self.number(_number_in(self.attributes[at]), wanted, at + 1)
        if expression.function in _DTYPES:
            return self.converted(expression.arguments[0], _DTYPES[expression.function])
        if expression.function == "select":
            return self.select(expression, wanted)
        function = scalar_function(expression.function)
        common = self.common(expression, expression.arguments)
        dtype = common or (self.usual if function.to_bool else wanted)
        refuse_unless(
            dtype in function.dtypes, f"'{expression.text}': {function.name} takes no {dtype.value}"
        )
        operands = tuple(self.value(argument, dtype) for argument in expression.arguments)
        return self.add(Step(function.name, function.result(dtype).compute, operands))

    def converted(self, source: Expression, target: DType) -> int:
        """A conversion; a result in f16 or bf16 is rounded to it, and computed with in f32."""
        step = self.value(source, self.usual)
        for dtype in dict.fromkeys((target, target.compute)):
            step = self.add(Step("cast", dtype, (step,)))
        return step

    def select(self, call: Call, wanted: DType) -> int:
        condition, *branches = call.arguments
        dtype = self.common(call, branches) or wanted
        refuse_unless(
            self.dtype(condition) is DType.BOOL, f"the condition of '{call.text}' is not a bool"
        )
        operands = [self.value(condition, DType.BOOL), *(self.value(b, dtype) for b in branches)]
        return self.add(Step("select", dtype.compute, tuple(operands)))

    def number(self, value: float | int, dtype: DType, position: int = 0) -> int:
        if not dtype.is_float:
            whole = math.isfinite(value) and value == int(value)
            least, most = dtype.bounds if dtype.is_integer else (0, 1)
            refuse_unless(
                whole and least <= value <= most, f"{value!r} is not of type {dtype.value}"
            )
        dtype = dtype.compute
        return self.add(Step("number", dtype, (), position, Scalar.of(value, dtype)))

    def add(self, step: Step) -> int:
        if step not in self.steps:
            self.steps.append(step)
        return self.steps.index(step)


def _number_in(attribute: Attribute) -> float | int:
    if isinstance(attribute, Count):
        return attribute.value
    if not isinstance(attribute, Scalar):
        raise Refuse(f"{attribute} is not a number")
    value = attribute.value
    return float(value) if attribute.dtype.is_float else int(value)


_DTYPES = {dtype.value: dtype for dtype in COMPUTED}
