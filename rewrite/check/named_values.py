"""What the functions of a rule name: numbers, where it often means something else, text, dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from dis import get_instructions
from types import CodeType

from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply, Expression, Literal
from satura.rewrite.language.numbers import scalar_like
from satura.rewrite.ops.draw import EXTENTS
from satura.rewrite.types.attributes import Count, Groups, Padding, Shape, Slices, Window
from satura.rewrite.types.tensor_type import DType

Number = int | float
MOST_NAMED = 130  # an extent that is drawn because the rule names it, or one near it
MOST_LARGE = 2100  # one that is drawn seldom, because the rule names it
EXTENT_LIKE = (Count, Groups, Padding, Shape, Slices, Window)  # attributes made of numbers as large
LOADS = ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST")


def named_numbers(direction: Direction) -> tuple[Number, ...]:
    """The numbers in conditions and computations of `direction`, and in functions they call.

    0 and 1 are left out: they are drawn often anyway. So are integers that no dtype has.
    """
    named = (each for each in _literals(direction) if not isinstance(each, str))
    held = (each for each in named if isinstance(each, float) or abs(each) <= DType.U64.bounds[1])
    return tuple(dict.fromkeys(number for number in held if number not in (0, 1)))


def float_numbers(direction: Direction) -> tuple[float, ...]:
    """The floats that stand beside tensors in `direction`: these have to be of floats, too."""
    found = (each for each in direction.expressions if isinstance(each, Apply))
    numbers = (
        each.arguments[0].value
        for each in found
        if each.function is scalar_like.__wrapped__  # type: ignore[attr-defined]
        and isinstance(each.arguments[0], Literal)
    )
    return tuple(dict.fromkeys(each for each in numbers if isinstance(each, float)))


def near_extents(named: Iterable[Number]) -> tuple[int, ...]:
    """The extents at and beside such numbers, and twice as large, that are not drawn anyway."""
    whole = [n for n in _whole(named) if 4 < n < MOST_NAMED]
    near = dict.fromkeys(each for n in whole for each in (n, n - 1, n + 1, 2 * n))
    return tuple(each for each in near if each not in EXTENTS and each <= MOST_NAMED)


def large_extents(named: Iterable[Number]) -> tuple[int, ...]:
    """Such numbers and their successors, where they are too large to be drawn often."""
    large = [n for n in _whole(named) if MOST_NAMED <= n <= MOST_LARGE]
    return tuple(each for n in large for each in (n, n + 1))


def _whole(numbers: Iterable[Number]) -> list[int]:
    return [int(number) for number in numbers if number == number // 1]


def named_functions(direction: Direction) -> frozenset[str]:
    """The text in conditions and computations of `direction`: the names of functions, mostly."""
    return frozenset(each for each in _literals(direction) if isinstance(each, str))


def named_dtypes(direction: Direction) -> tuple[DType, ...]:
    """The dtypes in conditions and computations of `direction`."""
    return tuple(dict.fromkeys(each for root in direction.expressions for each in _dtypes(root)))


def _dtypes(expression: Expression) -> Iterator[DType]:
    if isinstance(expression, Literal) and isinstance(expression.value, DType):
        yield expression.value
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from _dtypes(argument)


def _literals(direction: Direction) -> Iterator[Number | str]:
    codes = (getattr(function, "__code__", None) for function in direction.functions())
    for code in dict.fromkeys(codes):
        if isinstance(code, CodeType):
            yield from _in_code(code)
    for expression in direction.expressions:
        yield from _in_expression(expression)


def _in_code(code: CodeType) -> Iterator[Number | str]:
    for instruction in get_instructions(code):
        if instruction.opname in LOADS:
            yield from _in_value(instruction.argval)


def _in_expression(expression: Expression) -> Iterator[Number | str]:
    if isinstance(expression, Literal):
        yield from _in_value(expression.value)
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from _in_expression(argument)


def _in_value(value: object) -> Iterator[Number | str]:
    if isinstance(value, CodeType):
        yield from _in_code(value)
    elif isinstance(value, tuple | frozenset):
        for element in value:
            yield from _in_value(element)
    elif isinstance(value, EXTENT_LIKE):
        for one in fields(value):
            yield from _in_value(getattr(value, one.name))
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield value
