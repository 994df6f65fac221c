"""What the functions of a rule name: numbers, where it often means something else, text, dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from dis import get_instructions
from enum import Enum
from itertools import chain, islice
from types import CodeType, FunctionType

import numpy as np

from satura.rewrite.check.read_values import functions_reached, values_read
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply, Expression, Literal
from satura.rewrite.language.numbers import scalar_like
from satura.rewrite.language.ours import is_ours
from satura.rewrite.ops.draw import EXTENTS
from satura.rewrite.types.attributes import Count, Groups, Padding, Shape, Slices, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

Number = int | float
HIGH_RANKS = (5, 6)  # which most draws leave out; the highest that any type has are
HIGHEST_RANKS = (7, 8)  # drawn where a rule names them
MOST_NAMED = 130  # an extent that is drawn because the rule names it, or one near it
MOST_LARGE = 2100  # one that is drawn seldom, because the rule names it
EXTENT_LIKE = (Count, Groups, Padding, Shape, Slices, Window)  # attributes made of numbers as large
MOST_MEMBERS = 64  # that are looked at of a container,
MOST_DEPTH = 4  # and of containers within it
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


def high_ranks(named: Iterable[Number]) -> tuple[int, ...]:
    """The ranks that most draws leave out, and the highest at and above such numbers."""
    beside = {rank for n in _whole(named) for rank in (n, n + 1)}
    return (*HIGH_RANKS, *(rank for rank in HIGHEST_RANKS if rank in beside))


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
        for argument in expression.all_arguments:
            yield from _dtypes(argument)


def _literals(direction: Direction) -> Iterator[Number | str]:
    """What stands in the code of functions and in expressions, and then what functions read."""
    called = (each for root in direction.expressions for each in _functions(root))
    functions = functions_reached(called)
    for function in functions:
        yield from _in_code(function.__code__)
    for expression in direction.expressions:
        yield from _in_expression(expression)
    for function in functions:
        for value in values_read(function):
            yield from _in_value(value)


def _in_code(code: CodeType) -> Iterator[Number | str]:
    for instruction in get_instructions(code):
        if instruction.opname in LOADS:
            yield from _in_value(instruction.argval)


def _functions(expression: Expression) -> Iterator[object]:
    """What an expression calls, methods of classes that are not satura's included."""
    if not isinstance(expression, Apply):
        return
    yield expression.function
    if isinstance(expression.called, FunctionType) and not is_ours(expression.called):
        yield expression.called
    for argument in expression.all_arguments:
        yield from _functions(argument)


def _in_expression(expression: Expression) -> Iterator[Number | str]:
    if isinstance(expression, Literal):
        yield from _in_value(expression.value)
    elif isinstance(expression, Apply):
        for argument in expression.all_arguments:
            yield from _in_expression(argument)


def _in_value(value: object, depth: int = MOST_DEPTH) -> Iterator[Number | str]:
    if isinstance(value, CodeType):
        yield from _in_code(value)
    elif isinstance(value, int | float | str) and not isinstance(value, bool | Enum):
        yield value
    elif depth:
        for part in islice(_parts(value), MOST_MEMBERS):
            yield from _in_value(part, depth - 1)


def _parts(value: object) -> Iterable[object]:
    """What a value holds in which numbers may stand, in the same order in every process."""
    match value:
        case tuple() | list():
            return value
        case set() | frozenset():
            return sorted(value, key=repr)
        case dict():
            return chain.from_iterable(value.items())
        case np.generic():
            return (value.item(),)
        case Scalar():
            return (float(value.value) if value.dtype.is_float else int(value.value),)
        case Enum() if not isinstance(value, DType):
            return (value.value,)
    if isinstance(value, EXTENT_LIKE):
        return [getattr(value, one.name) for one in fields(value)]
    return ()
