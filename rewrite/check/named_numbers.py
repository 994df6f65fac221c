"""Numbers that the functions of a rule name: values at which a rule often means something else."""

from __future__ import annotations

from collections.abc import Iterator
from dis import get_instructions
from types import CodeType

from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply, Expression, Literal

Number = int | float
LOADS = ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST")


def named_numbers(direction: Direction) -> tuple[Number, ...]:
    """The numbers in conditions and computations of `direction`, and in functions they call.

    0 and 1 are left out: they are drawn often anyway.
    """
    codes = (getattr(function, "__code__", None) for function in direction.functions())
    found: list[Number] = []
    for code in dict.fromkeys(codes):
        if isinstance(code, CodeType):
            found += _in_code(code)
    for expression in direction.expressions:
        found += _in_expression(expression)
    return tuple(dict.fromkeys(number for number in found if number not in (0, 1)))


def _in_code(code: CodeType) -> Iterator[Number]:
    for instruction in get_instructions(code):
        if instruction.opname in LOADS:
            yield from _in_value(instruction.argval)


def _in_expression(expression: Expression) -> Iterator[Number]:
    if isinstance(expression, Literal):
        yield from _in_value(expression.value)
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from _in_expression(argument)


def _in_value(value: object) -> Iterator[Number]:
    if isinstance(value, CodeType):
        yield from _in_code(value)
    elif isinstance(value, tuple | frozenset):
        for element in value:
            yield from _in_value(element)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value
